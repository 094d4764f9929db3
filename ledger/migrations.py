"""Forward-only migrations of the log's own tables.  Read models are never migrated."""

import hashlib
import re
from importlib import resources
from typing import LiteralString, NamedTuple, cast

from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.errors import LedgerError

# The schema and this table come before the first migration, to remember it.
ENSURE_TABLE = """
    CREATE SCHEMA IF NOT EXISTS ledger;
    CREATE TABLE IF NOT EXISTS ledger.migrations (
        name       text        PRIMARY KEY,
        digest     text        NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""

TABLE_EXISTS = "SELECT to_regclass('ledger.migrations') IS NOT NULL"

SELECT_APPLIED = "SELECT name, digest FROM ledger.migrations ORDER BY name"

INSERT_APPLIED = "INSERT INTO ledger.migrations (name, digest) VALUES (%(name)s, %(digest)s)"

# One migrator at a time; the number is arbitrary and only has to stay the same.
TAKE_LOCK = "SELECT pg_advisory_xact_lock(74110000)"


class NewerDatabaseError(LedgerError):
    """A newer thought-ledger has migrated the database."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"the database was migrated by a newer thought-ledger ({', '.join(names)}); "
            "upgrade this one, an old one must not write to it"
        )
        self.names = names


class ChangedMigrationError(LedgerError):
    """A migration differs from the one that was applied under its name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"migration {name} differs from the one this database was made with; "
            "install the released thought-ledger, whose migrations never change"
        )
        self.name = name


class Migration(NamedTuple):
    """One numbered file of ``ledger/sql``; the digest is SHA-256 of its text, in hex."""

    name: str
    statements: LiteralString
    digest: str


def migrate(connection: Connection[TupleRow]) -> list[str]:
    """Apply what is missing, all or nothing, and return the names applied.

    Raises NewerDatabaseError, ChangedMigrationError.
    """
    with connection.transaction():
        connection.execute(TAKE_LOCK)
        connection.execute(ENSURE_TABLE)
        missing = pending(connection)
        for migration in missing:
            with connection.transaction():
                connection.execute(migration.statements)
            connection.execute("RESET ROLE")
            connection.execute(INSERT_APPLIED, {"name": migration.name, "digest": migration.digest})
    return [migration.name for migration in missing]


def pending(connection: Connection[TupleRow]) -> list[Migration]:
    """The migrations this version has and the database lacks, oldest first.

    Raises NewerDatabaseError, ChangedMigrationError.
    """
    row = connection.execute(TABLE_EXISTS).fetchone()
    known = bundled()
    if row is None or not row[0]:
        return known
    applied: dict[str, str] = dict(connection.execute(SELECT_APPLIED).fetchall())
    newer = sorted(applied.keys() - {migration.name for migration in known})
    if newer:
        raise NewerDatabaseError(newer)
    for migration in known:
        if applied.get(migration.name, migration.digest) != migration.digest:
            raise ChangedMigrationError(migration.name)
    return [migration for migration in known if migration.name not in applied]


def role_statements() -> LiteralString:
    """What of the migrations makes the roles, which belong to the cluster and not to a database."""
    blocks = [
        block
        for migration in bundled()
        for block in re.findall(r"^DO \$roles\$.*?^\$roles\$;$", migration.statements, re.M | re.S)
    ]
    return "\n".join(blocks)


def bundled() -> list[Migration]:
    """The migrations shipped with this version, oldest first."""
    found: list[Migration] = []
    for file in (resources.files("ledger") / "sql").iterdir():
        if file.name.endswith(".sql"):
            # Shipped with the package, so as trustworthy as the code itself.
            statements = cast("LiteralString", file.read_text(encoding="utf-8"))
            digest = hashlib.sha256(statements.encode()).hexdigest()
            found.append(Migration(file.name, statements, digest))
    return sorted(found)
