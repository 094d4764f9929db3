"""Readers are switched at once, never back in time, and back again if need be."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg
import pytest

from ledger.database import Role
from ledger.log import head
from projections.candidate import open_candidate
from projections.cli_generations import tell_promoted
from projections.errors import (
    GenerationBehindError,
    NothingToPromoteError,
    NothingToRollBackError,
    ProjectionVersionError,
    SwitchBlockedError,
    ViewInUseError,
)
from projections.generations import begin, ensure_live, find
from projections.operations import promote_generation, retire_generation, roll_back
from projections.promotion import TRY_SECONDS_MAX, promote
from projections.thoughts import Thoughts
from projections.wait import wait_for
from tests.postgres.parking import eventually
from tests.postgres.projecting import (
    SECONDS_MAX,
    NextThoughts,
    Wider,
    catch_up,
    follow,
    meanwhile,
    record_chain,
    rows,
    running_worker,
)

CHANNEL = "projection_thoughts"


@pytest.fixture
def live(connector, writer):
    """Generation 1, live and up to date, which nobody leads."""
    with connector.connect() as connection:
        record_chain(writer, "one")
        follower = follow(connection)
        catch_up(follower)
    return follower


def build_up(connector, projection=None):
    with open_candidate(connector, projection or Thoughts()) as candidate:
        candidate.build_up()
    return candidate.generation


def states(reader):
    found = rows(reader, "projections", "generations")
    return {row["schema_name"]: row["state"] for row in found}


def test_what_was_built_is_promoted_and_what_was_live_is_kept(connector, live, writer, reader):
    build_up(connector)
    record_chain(writer, "two")

    promoted = promote_generation(connector, Thoughts())

    assert states(reader) == {"thoughts_g1": "kept", "thoughts_g2": "live"}
    assert promoted.position == head(reader) == 4
    assert {row["thought"] for row in rows(reader, "live", "thoughts")} == {"one", "two"}


def test_whoever_waits_is_told_where_the_new_one_is(connector, live, writer, reader):
    build_up(connector)
    record_chain(writer, "two")
    reader.execute(f"LISTEN {CHANNEL}")

    promote_generation(connector, Thoughts())

    (notify,) = reader.notifies(timeout=SECONDS_MAX, stop_after=1)
    assert notify.payload == "4"


def test_without_one_there_is_nothing_to_promote_or_to_go_back_to(connector, live):
    with pytest.raises(NothingToPromoteError):
        promote_generation(connector, Thoughts())
    with pytest.raises(NothingToRollBackError):
        roll_back(connector, Thoughts())


def test_rolled_back_readers_see_what_has_come_meanwhile(connector, live, writer, reader):
    build_up(connector)
    promote_generation(connector, Thoughts())
    record_chain(writer, "two")
    with connector.connect() as connection:
        catch_up(_leading(connection, 2))

    promoted = roll_back(connector, Thoughts())

    assert promoted.generation.schema == "thoughts_g1"
    assert states(reader) == {"thoughts_g1": "live", "thoughts_g2": "kept"}
    assert len(rows(reader, "live", "thoughts")) == 2


def test_one_goes_back_and_forward_by_the_order_they_were_built_in(connector, live):
    for _ in range(2):
        build_up(connector)
        promote_generation(connector, Thoughts())

    back = [roll_back(connector, Thoughts()).generation.number for _ in range(2)]
    with pytest.raises(NothingToRollBackError):
        roll_back(connector, Thoughts())
    forward = promote_generation(connector, Thoughts()).generation.number

    assert (back, forward) == ([2, 1], 3)
    with pytest.raises(NothingToPromoteError):
        promote_generation(connector, Thoughts())


def test_of_one_that_is_gone_already_there_is_nothing_more_to_say(connector, live, capsys):
    build_up(connector)
    promoted = promote_generation(connector, Thoughts())
    roll_back(connector, Thoughts())
    retire_generation(connector, promoted.generation)

    tell_promoted(connector, promoted, as_json=False)

    printed = capsys.readouterr()
    assert "readers see thoughts_g2" in printed.out
    assert printed.err == ""


def test_workers_keep_up_what_is_live_and_what_is_kept(connector, database, writer, reader):
    with running_worker(database) as worker:
        worker.hear("leads thoughts_g1")
        build_up(connector)
        promote_generation(connector, Thoughts())
        worker.hear("leads thoughts_g2")
        record_chain(writer, "one")
        assert wait_for(reader, "thoughts", 2, SECONDS_MAX)

        roll_back(connector, Thoughts())

        assert wait_for(reader, "thoughts", 2, SECONDS_MAX)
    assert len(rows(reader, "live", "thoughts")) == 1


def test_each_worker_keeps_up_what_its_version_has_built(connector, database, writer, reader):
    with running_worker(database) as old:
        old.hear("leads thoughts_g1")
        build_up(connector, NextThoughts())
        promote_generation(connector, NextThoughts())
        with running_worker(database, NextThoughts()) as new:
            new.hear("leads thoughts_g2")
            record_chain(writer, "one")
            assert wait_for(reader, "thoughts", 2, SECONDS_MAX)

            roll_back(connector, NextThoughts())

            assert wait_for(reader, "thoughts", 2, SECONDS_MAX)
    assert states(reader) == {"thoughts_g1": "live", "thoughts_g2": "kept"}


def test_a_kept_one_is_left_alone_when_it_is_retired(connector, database, reader):
    with running_worker(database) as worker:
        worker.hear("leads thoughts_g1")
        build_up(connector)
        promote_generation(connector, Thoughts())
        worker.hear("leads thoughts_g2")

        with connector.connect() as connection:
            kept = find(connection, "thoughts", 1)
        retire_generation(connector, kept)
        build_up(connector)
        promote_generation(connector, Thoughts())

        worker.hear("leads thoughts_g3")
    assert states(reader)["thoughts_g1"] == "retired"
    assert worker.said.empty()


def test_readers_are_never_sent_back_in_time(connector, live, projector):
    generation = begin(projector, Thoughts())

    with pytest.raises(GenerationBehindError) as refusal, connector.connect() as connection:
        promote(connection, generation, seconds_max=0)

    assert (refusal.value.position, refusal.value.live_position) == (0, 2)


def test_a_log_that_lost_events_gets_its_read_models_back(connector, live, writer, admin, reader):
    record_chain(writer, "two", "three")
    with connector.connect() as connection:
        catch_up(_leading(connection, 1))
    # What is left when an older log was put in the place of this one.
    admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
    admin.execute("DELETE FROM ledger.events WHERE notification_id = 5")
    build_up(connector)

    promoted = promote_generation(connector, Thoughts())

    assert promoted.position == 4
    assert {row["thought"] for row in rows(reader, "live", "thoughts")} == {"one", "two"}


def test_one_of_another_version_is_not_promoted_half_built(connector, live, projector):
    begin(projector, NextThoughts())

    with pytest.raises(ProjectionVersionError):
        promote_generation(connector, Thoughts(), number=2)


def test_a_long_query_keeps_readers_where_they_are(connector, live, database, reader):
    generation = build_up(connector)
    with (
        reading(database, "SELECT count(id) FROM live.thoughts"),  # innocent, and not named
        closing(database.connector(Role.READER).connect()) as slow,
        connector.connect() as connection,
        slow.transaction(),
    ):
        slow.execute("SELECT count(id) FROM live.thoughts")
        pid = slow.info.backend_pid

        with pytest.raises(SwitchBlockedError) as refusal:
            promote(connection, generation, seconds_max=0.1)

    assert refusal.value.sessions == (pid,)
    assert states(reader) == {"thoughts_g1": "live", "thoughts_g2": "building"}


def refused(connection, statement):
    """Whether somebody holds what it asks for."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL lock_timeout = '5ms'")
            connection.execute(statement)
    except psycopg.errors.LockNotAvailable:
        return True
    return False


