"""Who root runs PostgreSQL as, which runs neither as root nor as someone without an account."""

import fcntl
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ledger.embedded.errors import AccountError

SERVICE_ACCOUNT = "thought-ledger"
ATTEMPTS_MAX = 50
POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Account:
    """An ordinary user that root runs PostgreSQL as."""

    uid: int
    gid: int
    name: str


def account_for(owner: int) -> Account | None:
    """Who root runs PostgreSQL as in a directory of that owner; None for who is not root.

    Raises AccountError.
    """
    if owner == 0:
        return service_account(SERVICE_ACCOUNT)
    try:
        entry = pwd.getpwuid(owner)
    except KeyError as error:
        if os.geteuid() == 0:
            # The data outlived the account: a volume in a new container.
            return service_account(f"{SERVICE_ACCOUNT}-{owner}", owner)
        raise AccountError(f"user id {owner}", "it has no entry in /etc/passwd") from error
    return _account(entry) if os.geteuid() == 0 else None


def name_of(uid: int) -> str:
    """The user's name, or what says that there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def service_account(name: str, uid: int | None = None) -> Account:
    """Find or create a system account, of that user id or of one that is free.

    Raises AccountError.
    """
    reason = "useradd is not installed"
    for _ in range(ATTEMPTS_MAX):
        with _one_at_a_time():
            with suppress(KeyError):
                return _account(pwd.getpwnam(name))
            useradd = shutil.which("useradd", path=f"/usr/sbin:/sbin:{os.defpath}")
            if useradd is None:
                break
            command = [useradd, "--system", "--user-group", "--no-create-home"]
            command += ["--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name]
            command += [] if uid is None else ["--uid", str(uid)]
            made = subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603 - no shell, fixed words
        reason = made.stderr.strip().replace("\n", "; ") or "useradd failed"
        # Somebody else may be at /etc/passwd; its lock is held for a moment only.
        if made.returncode != 0 and "lock" not in reason and "exists" not in reason:
            break
        time.sleep(POLL_SECONDS)
    raise AccountError(f"the system account {name}", reason)


@contextmanager
def _one_at_a_time() -> Generator[None]:
    """Keep two first starts from making the account twice.

    A useradd that waited for the lock of /etc/passwd does not look again: it gives the account
    that is there by now another user id, and what the first one handed over belongs to nobody.
    """
    directory = os.open("/etc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Where it cannot be locked, they seldom meet.
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
