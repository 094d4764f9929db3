"""Every thought gets its vector, once, whatever befalls the process that makes them."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import log
from ledger.settings import Settings
from projections.embeddings import status
from projections.embeddings.hashing import HashingModel
from projections.embeddings.pages import PAGE_EVENTS_MAX
from projections.embeddings.spaces import list_spaces, live_space
from projections.processes import child_environment
from tests.acceptance.product import eventually
from tests.postgres.embedding import MODEL, Choosy, embed, embedding, expected, stored
from tests.postgres.histories import Histories, steps
from tests.postgres.projecting import REPOSITORY, SECONDS_MAX, record_chain

SHARED = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY = PAGE_EVENTS_MAX * 2 + 50
# So many numbers that a process is long enough at work to be killed in the middle.
WIDE = "hashing:3000"
END_EMBEDDER = """
    SELECT pg_terminate_backend(lock.pid)
      FROM pg_locks AS lock
     WHERE lock.locktype = 'advisory' AND lock.classid = 74110004 AND lock.objid = 1
       AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@SHARED
@given(parts=st.lists(st.lists(steps(), min_size=1, max_size=12), min_size=1, max_size=3))
def test_a_log_embedded_in_parts_equals_a_fold_of_all_of_it(database, writer, reader, parts):
    histories = Histories(writer)
    for part in parts:
        histories.play(part)
        embed(database)

    space = live_space(reader)

    assert stored(reader) == expected(reader)
    assert space.position == log.head(reader)
    assert space.thoughts == len(stored(reader))


def test_equal_texts_are_embedded_once(database, writer, reader):
    record_chain(writer, "the same", "another", "the same")
    embed(database)
    record_chain(writer, "the same", "a third")

    embed(database)

    space = live_space(reader)
    assert (space.thoughts, space.embedded) == (5, 3)
    assert stored(reader) == expected(reader)


@contextmanager
def process(database_url, source, *options):
    environment = child_environment(Settings(database_url=database_url, embedding_model=source))
    command = [sys.executable, "-m", "projections", "embed", *options]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def test_killed_in_the_middle_everything_is_there_once_in_the_end(
    database, database_url, writer, reader
):
    record_chain(writer, *[f"thought {number} of many" for number in range(MANY)])

    def has_come_to(position):
        return any(space.position >= position for space in list_spaces(reader))

    for part in (1, PAGE_EVENTS_MAX + 1):
        with process(database_url, WIDE) as child:
            eventually(lambda part=part: has_come_to(part), SECONDS_MAX, "a page")
            child.send_signal(signal.SIGKILL)
            assert child.wait(SECONDS_MAX) == -signal.SIGKILL
    with process(database_url, WIDE, "--idle", "0") as child:
        assert child.wait(SECONDS_MAX) == 0

    assert stored(reader) == expected(reader, HashingModel(3000))
    assert live_space(reader).thoughts == MANY


def test_the_process_is_niced_and_ends_with_its_parent(database, database_url, reader):
    with process(database_url, MODEL, "--until-eof") as child:
        eventually(lambda: status.look(reader).state == "ready", SECONDS_MAX, "an embedder")
        niceness = os.getpriority(os.PRIO_PROCESS, child.pid)
        child.stdin.close()

        # By the alarm, where the machine is too busy for a clean end within a second.
        assert child.wait(SECONDS_MAX) in (0, -signal.SIGALRM)

    assert niceness > os.getpriority(os.PRIO_PROCESS, 0)


def test_of_two_one_embeds_and_the_other_ends(database, writer, reader):
    said = []
    with embedding(database):
        eventually(lambda: status.look(reader).state == "ready", SECONDS_MAX, "an embedder")

        assert embed(database, said=said)

        record_chain(writer, "one")
        eventually(lambda: status.look(reader).thoughts == 1, SECONDS_MAX, "a vector")
    assert said == ["another process embeds"]