HELD = (
    "SELECT FROM live.thoughts",
    "SELECT FROM live.thoughts_checkpoint",
    "SELECT FROM thoughts_g1.checkpoint FOR UPDATE",
    "LOCK TABLE thoughts_g1.thoughts IN SHARE UPDATE EXCLUSIVE MODE",
)


def test_a_try_has_the_views_before_it_holds_up_the_worker_and_never_locks_its_tables(
    connector, live, admin
):
    generation = build_up(connector)
    held = []

    def reach(position, deadline):
        held.append([refused(admin, statement) for statement in HELD])
        return True

    with connector.connect() as connection:
        promote(connection, generation, reach)

    nearing, switching = held
    assert nearing == [False, False, False, False]
    assert switching == [True, True, True, False]


def test_a_try_that_does_not_get_its_views_leaves_the_worker_alone_and_is_counted(
    connector, live, database, admin
):
    generation = build_up(connector)
    worker_waits = []
    with (
        closing(database.connector(Role.READER).connect()) as slow,
        connector.connect() as connection,
    ):
        slow.execute("BEGIN")
        slow.execute("SELECT count(id) FROM live.thoughts")

        def reach(position, deadline):
            worker_waits.append(refused(admin, HELD[2]))
            if len(worker_waits) == 2:
                slow.execute("ROLLBACK")
            return True

        promoted = promote(connection, generation, reach)

    assert promoted.attempts == 2
    # Before the first try; before the second one, and in it.
    assert worker_waits == [False, False, True]
    assert promoted.longest_try_seconds > TRY_SECONDS_MAX / 2
    assert promoted.longest_try_seconds >= promoted.seconds


def test_a_reader_who_has_a_view_and_asks_for_another_is_not_ended(connector, live, database):
    generation = build_up(connector)
    with (
        closing(database.connector(Role.READER).connect()) as slow,
        ThreadPoolExecutor(1) as pool,
    ):
        slow.execute("BEGIN")
        # The last of the views in the order in which a switch asks for them.
        slow.execute("SELECT FROM live.thoughts_checkpoint")
        promoting = pool.submit(switch, connector, generation)
        await_lock(database, "live.thoughts_checkpoint")

        answer = slow.execute("SELECT count(id) FROM live.thoughts").fetchone()
        slow.execute("COMMIT")

        assert answer == (1,)
        assert promoting.result(SECONDS_MAX).attempts > 1


