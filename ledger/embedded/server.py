"""One launch of the embedded PostgreSQL: make the cluster, clear what a crash left, start it.

Whoever calls this holds the lock of the data directory and ``alive``, an exclusive ``flock``
that is handed to PostgreSQL and kept by every one of its processes.  So as long as any of them
lives (also an orphan of a killed postmaster, also an initdb whose caller was killed) nobody else
can get here, and who does get here may delete what a pid file says without asking a pid.
"""

import os
import re
import secrets
import shlex
import shutil
import subprocess
from pathlib import Path

from ledger.embedded.accounts import Account
from ledger.embedded.binaries import POSTGRES_MAJOR, copy_binaries, locate_binaries
from ledger.embedded.errors import (
    AccountError,
    BinariesUnusableError,
    ClusterCreationError,
    ClusterVersionError,
    DataDirectoryError,
    PostgresStartError,
    UnknownServerError,
)
from ledger.embedded.home import SOCKET_NAME, Home

LOG_BYTES_MAX = 4 * 1024 * 1024
REASON_CHARACTERS_MAX = 300
HALF_MADE = re.compile(r"pg-initdb-[0-9a-f]{16}")
INITDB = (
    "--auth=trust",
    "--username=postgres",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "port": "5432",
    "max_connections": "400",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "cluster_name": "thought-ledger",
    # A new table is planned badly until it is analysed; look more often than once a minute.
    "autovacuum_naptime": "10s",
}
# Nothing of the caller's: a stray PGDATA or an uninstalled LC_ALL must not reach PostgreSQL.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def run(
    home: Home,
    command: list[str],
    *,
    output: int = subprocess.PIPE,
    keep: tuple[int, ...] = (),
    cluster: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a program as the account, in a session of its own: a Ctrl-C is not for PostgreSQL."""
    account = home.account
    return subprocess.run(  # noqa: S603 - no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=ENVIRONMENT | ({"PGDATA": cluster} if cluster else {}),
        cwd="/",
        umask=0o077,
        pass_fds=keep,
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        text=True,
        errors="replace",
        check=False,
    )


class Launch:
    """What one start knows: where the programs are, and by which path their account goes in."""

    def __init__(self, home: Home, alive: int) -> None:
        self._home = home
        self._alive = alive
        self._reachable = True
        self._doors: dict[Path, int] = {}

    def run(self) -> None:
        """Start PostgreSQL and return at once; its socket will tell when it is ready."""
        account = self._home.account
        try:
            binaries = self._admit(account) if account else locate_binaries()
            self._make_cluster(binaries)
            clear_crash(self._home)
            self._start(binaries)
        except OSError as error:
            raise DataDirectoryError(self._home.path, error.strerror or str(error)) from error
        finally:
            for door in self._doors.values():
                os.close(door)

    def _admit(self, account: Account) -> Path:
        """Find out what the account can reach, and return binaries that it can run."""
        home, binaries = self._home, locate_binaries()
        self._reachable = self._can(["/bin/sh", "-c", 'cd -- "$0"', str(home.path)]) is None
        if self._can([str(binaries / "postgres"), "--version"]) is None:
            return binaries
        if not self._reachable:
            home.secure_directory(home.shelter)
        copied = copy_binaries(home.path if self._reachable else home.shelter, account)
        if reason := self._can([str(copied / "postgres"), "--version"]):
            raise BinariesUnusableError(copied, reason)
        return copied

    def _path_to(self, directory: Path) -> str:
        """Return a path by which the account comes to a directory inside the home.

        A parent that is closed to the account stays closed.  It gets the open directory
        instead: a path through a descriptor does not pass the parents.
        """
        if self._reachable or directory.parent != self._home.path:
            return str(directory)
        if directory not in self._doors:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            self._doors[directory] = os.open(directory, flags)
        path = f"/proc/self/fd/{self._doors[directory]}"
        if not Path(path).is_dir():
            name = self._home.account.name if self._home.account else ""
            raise AccountError(name, f"it cannot reach {directory}")
        return path

    def _keep(self) -> tuple[int, ...]:
        return (self._alive, *self._doors.values())

    def _can(self, command: list[str]) -> str | None:
        """Return why the account cannot do this, or None if it can."""
        try:
            done = run(self._home, command)
        except PermissionError as error:
            return error.strerror
        return reason_in(done.stdout) if done.returncode else None

    def _make_cluster(self, binaries: Path) -> None:
        """Make the cluster beside its place and move it there, so that it is never half made."""
        home = self._home
        for entry in home.path.iterdir():
            if HALF_MADE.fullmatch(entry.name):
                shutil.rmtree(entry, ignore_errors=True)
        if has_cluster(home):
            return
        half_made = home.path / f"pg-initdb-{secrets.token_hex(8)}"
        try:
            home.secure_directory(half_made)
            command = [str(binaries / "initdb"), *INITDB, "-D", self._path_to(half_made)]
            done = run(home, command, keep=self._keep())
            if done.returncode:
                raise ClusterCreationError(home.path, reason_in(done.stdout))
            half_made.rename(home.cluster)
            # Or a power cut takes the whole cluster away, with commits that were acknowledged.
            home.flush()
        except OSError as error:
            raise ClusterCreationError(home.path, error.strerror or str(error)) from error
        finally:
            shutil.rmtree(half_made, ignore_errors=True)

    def _start(self, binaries: Path) -> None:
        home = self._home
        sockets, cluster = self._path_to(home.socket_directory), self._path_to(home.cluster)
        # The value is a list of quoted names to PostgreSQL and a word to the shell of pg_ctl.
        quoted = '"' + sockets.replace('"', '""') + '"'
        settings = SETTINGS | {"unix_socket_directories": quoted}
        options = " ".join(shlex.quote(f"--{name}={value}") for name, value in settings.items())
        command = [str(binaries / "pg_ctl"), "start", "--no-wait", "--silent", "-o", options]
        log = home.open("postgres.log", append=True)
        try:
            if os.fstat(log).st_size > LOG_BYTES_MAX:
                os.ftruncate(log, 0)
            # Not by -D: pg_ctl would put that into a shell command unquoted.
            done = run(home, command, output=log, keep=self._keep(), cluster=cluster)
        finally:
            os.close(log)
        if done.returncode:
            raise PostgresStartError(home.log, f"pg_ctl ended with {done.returncode}")


def has_cluster(home: Home) -> bool:
    """Tell whether the cluster is there, and refuse what PostgreSQL could not use."""
    try:
        found = (home.cluster / "PG_VERSION").read_text(errors="replace").strip()
    except FileNotFoundError:
        if home.cluster.is_dir() and any(home.cluster.iterdir()):
            raise ClusterCreationError(home.path, f"{home.cluster} is something else") from None
        return False
    except OSError as error:
        raise ClusterCreationError(home.path, error.strerror or str(error)) from error
    if found != POSTGRES_MAJOR:
        raise ClusterVersionError(home.cluster, found, POSTGRES_MAJOR)
    return True


def clear_crash(home: Home) -> None:
    """Remove the pid files of a server that is gone; their pid may be anybody's by now."""
    pid = recorded_pid(home)
    if _is_postgres_here(pid, home.cluster):
        raise UnknownServerError(home.cluster, pid)
    (home.cluster / "postmaster.pid").unlink(missing_ok=True)
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (home.socket_directory / name).unlink(missing_ok=True)


