"""Data directories and members for the tests of the embedded PostgreSQL."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.embedded import (
    EmbeddedPostgres,
)
from tests.postgres.embedded.members import (
    Member,
    kill_server,
    processes_of,
)

Joins = Callable[..., Member]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Below a private directory, as every temporary directory of pytest is."""
    path = tmp_path / "ledger"
    yield path
    kill_server(path)


@pytest.fixture(scope="session")
def stopped_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stopped") / "ledger"
    with EmbeddedPostgres(path):
        pass
    return path


@pytest.fixture
def used_dir(data_dir: Path, stopped_dir: Path) -> Path:
    """A data directory that has been used before; the copy is quicker than a first start."""
    subprocess.run(["cp", "-a", stopped_dir, data_dir], check=True)
    return data_dir


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A place every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="tl-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    for inside in [path, *path.iterdir()]:
        kill_server(inside)
    shutil.rmtree(path)


@pytest.fixture
def join() -> Iterator[Joins]:
    members: list[Member] = []

    def joins(*args: object, **env: str) -> Member:
        members.append(Member(*args, **env))  # type: ignore[arg-type]
        return members[-1]

    yield joins
    for member in members:
        member.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[EmbeddedPostgres]:
    path = tmp_path_factory.mktemp("shared") / "ledger"
    with EmbeddedPostgres(path) as server:
        yield server
    assert processes_of(path) == []