def switch(connector, generation):
    with connector.connect() as connection:
        return promote(connection, generation)


def await_lock(database, view):
    """Somebody waits for readers of the view to end."""
    query = "SELECT FROM pg_locks WHERE relation = %(view)s::regclass AND NOT granted"
    with closing(database.connector(Role.READER).connect()) as connection:
        eventually(lambda: connection.execute(query, {"view": view}).rowcount)


@contextmanager
def reading(database, query):
    """Asks it prepared, again and again, in a thread; yields the answers and the errors."""
    answers, errors, begun = [], [], threading.Event()

    def ask(enough):
        with closing(database.connector(Role.READER).connect()) as connection:
            connection.prepare_threshold = 0
            while not enough.is_set():
                try:
                    answers.append(connection.execute(query).fetchone()[0])
                except psycopg.Error as error:
                    errors.append(error)
                begun.set()

    with meanwhile(ask):
        assert begun.wait(SECONDS_MAX)
        yield answers, errors


def test_prepared_readers_see_no_error_and_no_earlier_position(connector, database, writer, reader):
    query = "SELECT coalesce(max(position), 0) FROM live.thoughts"
    with running_worker(database) as worker:
        worker.hear("leads thoughts_g1")
        with reading(database, query) as (answers, errors):
            for number in range(2, 6):
                record_chain(writer, f"{number}", "because")
                build_up(connector)
                promote_generation(connector, Thoughts())
                worker.hear(f"leads thoughts_g{number}")
                record_chain(writer, f"{number}", "after")
                assert wait_for(reader, "thoughts", head(reader), SECONDS_MAX)

    assert errors == []
    assert answers == sorted(answers)
    assert len(set(answers)) > 4


def test_a_snapshot_older_than_the_switch_sees_the_new_one_as_it_was_then(
    connector, live, database
):
    with closing(database.connector(Role.READER).connect()) as old, old.transaction():
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM ledger.events")
        build_up(connector)
        promote_generation(connector, Thoughts())

        # As docs/operations.md says; readers in READ COMMITTED see what they saw before.
        assert old.execute("SELECT count(id) FROM live.thoughts").fetchone() == (0,)


# -- Other columns --------------------------------------------------------------------------------


@pytest.fixture
def wider(connector, projector, live):
    generation = begin(projector, Wider())
    projector.execute("ALTER TABLE thoughts_g2.thoughts ADD COLUMN added_here int")
    return generation


def test_views_get_the_columns_of_the_new_one_and_lose_them_again(connector, wider, reader):
    promote_generation(connector, Wider())
    assert reader.execute("SELECT thought, added_here FROM live.thoughts").fetchall() == [
        ("one", 1)
    ]

    with connector.connect() as connection:
        promote(connection, find(connection, "thoughts", 1))

    with pytest.raises(psycopg.errors.UndefinedColumn):
        reader.execute("SELECT added_here FROM live.thoughts")


def test_what_others_built_on_a_view_stays_when_columns_are_added(connector, wider, admin):
    admin.execute("CREATE VIEW report AS SELECT count(id) AS thoughts FROM live.thoughts")

    promote_generation(connector, Wider())

    assert admin.execute("SELECT thoughts FROM report").fetchall() == [(1,)]


def test_what_others_built_on_a_view_keeps_columns_from_being_taken_away(connector, wider, admin):
    promote_generation(connector, Wider())
    admin.execute("CREATE VIEW report AS SELECT sum(added_here) AS words FROM live.thoughts")

    with pytest.raises(ViewInUseError), connector.connect() as connection:
        promote(connection, find(connection, "thoughts", 1))

    assert admin.execute("SELECT words FROM report").fetchall() == [(1,)]
    assert states(admin) == {"thoughts_g1": "kept", "thoughts_g2": "live"}


def test_a_table_more_is_seen_and_is_gone_when_it_is_rolled_back(
    connector, projector, live, reader
):
    begin(projector, NextThoughts())
    projector.execute("CREATE TABLE thoughts_g2.more (id int PRIMARY KEY)")
    promote_generation(connector, NextThoughts())
    assert rows(reader, "live", "more") == []

    with connector.connect() as connection:
        promote(connection, find(connection, "thoughts", 1))

    with pytest.raises(psycopg.errors.UndefinedTable):
        rows(reader, "live", "more")


def test_the_first_generation_of_all_is_live_at_once(projector, reader):
    ensure_live(projector, Thoughts())

    assert rows(reader, "live", "thoughts") == []


def _leading(connection, number):
    from projections.follower import Follower
    from projections.generations import take_lead

    generation = find(connection, "thoughts", number)
    assert take_lead(connection, generation)
    follower = Follower(connection, Thoughts(), generation)
    follower.lead()
    return follower
