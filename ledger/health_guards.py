"""Whether the log still refuses to be changed: its triggers, and the functions behind them."""

import re
from collections.abc import Iterator

from ledger import migrations
from ledger.health import MIGRATE, Check, Look, Seen, failed, ok

# Tables that can only grow; any other that has the trigger is looked at as well.
LOG_TABLES = ("events", "requests", "backups")

# One row a table: whether it is there, and what refuses changes, as far as it does.  The bits of
# tgtype are BEFORE (2), DELETE (8), UPDATE (16) and TRUNCATE (32); a trigger for replicas ('R')
# does not fire for us.
SELECT_TRIGGERS = """
    WITH refusing AS (
        SELECT trigger.tgrelid, trigger.tgname, trigger.tgenabled, trigger.tgtype
          FROM pg_trigger AS trigger
          JOIN pg_proc AS function ON function.oid = trigger.tgfoid
         WHERE function.proname = 'refuse_change'
           AND function.pronamespace = to_regnamespace('ledger')
           AND NOT trigger.tgisinternal
    )
    SELECT name, to_regclass(name) IS NOT NULL,
           EXISTS (
               SELECT FROM refusing WHERE tgrelid = to_regclass(name) AND tgtype & 58 = 58
           ),
           EXISTS (
               SELECT FROM refusing
                WHERE tgrelid = to_regclass(name) AND tgtype & 58 = 58 AND tgenabled IN ('O', 'A')
           )
      FROM (
          SELECT unnest(%(tables)s::text[])
          UNION
          SELECT tgrelid::regclass::text FROM refusing
      ) AS guarded (name)
     ORDER BY name
"""

# Whoever may set this may do without the triggers.
SELECT_REPLICAS = """
    SELECT 'every login' WHERE current_setting('session_replication_role') = 'replica'
     UNION
    SELECT CASE WHEN setrole = 0 THEN 'every login' ELSE pg_get_userbyid(setrole)::text END
      FROM pg_db_role_setting, unnest(setconfig) AS word
     WHERE setdatabase IN (
               0, (SELECT oid FROM pg_database WHERE datname = current_database())
           )
       AND lower(word) = 'session_replication_role=replica'
     ORDER BY 1
"""

SELECT_FUNCTIONS = """
    SELECT proname, prosrc
      FROM pg_proc
     WHERE pronamespace = to_regnamespace('ledger')
     ORDER BY proname
"""


def _triggers(look: Look) -> Iterator[Seen]:
    tables = [f"ledger.{name}" for name in LOG_TABLES]
    rows = look.connection.execute(SELECT_TRIGGERS, {"tables": tables}).fetchall()
    for name, exists, there, enabled in rows:
        if not exists:
            yield failed(f"{name} is not there", MIGRATE)
        elif not there:
            yield failed(
                f"nothing refuses changes of {name}",
                "find out who dropped the trigger and what was changed since (compare with a "
                f"backup), then run `CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR "
                f"TRUNCATE ON {name} FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()`",
            )
        elif not enabled:
            yield failed(
                f"the trigger that refuses changes of {name} is disabled",
                "find out who disabled it and what was changed since (compare with a backup), "
                f"then run `ALTER TABLE {name} ENABLE TRIGGER refuse_change`",
            )
    replicas = [role for (role,) in look.connection.execute(SELECT_REPLICAS)]
    for role in replicas:
        yield failed(
            f"session_replication_role is replica for {role}: no trigger refuses it anything",
            "ALTER ROLE or ALTER DATABASE … RESET session_replication_role, and find out who set "
            "it and what was changed since",
        )
    if not replicas and all(enabled for *_, enabled in rows):
        yield ok(f"changes are refused on {', '.join(name for name, *_ in rows)}")


def _functions(look: Look) -> Iterator[Seen]:
    rows = look.connection.execute(SELECT_FUNCTIONS).fetchall()
    if not rows:
        yield failed("the functions of the schema ledger are not there", MIGRATE)
        return
    ours = "\n".join(migration.statements for migration in migrations.bundled())
    others = [name for name, body in rows if not _is_body(body, ours)]
    for name in others:
        yield failed(
            f"the function ledger.{name} is not as the migrations make it",
            "find out who replaced it and what it did; its text is in a numbered file of "
            "ledger/sql, to be run again as a superuser after `SET ROLE thought_ledger_owner`",
        )
    if not others:
        yield ok(f"all {len(rows)} are as the migrations make them")


def _is_body(body: str, statements: str) -> bool:
    """Whether *statements* make a function of exactly this body, in dollar quotes."""
    return re.search(rf"\$(\w*)\${re.escape(body)}\$\1\$", statements) is not None


CHECKS = (
    Check("triggers", _triggers),
    Check("functions", _functions),
)
