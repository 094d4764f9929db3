"""Processes that share an embedded server, and what the kernel says about that server."""

import os
import pwd
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from ledger.embedded import EmbeddedPostgres

ROOT = os.geteuid() == 0
CHECKOUT = Path(__file__).parents[3]
SITE = Path(psycopg.__file__).parents[1]
WAIT_SECONDS_MAX = 30.0
SCRIPT = """
import sys
from pathlib import Path
from ledger.embedded import EmbeddedPostgres, EmbeddedPostgresError
server = EmbeddedPostgres(Path(sys.argv[1]))
for order in sys.stdin:
    try:
        getattr(server, order.strip())()
    except EmbeddedPostgresError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    else:
        print("done", flush=True)
"""


def an_ordinary_user() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody") if ROOT else pwd.getpwuid(os.geteuid())


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        # Leaves the processor to those we wait for.
        select.select([], [], [], 0.001)


def processes_of(data_dir: Path) -> list[int]:
    """The live processes of PostgreSQL in a data directory; a zombie has no cwd."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            here = (process / "cwd").readlink() == data_dir.resolve() / "pg"
            if here and (process / "comm").read_text().strip() == "postgres":
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found


def postmaster_of(data_dir: Path) -> int:
    return int((data_dir / "pg" / "postmaster.pid").read_text().split()[0])


def kill_server(data_dir: Path) -> None:
    for pid in processes_of(data_dir):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_for(lambda: not processes_of(data_dir))


def facts_of(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mode, status.st_uid, status.st_gid


def ask(server: EmbeddedPostgres, statement: str) -> object:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        row = connection.execute(statement).fetchone()  # type: ignore[arg-type]
    return row[0] if row else None


def do(server: EmbeddedPostgres, statement: str, dbname: str = "thought_ledger") -> None:
    with psycopg.connect(server.conninfo(dbname=dbname), autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type]


class Member:
    """A process of its own (and, as root, of any user's) that obeys 'start' and 'stop'."""

    def __init__(self, data_dir: Path, user: pwd.struct_passwd | None = None, **env: str) -> None:
        # An ordinary user may not be able to run the interpreter of the tests.
        python = "/usr/bin/python3" if ROOT and user else sys.executable
        path = f"{CHECKOUT}:{SITE}"
        if "PYTHONPATH" in env:
            path = f"{env.pop('PYTHONPATH')}:{path}"
        self.process = subprocess.Popen(
            [python, "-B", "-c", SCRIPT, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd="/",
            env={"PATH": os.defpath, "PYTHONPATH": path, **env},
            start_new_session=True,
            user=user.pw_uid if ROOT and user else None,
            group=user.pw_gid if ROOT and user else None,
            extra_groups=[] if ROOT and user else None,
        )

    def order(self, verb: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{verb}\n")

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def start(self) -> str:
        self.order("start")
        return self.answer()

    def stop(self) -> str:
        self.order("stop")
        return self.answer()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Signal the whole process group, as a terminal would."""
        os.killpg(self.process.pid, how)
        self.process.wait(WAIT_SECONDS_MAX)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
