"""Whether the log is as it was made: migrated, owned, granted, and backed up."""

from collections.abc import Iterator
from datetime import timedelta

from ledger import migrations
from ledger.database import Role
from ledger.health import MIGRATE, Check, Look, Seen, failed, ok, warning
from ledger.health_guards import LOG_TABLES

OWNER = "thought_ledger_owner"
# What each role may do, and nothing else.  By columns is enough.
GRANTS = {
    Role.WRITER: dict.fromkeys(LOG_TABLES, ("SELECT", "INSERT")),
    Role.PROJECTOR: {"events": ("SELECT",), "requests": ("SELECT",)},
    Role.READER: dict.fromkeys(LOG_TABLES, ("SELECT",)),
    Role.AUDITOR: {"events": ("SELECT",)},
}
PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
BACKUP_AGE_MAX = timedelta(days=2)
TAKE_BACKUP = "`thought-ledger backup FILE` takes one"

SELECT_FOREIGN = """
    SELECT format('%%I.%%I', 'ledger', relname), pg_get_userbyid(relowner)
      FROM pg_class
     WHERE relnamespace = to_regnamespace('ledger')
       AND relkind IN ('r', 'p', 'v', 'm', 'S')
       AND pg_get_userbyid(relowner) <> %(owner)s
     UNION ALL
    SELECT format('schema %%I', nspname), pg_get_userbyid(nspowner)
      FROM pg_namespace
     WHERE nspname = 'ledger' AND pg_get_userbyid(nspowner) <> %(owner)s
     ORDER BY 1
"""

SELECT_ROLES = """
    SELECT name, rolname IS NOT NULL, coalesce(rolsuper, false),
           CASE
               WHEN rolname IS NULL OR to_regrole(%(owner)s) IS NULL OR name = %(owner)s THEN false
               ELSE pg_has_role(rolname, to_regrole(%(owner)s), 'MEMBER')
           END,
           coalesce(rolcanlogin, false) AND name = %(owner)s
      FROM unnest(%(roles)s::text[]) AS name
      LEFT JOIN pg_roles ON rolname = name
     ORDER BY name
"""

SELECT_GRANTS = """
    SELECT role, name, privilege,
           CASE
               WHEN privilege IN ('SELECT', 'INSERT', 'UPDATE')
                    THEN has_any_column_privilege(role, 'ledger.' || name, privilege)
               ELSE has_table_privilege(role, 'ledger.' || name, privilege)
           END
      FROM unnest(%(roles)s::text[]) AS role,
           unnest(%(tables)s::text[]) AS name,
           unnest(%(privileges)s::text[]) AS privilege
     ORDER BY role, name, privilege
"""

SELECT_ENTRY = """
    SELECT role, has_schema_privilege(role, 'ledger', 'USAGE')
      FROM unnest(%(roles)s::text[]) AS role
"""

SELECT_CLOSED = """
    SELECT oid::regprocedure::text
      FROM pg_proc
     WHERE pronamespace = to_regnamespace('ledger')
       AND proname IN ('append', 'append_one')
       AND NOT has_function_privilege(%(role)s, oid, 'EXECUTE')
     ORDER BY 1
"""

SELECT_MAY_BUILD = """
    SELECT current_database(), has_database_privilege(%(role)s, current_database(), 'CREATE')
"""

BACKUPS_EXIST = "SELECT to_regclass('ledger.backups') IS NOT NULL"

SELECT_BACKUP_AGE = "SELECT now() - max(taken_at) FROM ledger.backups"


def _migrations(look: Look) -> Iterator[Seen]:
    try:
        missing = migrations.pending(look.connection)
    except (migrations.NewerDatabaseError, migrations.ChangedMigrationError) as error:
        fact, _, todo = str(error).partition("; ")
        yield failed(fact, todo)
        return
    applied = len(migrations.bundled()) - len(missing)
    if missing:
        names = ", ".join(migration.name for migration in missing)
        yield failed(f"{applied} applied, {len(missing)} pending: {names}", MIGRATE)
    else:
        yield ok(f"all {applied} applied")


def _owner(look: Look) -> Iterator[Seen]:
    if "ledger" not in _schemas(look):
        yield failed("the schema ledger is not there", MIGRATE)
        return
    foreign = look.connection.execute(SELECT_FOREIGN, {"owner": OWNER}).fetchall()
    for name, owner in foreign:
        kind = name if name.startswith("schema") else f"table {name}"
        yield failed(
            f"{name} belongs to {owner}, who may do anything to it",
            f"run `ALTER {kind} OWNER TO {OWNER}` as a superuser",
        )
    if not foreign:
        yield ok(f"everything in the schema ledger belongs to {OWNER}")


