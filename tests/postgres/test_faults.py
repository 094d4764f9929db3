"""What is the database's fault parks nothing, and the same batch is applied afterwards."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from ledger.database import Role
from projections.faults import blames_database
from projections.follower import Follower
from projections.thoughts import Thoughts
from tests.postgres.parking import contents, eventually, parked_rows
from tests.postgres.projecting import SECONDS_MAX, catch_up, follow, record_chain

LOCK_TABLE = "LOCK TABLE thoughts_g1.memories IN ACCESS EXCLUSIVE MODE"
UPDATE_CHECKPOINT = "UPDATE thoughts_g1.checkpoint SET updated_at = now()"
# A server that answers with an error no test can provoke for real.
FAIL = """
    CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
        RAISE EXCEPTION USING ERRCODE = '{}', MESSAGE = 'so says the test';
    END
    $body$
"""
CREATE_TRIGGER = """
    CREATE TRIGGER fails BEFORE INSERT ON thoughts_g1.memories EXECUTE FUNCTION public.fail()
"""
DROP_TRIGGER = "DROP TRIGGER fails ON thoughts_g1.memories"

SELECT_WAITS = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
       AND backend_type = 'client backend'
"""
SELECT_SESSION = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture
def leader(database, writer):
    """Has two thoughts to apply; its connection may be lost."""
    connection = database.connector(Role.PROJECTOR).connect()
    with closing(connection):
        leader = follow(connection)
        record_chain(writer, "one", "two")
        yield leader


def applied_later(database, admin, leader: Follower) -> bool:
    """Whether nothing was parked, nor half applied, and another leader applies all of it."""
    leader._connection.close()
    before = contents(admin, Thoughts(), "thoughts_g1")
    if any(before.values()) or parked_rows(admin, "thoughts"):
        return False
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        catch_up(follow(connection))
    return len(contents(admin, Thoughts(), "thoughts_g1")["memories"]) == 2


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("lock_timeout", psycopg.errors.LockNotAvailable),
        ("statement_timeout", psycopg.errors.QueryCanceled),
    ],
)
def test_a_time_out_parks_nothing(database, admin, leader, setting, error):
    leader._connection.execute(f"SET {setting} = '100ms'")
    with admin.transaction():
        admin.execute(LOCK_TABLE)

        with pytest.raises(error):
            leader.step()

    assert applied_later(database, admin, leader)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("pg_cancel_backend", psycopg.errors.QueryCanceled),
        ("pg_terminate_backend", psycopg.errors.AdminShutdown),
    ],
)
def test_a_statement_that_is_ended_by_an_administrator_parks_nothing(
    database, database_url, admin, leader, function, error
):
    with ThreadPoolExecutor(1) as threads, psycopg.connect(database_url) as holder:
        holder.execute(LOCK_TABLE)
        step = threads.submit(leader.step)
        pid = _waiting_session(admin)
        admin.execute(f"SELECT {function}(%s)", [pid])

        assert isinstance(step.exception(SECONDS_MAX), error)
        holder.rollback()

    assert applied_later(database, admin, leader)


def test_a_deadlock_parks_nothing(database, database_url, admin, leader):
    with ThreadPoolExecutor(2) as threads, psycopg.connect(database_url) as holder:
        # The leader is the one to notice, and to be the victim.
        holder.execute("SET deadlock_timeout = '1h'")
        holder.execute(LOCK_TABLE)
        step = threads.submit(leader.step)
        _waiting_session(admin)
        waiting = threads.submit(holder.execute, UPDATE_CHECKPOINT)

        assert isinstance(step.exception(SECONDS_MAX), psycopg.errors.DeadlockDetected)
        waiting.result(SECONDS_MAX)
        holder.rollback()

    assert applied_later(database, admin, leader)


def test_a_serialization_failure_parks_nothing(database, database_url, admin, leader):
    leader._connection.execute("SET default_transaction_isolation = 'repeatable read'")
    with ThreadPoolExecutor(1) as threads, psycopg.connect(database_url) as holder:
        holder.execute(UPDATE_CHECKPOINT)
        step = threads.submit(leader.step)
        _waiting_session(admin)
        holder.commit()

        assert isinstance(step.exception(SECONDS_MAX), psycopg.errors.SerializationFailure)

    assert applied_later(database, admin, leader)


def test_a_session_ended_for_idling_parks_nothing(database, admin, leader):
    connection = leader._connection
    pid = connection.info.backend_pid
    connection.execute("SET idle_session_timeout = '50ms'")
    eventually(lambda: admin.execute(SELECT_SESSION, [pid]).fetchone()[0] == 0)

    with pytest.raises(psycopg.OperationalError) as lost:
        leader.step()

    assert blames_database(lost.value)
    assert applied_later(database, admin, leader)


@pytest.mark.parametrize(
    "sqlstate",
    ["40001", "40P01", "53100", "53200", "53400", "55P03", "57014", "57P01", "57P05", "58030"],
)
def test_an_error_the_server_blames_on_itself_parks_nothing(database, admin, leader, sqlstate):
    admin.execute(FAIL.format(sqlstate))
    admin.execute(CREATE_TRIGGER)

    with pytest.raises(psycopg.Error) as fault:
        leader.step()

    assert fault.value.sqlstate == sqlstate
    admin.execute(DROP_TRIGGER)
    assert applied_later(database, admin, leader)


@pytest.mark.parametrize("sqlstate", ["22021", "23505", "54000", "P0001"])
def test_an_error_the_server_blames_on_the_row_parks_the_chain(admin, leader, sqlstate):
    admin.execute(FAIL.format(sqlstate))
    admin.execute(CREATE_TRIGGER)

    catch_up(leader)

    (parked,) = parked_rows(admin, "thoughts")
    assert parked["version"] == 2


def test_memory_the_worker_has_not_parks_nothing(database, admin, writer):
    class Hungry(Thoughts):
        def changes(self, batch):
            raise MemoryError

    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        leader = follow(connection, Hungry())
        record_chain(writer, "one", "two")

        with pytest.raises(MemoryError):
            leader.step()

    assert applied_later(database, admin, leader)


def _waiting_session(admin) -> int:
    """The session that waits for a lock, as soon as one does."""
    ((pid,),) = eventually(lambda: admin.execute(SELECT_WAITS).fetchall())
    return pid
