"""The database behind the ledger: found or started, checked, migrated, and logged in to by role."""

from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Self

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from ledger import migrations
from ledger.embedded import EmbeddedPostgres, default_data_dir
from ledger.errors import LedgerError, reason_of
from ledger.settings import Settings

POSTGRES_VERSION_MIN = 160_000
PGVECTOR_VERSION_MIN = (0, 8, 4)
CONNECT_SECONDS_MAX = 10
# What the driver raises when a connection is lost in the middle, for doors that must not know it.
DriverError = psycopg.Error
# The encoding, because an environment or a database that says LATIN1 knows no other letters, and
# with SQL_ASCII psycopg returns bytes for text.
OUR_WORDS = {"application_name": "thought-ledger", "client_encoding": "UTF8"}

# Whatever the database or the login has as its default: transactions that see what others have
# committed meanwhile, and times that psycopg can read.
OUR_OPTIONS = r"-c default_transaction_isolation=read\ committed -c DateStyle=ISO"

SELECT_FACTS = """
    SELECT current_setting('server_version_num')::int,
           current_setting('server_version'),
           (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
           (SELECT extversion FROM pg_extension WHERE extname = 'vector')
"""

SELECT_LOGINS = """
    SELECT count(*)
      FROM pg_roles
     WHERE rolcanlogin
       AND rolname IN (
        'thought_ledger_writer', 'thought_ledger_projector',
        'thought_ledger_reader', 'thought_ledger_auditor'
     )
"""

# The embedded server is reached by a socket only its owner can open, so no passwords are needed.
ALLOW_LOGIN = """
    ALTER ROLE thought_ledger_writer LOGIN;
    ALTER ROLE thought_ledger_projector LOGIN;
    ALTER ROLE thought_ledger_reader LOGIN;
    ALTER ROLE thought_ledger_auditor LOGIN
"""


class Role(StrEnum):
    """What a connection may do; none of them owns the log's tables."""

    WRITER = "thought_ledger_writer"
    PROJECTOR = "thought_ledger_projector"
    READER = "thought_ledger_reader"
    AUDITOR = "thought_ledger_auditor"


class DatabaseUnavailableError(LedgerError):
    """The database cannot be reached; nothing was recorded."""

    def __init__(self, reason: str) -> None:
        full = "too many clients" in reason or "connection slots" in reason
        advice = (
            "end some of the servers and workers that use it, or raise its max_connections"
            if full
            else "start it, or check --database-url and THOUGHT_LEDGER_DATABASE_URL, and try again"
        )
        super().__init__(f"cannot reach the database ({reason}); {advice}")
        self.reason = reason


class DatabaseUnfitError(LedgerError):
    """The database was reached and cannot be used as it is."""


class Database:
    """One database, embedded or elsewhere; ``open`` it before asking for connections.

    ``is_new``: opening it has made the ledger in it.
    """

    def __init__(self, settings: Settings) -> None:
        """Raises DatabaseUnfitError, DataDirectoryError when the settings can name no database."""
        self.embedded: EmbeddedPostgres | None = None
        self.is_new = False
        self._url = ""
        if settings.database_url is None:
            self.embedded = EmbeddedPostgres(settings.data_dir or default_data_dir())
            return
        if not _is_readable(settings.database_url):
            raise DatabaseUnfitError(
                "the database URL cannot be read; it looks like "
                "postgresql://user:password@host:5432/dbname, and signs like @ and / in a "
                "password are written %40 and %2F"
            )
        self._url = settings.database_url

    def open(self) -> list[str]:
        """Start it if it is ours, check it, migrate it, and return the migrations applied.

        Raises DatabaseUnavailableError, DatabaseUnfitError, EmbeddedPostgresError and what
        ``migrations.migrate`` raises.
        """
        with self.reach() as connection:
            try:
                return [] if self._is_ready(connection) else self._migrate(connection)
            except psycopg.errors.InsufficientPrivilege as error:
                raise _privilege_error(error) from error

    def reach(self) -> Connection[TupleRow]:
        """Start it if it is ours, check it, and connect as its owner, or as the URL says.

        Whether there is a ledger in it is not asked.
        Raises DatabaseUnavailableError, DatabaseUnfitError, EmbeddedPostgresError.
        """
        self.revive()
        connection = connect(self.owner_conninfo())
        try:
            _check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def revive(self) -> None:
        """Start the embedded server if it does not run; nothing for a database elsewhere."""
        if self.embedded is not None:
            self.embedded.start()

    def close(self) -> None:
        """Give the embedded server up; the last of its users stops it."""
        if self.embedded is not None:
            self.embedded.stop()

    def conninfo(self, role: Role) -> str:
        """How to connect as *role*, whoever the URL logs in as."""
        if self.embedded is not None:
            return _with_our_words(self.embedded.conninfo(user=role.value))
        return _with_our_words(self._url, f"-c role={role.value}")

    def owner_conninfo(self) -> str:
        """How to connect as the embedded superuser, or as whoever the URL logs in as."""
        return _with_our_words(self._url if self.embedded is None else self.embedded.conninfo())

    def connector(self, role: Role) -> "Connector":
        return Connector(self.conninfo(role), self.revive)

    def _is_ready(self, connection: Connection[TupleRow]) -> bool:
        if migrations.pending(connection):
            return False
        if self.embedded is None:
            return True
        row = connection.execute(SELECT_LOGINS).fetchone()
        return row is not None and row[0] == len(Role)

    def _migrate(self, connection: Connection[TupleRow]) -> list[str]:
        # In one transaction, under the migrators' lock: roles are altered by one at a time.
        with connection.transaction():
            applied = migrations.migrate(connection)
            self.is_new = len(applied) == len(migrations.bundled())
            if self.embedded is not None:
                connection.execute(ALLOW_LOGIN)
        return applied

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            # It may be refused after its server was started, and nobody else would stop that.
            self.close()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


