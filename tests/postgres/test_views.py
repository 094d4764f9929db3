"""What others set on the views of schema ``live`` outlives every switch."""

from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from projections.generations import begin, find
from projections.operations import promote_generation
from projections.promotion import promote
from tests.postgres.projecting import (
    Wider,
    catch_up,
    follow,
    record_chain,
)

SELECT_SET = """
    SELECT view.relname,
           view.reloptions,
           obj_description(view.oid, 'pg_class'),
           (SELECT array_agg(concat_ws(' ', acl.grantee::regrole, privilege_type, is_grantable)
                             ORDER BY acl.grantee::regrole::text, privilege_type)
              FROM aclexplode(view.relacl) AS acl
             WHERE acl.grantee <> view.relowner),
           (SELECT array_agg(concat_ws(' ', attname, acl.grantee::regrole, privilege_type)
                             ORDER BY attname, acl.grantee::regrole::text, privilege_type)
              FROM pg_attribute, aclexplode(attacl) AS acl
             WHERE attrelid = view.oid),
           (SELECT array_agg(concat_ws(' ', attname, col_description(view.oid, attnum))
                             ORDER BY attname)
              FROM pg_attribute
             WHERE attrelid = view.oid AND col_description(view.oid, attnum) IS NOT NULL)
      FROM pg_class AS view
     WHERE view.relnamespace = 'live'::regnamespace AND view.relkind = 'v'
     ORDER BY view.relname
"""


@pytest.fixture
def wider(connector, projector, writer):
    """Generation 1 is live and up to date; generation 2 has a column more."""
    record_chain(writer, "one")
    with connector.connect() as connection:
        catch_up(follow(connection))
    begin(projector, Wider())
    projector.execute("ALTER TABLE thoughts_g2.thoughts ADD COLUMN added_here int")


@pytest.fixture
def roles(admin):
    """Two roles that exist only here: Report, whose name needs quotes, and one it may grant to."""
    made = [f"Report {uuid4().hex}", f"other_{uuid4().hex}"]
    for role in made:
        admin.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    yield made
    for role in made:
        admin.execute(sql.SQL("DROP OWNED BY {0} CASCADE; DROP ROLE {0}").format(_name(role)))


def _name(role):
    return sql.Identifier(role)


@pytest.fixture
def settings(admin, wider, roles):
    """All that can be set on a view."""
    report, other = map(_name, roles)
    for statement in (
        "GRANT USAGE ON SCHEMA live TO {report}, {other}",
        "GRANT SELECT ON live.thoughts TO {report} WITH GRANT OPTION",
        "GRANT SELECT, REFERENCES ON live.thoughts TO PUBLIC",
        "SET ROLE {report}; GRANT SELECT ON live.thoughts TO {other}; RESET ROLE",
        "GRANT SELECT (thought), UPDATE (thought, id) ON live.thoughts TO {other}",
        "GRANT SELECT ON live.thoughts_checkpoint TO {other}",
        "ALTER VIEW live.thoughts SET (security_barrier = true, check_option = local)",
        "ALTER VIEW live.memories SET (security_invoker = true)",
        "COMMENT ON VIEW live.thoughts IS '100% ''ours'' \\ {{x}}; of report'",
        "COMMENT ON COLUMN live.thoughts.thought IS 'what was thought'",
        "COMMENT ON VIEW live.memories IS 'one line each'",
    ):
        admin.execute(sql.SQL(statement).format(report=report, other=other))


def set_on_views(admin):
    return admin.execute(SELECT_SET).fetchall()


def go_back(connector, number=1):
    with connector.connect() as connection:
        promote(connection, find(connection, "thoughts", number))


def test_what_is_set_on_views_stays_when_columns_come_go_and_come_again(connector, settings, admin):
    before = set_on_views(admin)

    promote_generation(connector, Wider())
    assert set_on_views(admin) == before

    go_back(connector)
    assert set_on_views(admin) == before

    go_back(connector, number=2)
    assert set_on_views(admin) == before


def test_who_may_read_a_view_may_read_it_in_every_generation(connector, settings, admin, roles):
    promote_generation(connector, Wider())
    go_back(connector)

    for role in roles:
        admin.execute(sql.SQL("SET ROLE {}").format(_name(role)))
        assert admin.execute("SELECT thought FROM live.thoughts").fetchall() == [("one",)]
        admin.execute("RESET ROLE")


def test_what_was_set_on_a_column_goes_with_the_column(connector, wider, admin, roles):
    report = _name(roles[0])
    promote_generation(connector, Wider())
    for statement in (
        "GRANT USAGE ON SCHEMA live TO {}",
        "GRANT SELECT (added_here, id) ON live.thoughts TO {}",
    ):
        admin.execute(sql.SQL(statement).format(report))
    admin.execute("COMMENT ON COLUMN live.thoughts.added_here IS 'new'")

    go_back(connector)

    admin.execute(sql.SQL("SET ROLE {}").format(report))
    assert len(admin.execute("SELECT id FROM live.thoughts").fetchall()) == 1
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        admin.execute("SELECT thought FROM live.thoughts")
    admin.execute("RESET ROLE")