def recorded_pid(home: Home) -> int:
    """Return the pid in the pid file, true or not; 0 if there is none."""
    try:
        text = (home.cluster / "postmaster.pid").read_text(errors="replace")
    except FileNotFoundError:
        return 0
    first = text.partition("\n")[0].strip()
    return int(first) if first.isascii() and first.isdecimal() else 0


def _is_postgres_here(pid: int, cluster: Path) -> bool:
    process = Path("/proc") / str(pid)
    try:
        name = (process / "comm").read_text().strip()
        return name == "postgres" and (process / "cwd").readlink() == cluster.resolve()
    except OSError:
        return False


def create_database(home: Home, database: str) -> str | None:
    """Create the database of the ledger, which may be there already; return why not."""
    # Run by the caller from the wheel: a copy belongs to the account, and root runs no such file.
    command = [str(locate_binaries() / "createdb"), "--no-password", "-U", "postgres"]
    command += ["-h", str(home.socket_directory), "-p", "5432", database]
    done = run(Home(home.path, None), command)
    failed = done.returncode and "already exists" not in done.stdout
    return reason_in(done.stdout) if failed else None


def reason_in(output: str) -> str:
    """Pick the line of PostgreSQL's output that says why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # Those who asked too early were told so with FATAL as well.
    grave = re.compile(r"(FATAL|PANIC): (?!.*the database system is)|error:")
    telling = [line for line in lines if grave.search(line)] or lines[-1:]
    return telling[0][-REASON_CHARACTERS_MAX:] if telling else "no reason given"
