"""The embedded PostgreSQL: one server per data directory, shared by every process that wants it.

Three files in the data directory, locked with ``flock``, are all the coordination there is, and
the kernel lets go of a lock when its holder dies, however it dies:

- ``postgres.lock`` is held while someone starts or stops the server;
- ``postgres.lease`` is shared by all who use it; who can have it alone, stops it;
- ``postgres.alive`` is held by the processes of PostgreSQL themselves.
"""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import platformdirs

from ledger.embedded.errors import (
    ClusterCreationError,
    DataDirectoryError,
    PostgresBusyError,
    PostgresStartError,
    PostgresUnreachableError,
    UnsupportedPlatformError,
)

# The modules below need Unix; say so before they fail to import.
if sys.platform == "win32":
    raise UnsupportedPlatformError

import fcntl

from ledger.embedded.home import POLL_SECONDS, Home, open_home
from ledger.embedded.server import Launch, create_database, reason_in, recorded_pid
from ledger.embedded.socket import Answer, Reply, ask

DATABASE = "thought_ledger"
SUPERUSER = "postgres"
START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 60.0
PAUSE_SECONDS_MAX = 0.1
DATABASE_ATTEMPTS_MAX = 3
# Said aloud, or libpq would take the PG* variables of whoever starts us, which are about another
# server.
ALL_SAID = {
    "port": "5432",
    "hostaddr": "",
    "options": "",
    "require_auth": "",
    "target_session_attrs": "any",
    "channel_binding": "disable",
    "gssencmode": "disable",
    "sslmode": "disable",
}
LEASE = "postgres.lease"
ALIVE = "postgres.alive"


def default_data_dir() -> Path:
    """Return where the data goes if nobody says otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/thought-ledger")
    return platformdirs.user_data_path("thought-ledger", appauthor=False)


class EmbeddedPostgres:
    """A share in the server of one data directory.  Safe to use from several threads."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = _resolved(data_dir)
        self._mutex = threading.Lock()
        self._home: Home | None = None
        self._lease: int | None = None
        self._lease_pid = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Make sure the server answers.  Call it again whenever a connection fails.

        Raises EmbeddedPostgresError, whatever the operating system refuses.
        """
        try:
            with self._mutex:
                self._start()
        except OSError as error:
            reason = error.strerror or str(error)
            raise PostgresUnreachableError(self._data_dir, reason) from error

    def stop(self) -> None:
        """Leave.  The last one to leave stops the server."""
        with self._mutex:
            self._forget_after_fork()
            if self._home is None or self._lease is None:
                return
            try:
                # Without its directory there is nobody to stop: PostgreSQL gives up by itself.
                if self._home.is_current(self._lease, LEASE):
                    with self._home.locked():
                        if self._is_last():
                            _shut_down(self._home)
            finally:
                self._give_up_lease()

    def conninfo(self, user: str = SUPERUSER, dbname: str = DATABASE) -> str:
        """Return what libpq connects with."""
        sockets = (self._home or open_home(self._data_dir)).socket_directory
        words = ALL_SAID | {"host": str(sockets), "user": user, "dbname": dbname}
        return " ".join(f"{word}={_quote(value)}" for word, value in words.items())

    def _start(self) -> None:
        self._forget_after_fork()
        if self._home and self._lease is not None and _serves(self._home):
            return
        if self._lease is not None and not (self._data_dir / "pg" / "PG_VERSION").exists():
            # An empty cluster in its place would take thoughts as if nothing had been lost.
            raise DataDirectoryError(self._data_dir, "it was removed or moved while in use")
        home = open_home(self._data_dir)
        with home.locked():
            kept = self._lease is not None and home.is_current(self._lease, LEASE)
            if not kept:
                self._give_up_lease()
                self._take_lease(home)
            try:
                _bring_up(home)
            except BaseException:
                if not kept:
                    self._give_up_lease()
                raise

    def _take_lease(self, home: Home) -> None:
        self._lease = home.open(LEASE)
        self._lease_pid = os.getpid()
        self._home = home
        fcntl.flock(self._lease, fcntl.LOCK_SH)

    def _give_up_lease(self) -> None:
        if self._lease is not None:
            os.close(self._lease)
        self._lease = None

    def _is_last(self) -> bool:
        assert self._lease is not None
        try:
            fcntl.flock(self._lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _forget_after_fork(self) -> None:
        # A forked child shares its parent's lease and would give that up instead of its own.
        if self._lease_pid != os.getpid():
            self._give_up_lease()


def _resolved(data_dir: Path) -> Path:
    try:
        return data_dir.expanduser().resolve()
    except OSError as error:  # it is relative, and the current directory is gone
        raise DataDirectoryError(data_dir, error.strerror or str(error)) from error
    except RuntimeError as error:  # links that go round, or a home that nobody has
        raise DataDirectoryError(data_dir, str(error).rstrip(".")) from error


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _ask(home: Home) -> Reply:
    return ask(home.socket_file, user=SUPERUSER, database=DATABASE)


def _serves(home: Home) -> bool:
    return _ask(home).answer is Answer.READY


def _bring_up(home: Home) -> None:
    """Wait until the server serves, and launch it once when none of its processes is left."""
    home.secure_directory(home.socket_directory)
    deadline = time.monotonic() + START_SECONDS_MAX
    log_bytes: int | None = None
    attempts = 0
    pause = POLL_SECONDS
    while (answer := _ask(home).answer) is not Answer.READY:
        if answer is Answer.NO_DATABASE:
            # So the launch did succeed, and if the server is killed meanwhile there is another.
            log_bytes = None
            reason = create_database(home, DATABASE)
            attempts += 1
            if reason and attempts >= DATABASE_ATTEMPTS_MAX:
                raise ClusterCreationError(home.path, reason)
        alive = home.try_lock(ALIVE) if answer is Answer.SILENT else None
        if alive is not None:
            try:
                if log_bytes is not None:
                    raise PostgresStartError(home.log, _reason_since(home, log_bytes))
                log_bytes = _size(home.log)
                Launch(home, alive).run()
            finally:
                os.close(alive)
        if time.monotonic() > deadline:
            activity = "PostgreSQL is still starting, recovering or ending"
            raise PostgresBusyError(home.path, activity, START_SECONDS_MAX)
        time.sleep(pause)
        # Whoever asks too early is logged, and a recovery may take long.
        pause = min(pause * 1.1, PAUSE_SECONDS_MAX)


def _shut_down(home: Home) -> None:
    """Ask the process that listens, not the one in a pid file, for a fast shutdown."""
    reply = _ask(home)
    pid = reply.pid
    if reply.answer is not Answer.SILENT and not pid:
        pid = recorded_pid(home)
    # Zero and below would be signals to process groups, our own among them.
    if pid <= 0:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while (alive := home.try_lock(ALIVE)) is None:
        if time.monotonic() > deadline:
            raise PostgresBusyError(
                home.path, "PostgreSQL is still shutting down", STOP_SECONDS_MAX
            )
        time.sleep(POLL_SECONDS)
    os.close(alive)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def _reason_since(home: Home, log_bytes: int) -> str:
    with home.log.open("rb") as log:
        # A long log was truncated by the launch.
        log.seek(log_bytes if log_bytes <= _size(home.log) else 0)
        return reason_in(log.read().decode(errors="replace"))
