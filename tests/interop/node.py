"""The Node of tests/interop/node_modules and what runs on it: every run bounded."""

import os
import subprocess
from pathlib import Path

from tests.acceptance.client import clean_environment

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
NODE = MODULES / ".bin" / "node"
RUN_SECONDS_MAX = 60


def run_node(script, *arguments, timeout=RUN_SECONDS_MAX, stdin=""):
    """Runs a script on our Node and returns the finished process."""
    assert NODE.exists(), "run scripts/install-node first; scripts/test does"
    # What a script starts by the name of node is ours as well.
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(NODE), str(script), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=HERE,
        env=clean_environment({"PATH": path, "NO_COLOR": "1"}),
        timeout=timeout,
        check=False,
    )
