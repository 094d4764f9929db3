"""PostgreSQL servers of both versions of the wheel, as somebody else would run them."""

import itertools
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from ledger.embedded.binaries import copy_binaries, locate_binaries
from ledger.embedded.home import open_home
from ledger.embedded.server import run

PASSWORD = "s3cret'@/ %"
INITDB = ["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """Listens on a port of the loopback and asks for a password."""

    port: int

    def url(self, dbname: str = "postgres") -> str:
        return f"postgresql://postgres:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{dbname}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The superuser's way to a database with nothing in it, gone afterwards."""
        name = f"other_{next(NUMBERS)}"
        with psycopg.connect(self.url(), autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            yield self.url(name)
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def running_server(major: str) -> Iterator[Server]:
    path = Path(tempfile.mkdtemp(prefix=f"pg{major}-"))
    home = open_home(path)
    account = home.account
    binaries = copy_binaries(path, account, major) if account else locate_binaries(major)
    home.secure_directory(home.cluster)
    password = path / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)

    def do(program: str, *arguments: str) -> None:
        done = run(home, [str(binaries / program), *arguments], cluster=str(home.cluster))
        assert done.returncode == 0, done.stdout

    try:
        do("initdb", *INITDB, f"--pwfile={password}")
        server = Server(_free_port())
        options = f"-c listen_addresses=127.0.0.1 -p {server.port} -c fsync=off"
        log = f"--log={home.cluster / 'log'}"
        do("pg_ctl", "start", log, "-o", f"{options} -c unix_socket_directories=''")
        try:
            yield server
        finally:
            do("pg_ctl", "stop", "--mode=immediate")
    finally:
        shutil.rmtree(path)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