class Connector:
    """Makes connections of one role, and can revive the server when there is none to connect to."""

    def __init__(self, conninfo: str, revive: Callable[[], None]) -> None:
        self.conninfo = conninfo
        self.revive = revive

    def connect(self) -> Connection[TupleRow]:
        """A new autocommit connection.  Raises DatabaseUnavailableError, DatabaseUnfitError."""
        return connect(self.conninfo)

    async def connect_async(self) -> AsyncConnection[TupleRow]:
        """A new autocommit connection.  Raises DatabaseUnavailableError, DatabaseUnfitError."""
        try:
            return await AsyncConnection.connect(
                self.conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX
            )
        except psycopg.OperationalError as error:
            raise connect_error(error) from error


def connect(conninfo: str) -> Connection[TupleRow]:
    """A new autocommit connection.  Raises DatabaseUnavailableError, DatabaseUnfitError."""
    try:
        return Connection.connect(conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX)
    except psycopg.OperationalError as error:
        raise connect_error(error) from error


def connect_error(error: psycopg.OperationalError) -> LedgerError:
    """Our error for a connection that was not made."""
    reason = reason_of(error).removeprefix("connection is bad: ")
    reason = reason.removeprefix("connection failed: ")
    if "permission denied to set role" in reason:
        return DatabaseUnfitError(
            f"the login of the database URL may not act for the ledger ({reason}); "
            "let an owner run `GRANT` of that role to it"
        )
    return DatabaseUnavailableError(reason)


def _with_our_words(conninfo: str, *options: str) -> str:
    given = str(conninfo_to_dict(conninfo).get("options") or "")
    return make_conninfo(
        conninfo, **OUR_WORDS, options=" ".join((given, OUR_OPTIONS, *options)).strip()
    )


def _is_readable(url: str) -> bool:
    """Whether the URL says what its writer meant.

    A raw @ or / in a password makes a host or a port of the rest of it, and libpq quotes those.
    """
    try:
        words = conninfo_to_dict(url)
    except (psycopg.ProgrammingError, UnicodeEncodeError):
        return False
    hosts = str(words.get("host") or "").split(",")
    ports = str(words.get("port") or "").split(",")
    return not any("@" in host[1:] for host in hosts if not host.startswith("/")) and all(
        port.isdecimal() for port in ports if port
    )


def _check(connection: Connection[TupleRow]) -> None:
    row = connection.execute(SELECT_FACTS).fetchone()
    assert row is not None
    number, version, available, installed = row
    if number < POSTGRES_VERSION_MIN:
        raise DatabaseUnfitError(
            f"the database is PostgreSQL {version}; thought-ledger needs PostgreSQL 16 or newer"
        )
    pgvector = installed or available
    if pgvector is None:
        raise DatabaseUnfitError(
            "the database server has no pgvector; install the extension `vector` "
            "0.8.4 or newer on it"
        )
    if tuple(int(part) for part in pgvector.split(".")) < PGVECTOR_VERSION_MIN:
        raise DatabaseUnfitError(
            f"the database has pgvector {pgvector}; thought-ledger needs 0.8.4 or newer: "
            "install it and run `ALTER EXTENSION vector UPDATE`"
        )


def _privilege_error(error: psycopg.errors.InsufficientPrivilege) -> DatabaseUnfitError:
    if 'extension "vector"' in str(error):
        return DatabaseUnfitError(
            "this login may not create the extension pgvector; let a superuser run "
            "`CREATE EXTENSION vector` in this database, then try again"
        )
    if "grant role" in str(error):
        return DatabaseUnfitError(
            "the roles of thought-ledger are in this cluster already, for all its "
            "databases, and this login may not grant them; let a superuser run "
            "`thought-ledger migrate --database-url URL` once"
        )
    return DatabaseUnfitError(
        f"this login may not read or migrate the database ({reason_of(error)}); "
        "let an owner run `thought-ledger migrate --database-url URL` once and "
        "`GRANT thought_ledger_writer, thought_ledger_projector` to this login"
    )