def test_a_lost_connection_is_made_anew_and_nothing_is_lost(database, writer, reader, admin):
    said = []
    with embedding(database, said=said):
        eventually(lambda: status.look(reader).state == "ready", SECONDS_MAX, "an embedder")
        record_chain(writer, "before")
        eventually(lambda: status.look(reader).thoughts == 1, SECONDS_MAX, "a vector")

        assert admin.execute(END_EMBEDDER).fetchall()

        record_chain(writer, "after")
        eventually(lambda: status.look(reader).thoughts == 2, SECONDS_MAX, "another vector")
    assert stored(reader) == expected(reader)
    assert len([line for line in said if "trying again" in line]) == 1


@pytest.mark.parametrize(
    ("source", "dimensions"), [("hashing:0", None), ("hashing:8", 16), ("hashing:x", None)]
)
def test_a_model_that_is_not_what_it_should_be_is_refused_once_and_nothing_is_stored(
    database, writer, reader, source, dimensions
):
    record_chain(writer, "one")
    said = []

    for _ in range(2):
        assert not embed(database, source, dimensions=dimensions, said=said)
        # Its session is over; PostgreSQL lets go of its lead a moment later.
        eventually(lambda: status.look(reader).state == "failed", SECONDS_MAX, "no more lead")

    assert list_spaces(reader) == []
    told = status.look(reader)
    assert told.behind == 1
    assert said == [f"{told.reason}; search goes on by words"]


def test_what_was_missed_while_the_model_was_absent_is_embedded_afterwards(
    database, writer, reader
):
    record_chain(writer, "one", "two")
    embed(database, "hashing:0")

    assert embed(database)

    told = status.look(reader)
    assert (told.state, told.behind, told.thoughts) == ("resting", 0, 2)


def test_a_text_that_the_model_fails_on_is_left_out_and_tried_again_later(database, writer, reader):
    record_chain(writer, "before", Choosy.refused, "after")

    embed(database, loads=lambda _: Choosy(16))
    told = status.look(reader)
    embed(database)

    assert (told.thoughts, told.left_out, told.behind) == (2, 1, 0)
    assert status.look(reader).left_out == 0
    assert stored(reader) == expected(reader)


def test_an_event_that_cannot_be_read_is_left_out_and_the_others_go_on(
    database, writer, reader, admin
):
    record_chain(writer, "before", "broken", "after")
    admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER USER")
    admin.execute("UPDATE ledger.events SET state = 'no event' WHERE notification_id = 3")

    embed(database)

    assert [row[0] for row in stored(reader)] == [2, 4]
    left_out = reader.execute("SELECT position, version FROM vectors.left_out").fetchall()
    assert left_out == [(3, 3)]
    assert status.look(reader).left_out == 1


def test_a_log_restored_from_an_older_backup_takes_its_vectors_along(
    database, writer, reader, admin
):
    record_chain(writer, "one", "two")
    embed(database)
    admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER USER")
    admin.execute("DELETE FROM ledger.events WHERE notification_id = 3")

    embed(database)

    assert stored(reader) == expected(reader)
    assert live_space(reader).position == 2


@pytest.mark.parametrize(("source", "is_indexed"), [(MODEL, True), ("hashing:4001", False)])
def test_any_dimension_works_and_neighbours_have_an_index_where_there_can_be_one(
    database, writer, reader, source, is_indexed
):
    record_chain(writer, "one", "two")

    embed(database, source)

    found = reader.execute("SELECT to_regclass('vectors.thoughts_1_hnsw_idx')").fetchone()
    assert (found[0] is not None) == is_indexed
    assert len(stored(reader)) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO vectors.questions (id, text) VALUES (gen_random_uuid(), '')",
        "UPDATE vectors.spaces SET state = 'kept'",
        "DELETE FROM vectors.thoughts_1",
        "DROP TABLE vectors.questions",
    ],
)
def test_who_may_only_read_changes_no_vectors(database, writer, reader, statement):
    record_chain(writer, "one")
    embed(database)

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(statement)
