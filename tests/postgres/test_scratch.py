"""What is built only to be compared is gone afterwards, whatever ends it."""

import pytest

from ledger.database import Role
from projections.candidate import open_candidate, open_scratch
from projections.errors import GenerationBrokenError
from projections.generations import ensure_live, find_building, listed
from projections.operations import compared_to
from projections.scratch import begin_scratch
from projections.thoughts import Thoughts
from tests.postgres.projecting import catch_up, follow, record_chain


class InterruptedBuildError(Exception):
    """The build was ended from outside."""


def schemas(admin):
    query = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'thoughts%' ORDER BY 1"
    return [name for (name,) in admin.execute(query).fetchall()]


def test_it_is_compared_and_gone(connector, writer, projector, admin):
    record_chain(writer, "one")
    catch_up(follow(projector))

    with open_scratch(connector, Thoughts()) as candidate:
        candidate.build_up()
        with compared_to(connector, candidate) as comparison:
            assert all(table.is_equal for table in comparison.differences(5))
        assert schemas(admin) == ["thoughts_g1", "thoughts_g2"]

    assert schemas(admin) == ["thoughts_g1"]
    assert [found.state for found in listed(admin, "thoughts")] == ["live"]


def test_ended_by_an_error_it_is_gone(connector, projector, admin):
    ensure_live(projector, Thoughts())

    with pytest.raises(InterruptedBuildError), open_scratch(connector, Thoughts()):
        raise InterruptedBuildError

    assert schemas(admin) == ["thoughts_g1"]


def test_what_a_killed_process_left_is_discarded_by_the_next(connector, projector, admin):
    ensure_live(projector, Thoughts())
    with connector.connect() as killed:
        begin_scratch(killed, Thoughts())
    assert schemas(admin) == ["thoughts_g1", "thoughts_g2"]

    with open_scratch(connector, Thoughts()):
        assert [found.state for found in listed(admin, "thoughts")] == ["live", "scratch"]

    assert schemas(admin) == ["thoughts_g1"]


def test_two_at_once_have_each_their_own_and_leave_a_rebuild_alone(connector, projector, admin):
    ensure_live(projector, Thoughts())
    with open_candidate(connector, Thoughts()) as rebuilt:
        rebuilt.build_up()

    with open_scratch(connector, Thoughts()) as one, open_scratch(connector, Thoughts()) as other:
        assert len({one.generation.id, other.generation.id, rebuilt.generation.id}) == 3

    assert find_building(admin, Thoughts()) == rebuilt.generation
    assert schemas(admin) == ["thoughts_g1", "thoughts_g2"]


def test_a_schema_of_somebody_else_is_passed_over(connector, projector, admin):
    ensure_live(projector, Thoughts())
    admin.execute("CREATE SCHEMA thoughts_g2")

    with open_candidate(connector, Thoughts()) as candidate:
        assert candidate.generation.schema == "thoughts_g3"


def test_a_build_that_lacks_a_table_says_how_to_begin_again(connector, writer, projector):
    record_chain(writer, "one")
    ensure_live(projector, Thoughts())
    with open_candidate(connector, Thoughts()):
        projector.execute("DROP TABLE thoughts_g2.memories")

    with pytest.raises(GenerationBrokenError), open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up()


def test_what_was_begun_of_a_log_that_is_no_more_is_begun_again(
    connector, writer, projector, admin
):
    record_chain(writer, "one", "two")
    ensure_live(projector, Thoughts())
    with open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up()
    admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
    admin.execute("DELETE FROM ledger.events WHERE notification_id = 3")

    with open_candidate(connector, Thoughts()) as candidate:
        assert candidate.position == 0
        candidate.build_up()

    assert candidate.generation.schema == "thoughts_g3"
    assert schemas(admin) == ["thoughts_g1", "thoughts_g3"]


def test_the_defaults_of_a_database_do_not_matter(database, admin):
    name = admin.info.dbname
    admin.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    admin.execute(f"ALTER DATABASE {name} SET DateStyle = 'SQL, DMY'")

    for role in Role:
        with database.connector(role).connect() as connection:
            row = connection.execute(
                "SELECT current_setting('default_transaction_isolation'), now()"
            ).fetchone()
            assert row[0] == "read committed"