def _roles(look: Look) -> Iterator[Seen]:
    where = {"roles": [OWNER, *Role], "owner": OWNER}
    wrong = False
    for name, exists, superuser, owns, logs_in in look.connection.execute(SELECT_ROLES, where):
        if not exists:
            wrong = True
            yield failed(f"the role {name} is not there", MIGRATE)
        if superuser:
            wrong = True
            yield failed(f"{name} is a superuser", f"run `ALTER ROLE {name} NOSUPERUSER`")
        elif owns:
            wrong = True
            yield failed(
                f"{name} may act as the owner of the log",
                f"run `REVOKE {OWNER} FROM {name}`, and look for a role between the two",
            )
        if logs_in:
            wrong = True
            yield failed(f"{name} may log in", f"run `ALTER ROLE {name} NOLOGIN`")
    if not wrong:
        yield ok("all are there; none is a superuser or may act as the owner of the log")


def _grants(look: Look) -> Iterator[Seen]:
    roles = [role.value for role in GRANTS]
    where = {"roles": roles, "tables": list(LOG_TABLES), "privileges": list(PRIVILEGES)}
    seen = [*_entry(look, roles), *_may_append(look), *_may_build(look)]
    for role, table, privilege, may in look.connection.execute(SELECT_GRANTS, where):
        wanted = privilege in GRANTS[Role(role)].get(table, ())
        if wanted and not may:
            seen.append(
                failed(
                    f"{role} may not {privilege} on ledger.{table}",
                    f"run `GRANT {privilege} ON ledger.{table} TO {role}` as the owner",
                )
            )
        if may and not wanted:
            seen.append(
                failed(
                    f"{role} may {privilege} on ledger.{table}, which it needs not",
                    f"run `REVOKE {privilege} ON ledger.{table} FROM {role}, PUBLIC`, and look for "
                    "a role it is a member of",
                )
            )
    yield from seen or [ok("each role may do what it needs, and no more")]


def _entry(look: Look, roles: list[str]) -> Iterator[Seen]:
    for role, may_use in look.connection.execute(SELECT_ENTRY, {"roles": roles}):
        if not may_use:
            yield failed(
                f"{role} may not use the schema ledger",
                f"run `GRANT USAGE ON SCHEMA ledger TO {role}` as the owner",
            )


def _may_append(look: Look) -> Iterator[Seen]:
    for (function,) in look.connection.execute(SELECT_CLOSED, {"role": Role.WRITER.value}):
        yield failed(
            f"{Role.WRITER} may not execute {function}",
            f"run `GRANT EXECUTE ON FUNCTION {function} TO {Role.WRITER}` as the owner",
        )


def _may_build(look: Look) -> Iterator[Seen]:
    row = look.connection.execute(SELECT_MAY_BUILD, {"role": Role.PROJECTOR.value}).fetchone()
    assert row is not None
    database, may_create = row
    if not may_create:
        yield failed(
            f"{Role.PROJECTOR} may not build read models in database {database}",
            f'run `GRANT CREATE ON DATABASE "{database}" TO {Role.PROJECTOR}` as its owner',
        )


def _backup(look: Look) -> Iterator[Seen]:
    exists = look.connection.execute(BACKUPS_EXIST).fetchone()
    if exists is None or not exists[0]:
        yield warning("no backup is recorded", TAKE_BACKUP)
        return
    row = look.connection.execute(SELECT_BACKUP_AGE).fetchone()
    age: timedelta | None = row[0] if row is not None else None
    if age is None:
        yield warning("no backup is recorded", TAKE_BACKUP)
    elif age > BACKUP_AGE_MAX:
        yield warning(f"the last backup is {_age(age)} old", TAKE_BACKUP)
    else:
        yield ok(f"the last backup is {_age(age)} old")


def _schemas(look: Look) -> set[str]:
    return {name for (name,) in look.connection.execute("SELECT nspname FROM pg_namespace")}


def _age(age: timedelta) -> str:
    hours = age / timedelta(hours=1)
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"


CHECKS = (
    Check("migrations", _migrations),
    Check("owner", _owner),
    Check("roles", _roles),
    Check("grants", _grants),
    Check("backup", _backup),
)
