"""PostgreSQL's client programs, run so that no command line shows a password."""

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ledger.backups.errors import UnsupportedUrlError
from ledger.embedded.binaries import locate_binaries

REASON_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs, and where it writes what went wrong."""

    process: subprocess.Popen[bytes]
    complaints: IO[bytes]

    def reason(self) -> str:
        """The line that says why it failed, once it has ended."""
        self.complaints.seek(0)
        text = self.complaints.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        grave = [line for line in lines if "ERROR:" in line or "error:" in line]
        for line in [*grave, *lines[-1:]]:
            _, mark, rest = line.partition("ERROR:")
            return (rest if mark else line).strip()[:REASON_CHARACTERS_MAX]
        return f"it ended with {self.process.returncode}"


@contextmanager
def started(
    name: str,
    arguments: list[str],
    *,
    conninfo: str | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> Generator[Program]:
    """Run one of PostgreSQL's programs; on the way out, whatever still runs is ended."""
    words, secrets = _split(conninfo) if conninfo is not None else ([], {})
    command = [str(locate_binaries() / name), *words, *arguments]
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(  # noqa: S603 - no shell
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=complaints,
            # In English, because the reason is looked for in what they say.
            env=os.environ | secrets | {"LC_ALL": "C"},
        )
        try:
            yield Program(process, complaints)
        finally:
            process.kill()
            # It has ended or is about to: no pipe of ours can keep it.
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    _close(pipe)
            process.wait()


def _split(conninfo: str) -> tuple[list[str], dict[str, str]]:
    """The words for a command line, which everybody may read, and what belongs elsewhere."""
    words: dict[str, Any] = dict(conninfo_to_dict(conninfo))
    if words.pop("sslpassword", None):
        raise UnsupportedUrlError
    password = words.pop("password", None)
    shown = ["--no-password", f"--dbname={make_conninfo('', **words)}"]
    return shown, {} if password is None else {"PGPASSWORD": str(password)}


def _close(pipe: IO[bytes]) -> None:
    with suppress(BrokenPipeError):
        pipe.close()
