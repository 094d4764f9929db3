"""Who answers on a PostgreSQL socket, asked in the wire protocol: no client library, no process."""

import socket
import struct
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ANSWER_SECONDS_MAX = 2.0
PROTOCOL_3 = 196608
INVALID_CATALOG_NAME = "3D000"
# admin_shutdown, crash_shutdown, cannot_connect_now
NOT_NOW = frozenset({"57P01", "57P02", "57P03"})


class Answer(Enum):
    """What a server says to someone who wants to log in."""

    READY = "ready"
    NO_DATABASE = "no database"
    BUSY = "starting, stopping or overloaded"
    SILENT = "silent"


@dataclass(frozen=True)
class Reply:
    """An answer, and the process that listens (0: unknown)."""

    answer: Answer
    pid: int


def ask(socket_file: Path, *, user: str, database: str) -> Reply:
    """Log in and hang up.  Only a server that would serve a client is READY.

    Raises OSError when this process cannot ask: no descriptor is left.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(connection):
        connection.settimeout(ANSWER_SECONDS_MAX)
        try:
            connection.connect(str(socket_file))
        except (BlockingIOError, TimeoutError):
            return Reply(Answer.BUSY, 0)
        except OSError:
            return Reply(Answer.SILENT, 0)
        pid = _listener(connection)
        try:
            return Reply(_log_in(connection, user, database), pid)
        except OSError:
            return Reply(Answer.BUSY, pid)


def _listener(connection: socket.socket) -> int:
    """Return the process that listens, as the kernel knows it: a pid file may be stale."""
    # macOS has no SO_PEERCRED; there the caller looks into the pid file.
    option: int | None = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    size = struct.calcsize("3i")
    pid: int = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, size))[0]
    return pid


def _log_in(connection: socket.socket, user: str, database: str) -> Answer:
    body = f"user\0{user}\0database\0{database}\0\0".encode()
    connection.sendall(struct.pack("!ii", len(body) + 8, PROTOCOL_3) + body)
    with connection.makefile("rb") as reader:
        # The password is judged first and the database after that, so read up to the end.
        while len(head := reader.read(5)) == 5:
            length: int = struct.unpack("!i", head[1:])[0]
            body = reader.read(length - 4)
            if head[:1] == b"E":
                return _judge(body)
            if head[:1] == b"Z":
                # The polite goodbye: without it the server may log a lost client.
                connection.sendall(struct.pack("!ci", b"X", 4))
                return Answer.READY
    return Answer.BUSY


def _judge(error: bytes) -> Answer:
    fields = {field[:1]: field[1:].decode(errors="replace") for field in error.split(b"\0")}
    state = fields.get(b"C", "")
    if state == INVALID_CATALOG_NAME:
        return Answer.NO_DATABASE
    # It may refuse this login (too many connections, say) and still serve.
    return Answer.BUSY if state in NOT_NOW else Answer.READY
