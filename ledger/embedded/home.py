"""The data directory of the embedded PostgreSQL: whose it is, and the files beside the cluster.

Root is careful in here.  The directory may belong to somebody who would like root to follow a
link, so nothing is followed, and only what root has just made changes hands.
"""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ledger.embedded.accounts import Account, account_for, name_of
from ledger.embedded.errors import (
    DataDirectoryError,
    ForeignDataDirectoryError,
    PostgresBusyError,
    PrivateDirectoryError,
)

SOCKET_NAME = ".s.PGSQL.5432"
# The kernel takes 107 bytes (macOS 103).
SOCKET_BYTES_MAX = 100
LOCK_SECONDS_MAX = 180.0
POLL_SECONDS = 0.005
# Not TMPDIR: two processes with different ones must find the same socket.
SHELTERS = Path("/tmp")  # noqa: S108 - what is made in there is private and verified


@dataclass(frozen=True)
class Home:
    """A usable data directory.  ``account`` is who root runs PostgreSQL as, else None."""

    path: Path
    account: Account | None

    @property
    def cluster(self) -> Path:
        return self.path / "pg"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    @property
    def shelter(self) -> Path:
        """A private directory outside, for what cannot be reached inside."""
        uid = self.account.uid if self.account else os.geteuid()
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return SHELTERS / f"thought-ledger-{uid}-{digest}"

    @property
    def socket_directory(self) -> Path:
        inside = self.path / "run"
        # In a connection string a comma separates hosts and cannot be escaped.
        fits = len(os.fsencode(inside / SOCKET_NAME)) <= SOCKET_BYTES_MAX
        return inside if fits and "," not in str(inside) else self.shelter

    @property
    def socket_file(self) -> Path:
        return self.socket_directory / SOCKET_NAME

    def open(self, name: str, *, append: bool = False) -> int:
        """Open a file of ours for reading and writing, made for the account if need be."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        flags |= os.O_APPEND if append else 0
        file = None
        try:
            file = os.open(self.path / name, flags | os.O_CREAT, 0o600)
            self._hand_over(file)
        except OSError as error:
            if file is not None:
                os.close(file)
            raise DataDirectoryError(self.path, f"{name}: {error.strerror}") from error
        return file

    def _hand_over(self, file: int) -> None:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file")
        # Root's, empty and known by one name: root has just made it, or was killed right after.
        new = status.st_uid == 0 and status.st_size == 0 and status.st_nlink == 1
        if self.account and new:
            os.fchown(file, self.account.uid, self.account.gid)

    def flush(self) -> None:
        """Make a change of names in the data directory survive a power cut."""
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def secure_directory(self, path: Path) -> None:
        """Make a directory only the account can enter, or verify that it is one."""
        try:
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            self._hand_over_directory(path)
            status = path.lstat()
        except OSError as error:
            raise PrivateDirectoryError(path, error.strerror or str(error)) from error
        if status.st_uid != (self.account.uid if self.account else os.geteuid()):
            raise PrivateDirectoryError(path, "another user made it")
        if status.st_mode & 0o077:
            raise PrivateDirectoryError(path, "others can enter it")

    def _hand_over_directory(self, path: Path) -> None:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.scandir(directory) as entries:
                new = os.fstat(directory).st_uid == 0 and not any(entries)
            if self.account and new:
                os.fchown(directory, self.account.uid, self.account.gid)
        finally:
            os.close(directory)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Be the only one who starts or stops the server.  A killed holder lets go by itself."""
        deadline = time.monotonic() + LOCK_SECONDS_MAX
        while (lock := self.try_lock("postgres.lock")) is None:
            if time.monotonic() > deadline:
                activity = "another process still starts or stops PostgreSQL"
                raise PostgresBusyError(self.path, activity, LOCK_SECONDS_MAX)
            time.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            os.close(lock)

    def try_lock(self, name: str, how: int = fcntl.LOCK_EX) -> int | None:
        """Take a lock file, or return None if someone has it (or it was deleted meanwhile)."""
        file = self.open(name)
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            if self.is_current(file, name):
                return file
        except BlockingIOError:
            pass
        except OSError as error:
            os.close(file)
            raise DataDirectoryError(self.path, f"no locks: {error.strerror}") from error
        os.close(file)
        return None

    def is_current(self, file: int, name: str) -> bool:
        """Tell whether an open file is still the one with that name."""
        try:
            return os.path.samestat(os.fstat(file), os.lstat(self.path / name))
        except (FileNotFoundError, NotADirectoryError):
            return False


def open_home(path: Path) -> Home:
    """Make the data directory if it is missing, and find out who runs PostgreSQL in it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        empty = status.st_uid == os.geteuid() and not any(path.iterdir())
    except OSError as error:
        raise DataDirectoryError(path, error.strerror or str(error)) from error
    if os.geteuid() != 0 and status.st_uid != os.geteuid():
        raise ForeignDataDirectoryError(path, name_of(status.st_uid))
    account = account_for(status.st_uid)
    if empty:
        _adopt(path, status, account)
    elif status.st_mode & stat.S_IWOTH:
        raise DataDirectoryError(path, "every user of this machine can write to it")
    return Home(path, account)


def _adopt(path: Path, status: os.stat_result, account: Account | None) -> None:
    """Make an empty directory private: new ones are, and nobody relies on the others."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not os.path.samestat(os.fstat(directory), status):
            return
        os.fchmod(directory, status.st_mode & 0o700)
        if account:
            os.fchown(directory, account.uid, account.gid)
    except OSError as error:
        raise DataDirectoryError(path, error.strerror or str(error)) from error
    finally:
        os.close(directory)
