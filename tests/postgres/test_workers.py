"""Several read models followed by one process: what befalls one does not stop another."""

import queue
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

import pytest

from ledger.database import Role
from ledger.log import head
from projections.catalogue import ALL
from projections.errors import ProjectionError, ProjectionVersionError
from projections.generations import ensure_live
from projections.status import look
from projections.stopping import Stop
from projections.terms import Terms
from projections.thoughts import Thoughts
from projections.wait import wait_for
from projections.workers import Workers, catch_up_all
from tests.postgres.projecting import SECONDS_MAX, record_chain, rows

NAMES = ["terms", "thoughts"]


class FaultyTerms(Terms):
    """Cannot take up a thought that says so."""

    def changes(self, batch):
        if any("poison" in getattr(recorded.event, "text", "") for recorded in batch):
            raise ValueError("poison")
        return super().changes(batch)


class NextTerms(Terms):
    version = Terms.version + 1


class BrokenTerms(Terms):
    """Not even its name can be asked for by the worker's thread."""

    @property
    def version(self):
        raise ZeroDivisionError


class Running:
    """Workers in a thread, what they say, and what they ended with."""

    def __init__(self, connector, projections, stop, threads):
        self.said = queue.Queue()
        self.ended = threads.submit(Workers(connector, projections, stop, self.said.put).run)

    @property
    def error(self):
        return self.ended.exception(SECONDS_MAX)

    def hear(self, words):
        while True:
            line = self.said.get(timeout=SECONDS_MAX)
            if words in line:
                return line


@contextmanager
def running(database, projections=ALL):
    with Stop() as stop, ThreadPoolExecutor(1) as threads:
        workers = Running(database.connector(Role.PROJECTOR), projections, stop, threads)
        try:
            yield workers
        finally:
            stop.set()
            wait([workers.ended], SECONDS_MAX)
            assert workers.ended.done()


def hear_of_each(workers, words, names=NAMES):
    """Each read model's line with *words* in it, in whatever order they come."""
    left = set(names)
    while left:
        line = workers.said.get(timeout=SECONDS_MAX)
        left -= {name for name in left if words in line and f"{name}_g" in line}


def seen(reader, name):
    return wait_for(reader, name, head(reader), SECONDS_MAX)


def test_what_is_recorded_becomes_visible_in_every_read_model(database, writer, reader):
    with running(database) as workers:
        hear_of_each(workers, "leads")
        record_chain(writer, "one", "two")

        assert all(seen(reader, name) for name in NAMES)
        generations = look(reader).generations

    assert [generation.name for generation in generations] == NAMES
    assert len({generation.leader_pid for generation in generations} - {None}) == 2
    assert len(rows(reader, "live", "term_texts")) == 3
    assert workers.error is None


def test_a_chain_parked_in_one_is_followed_in_the_other(database, writer, reader):
    with running(database, (Thoughts(), FaultyTerms())) as workers:
        record_chain(writer, "poison")
        record_chain(writer, "harmless")

        workers.hear("parked chain")
        assert all(seen(reader, name) for name in NAMES)
        parked = {generation.name: generation.parked for generation in look(reader).generations}

    assert parked == {"terms": 1, "thoughts": 0}
    assert len(rows(reader, "live", "thoughts")) == 2


def test_one_of_another_version_is_said_and_the_other_is_followed(database, writer, reader):
    with database.connector(Role.PROJECTOR).connect() as connection:
        ensure_live(connection, Terms())
    with running(database, (NextTerms(), Thoughts())) as workers:
        workers.hear(f"version {Terms.version} of its projection")
        record_chain(writer, "one")

        assert seen(reader, "thoughts")

    assert workers.error is None


def test_a_bug_in_one_does_not_stop_the_other_and_is_raised_in_the_end(database, writer, reader):
    with running(database, (BrokenTerms(), Thoughts())) as workers:
        workers.hear("ZeroDivisionError")
        record_chain(writer, "one")
        assert seen(reader, "thoughts")

    assert isinstance(workers.error, ZeroDivisionError)


def test_when_all_fail_it_ends(database):
    with database.connector(Role.PROJECTOR).connect() as connection:
        ensure_live(connection, Terms())
    with running(database, (NextTerms(),)) as workers:
        assert isinstance(workers.error, ProjectionVersionError)


def test_each_read_model_is_taken_over_by_itself(database, admin, writer, reader):
    with running(database) as first:
        hear_of_each(first, "leads")
        with running(database) as second:
            hear_of_each(second, "stands by")
            leaders = {
                generation.name: generation.leader_pid for generation in look(reader).generations
            }

            admin.execute("SELECT pg_terminate_backend(%s)", (leaders["terms"],))

            hear_of_each(second, "leads", ["terms"])
            hear_of_each(first, "stands by", ["terms"])
            record_chain(writer, "one")
            assert all(seen(reader, name) for name in NAMES)
            after = {
                generation.name: generation.leader_pid for generation in look(reader).generations
            }

    assert after["thoughts"] == leaders["thoughts"]
    assert after["terms"] not in (leaders["terms"], None)


def test_a_schema_dropped_under_one_is_built_again(database, admin, writer, reader):
    record_chain(writer, "one")
    with running(database) as workers:
        hear_of_each(workers, "leads")
        assert all(seen(reader, name) for name in NAMES)

        admin.execute("DROP SCHEMA terms_g1 CASCADE")
        record_chain(writer, "two")

        workers.hear("leads terms_g2")
        assert all(seen(reader, name) for name in NAMES)
    assert len(rows(reader, "live", "term_texts")) == 4
    assert len(rows(admin, "thoughts_g1", "thoughts")) == 2


def test_by_hand_all_are_caught_up(database, writer, reader):
    record_chain(writer, "one", "two")

    behind = catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX)

    assert behind == []
    assert len(rows(reader, "live", "thoughts")) == 2
    assert len(rows(reader, "live", "term_texts")) == 3


def test_by_hand_one_of_another_version_is_told_and_the_other_caught_up(database, writer, reader):
    record_chain(writer, "one")
    with database.connector(Role.PROJECTOR).connect() as connection:
        ensure_live(connection, Terms())

    behind = catch_up_all(
        database.connector(Role.PROJECTOR), (NextTerms(), Thoughts()), SECONDS_MAX
    )

    assert len(behind) == 1
    assert len(rows(reader, "live", "thoughts")) == 1


def test_by_hand_it_is_an_error_when_none_can_be(database):
    with database.connector(Role.PROJECTOR).connect() as connection:
        ensure_live(connection, Terms())

    with pytest.raises(ProjectionError):
        catch_up_all(database.connector(Role.PROJECTOR), (NextTerms(),), SECONDS_MAX)
