"""Several read models followed by one process: what befalls one does not stop another."""

import queue
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ledger.database import Connector, Role
from ledger.embedded.errors import PostgresStartError
from ledger.log import head
from ledger.said import facts_of
from projections.candidate import open_candidate
from projections.catalogue import ALL
from projections.errors import ProjectionError, ProjectionVersionError
from projections.followed import KEPT_UP_MAX
from projections.generations import ensure_live
from projections.operations import promote_generation, switch_to
from projections.status import look
from projections.stopping import Stop
from projections.terms import Terms
from projections.thoughts import Thoughts
from projections.wait import wait_for
from projections.workers import Workers, catch_up_all
from tests.postgres.parking import eventually
from tests.postgres.projecting import (
    SECONDS_MAX,
    NextTerms,
    record_chain,
    rows,
)

# Two are enough for what befalls one and not the other.
TWO = (Thoughts(), Terms())
NAMES = ["terms", "thoughts"]

END_SESSIONS = """
    SELECT pg_terminate_backend(pid)
      FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE %s
"""
LISTENER = "thought-ledger-listen %@%"
ALL_SESSIONS = "thought-ledger%@%"


class FaultyTerms(Terms):
    """Cannot take up a thought that says so."""

    def changes(self, batch):
        if any("poison" in getattr(recorded.event, "text", "") for recorded in batch):
            raise ValueError("poison")
        return super().changes(batch)


class BrokenTerms(Terms):
    """Not even its name can be asked for by the worker's thread."""

    @property
    def version(self):
        raise ZeroDivisionError


class Unstartable(Connector):
    """Of a server that, the first few times, cannot be revived."""

    def __init__(self, connector, error, times):
        super().__init__(connector.conninfo, self._revive)
        self._errors = [error] * times

    def _revive(self):
        with suppress(IndexError):
            raise self._errors.pop()


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
def running(database, projections=TWO, connector=None):
    connector = connector or database.connector(Role.PROJECTOR)
    with Stop() as stop, ThreadPoolExecutor(1) as threads:
        workers = Running(connector, projections, stop, threads)
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
    names = sorted(projection.name for projection in ALL)
    with running(database, ALL) as workers:
        hear_of_each(workers, "leads", names)
        record_chain(writer, "one", "two")

        assert all(seen(reader, name) for name in names)
        generations = look(reader).generations

    assert [generation.name for generation in generations] == names
    assert len({generation.leader_pid for generation in generations} - {None}) == len(names)
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


def promote_another(database):
    connector = database.connector(Role.PROJECTOR)
    with open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up()
        switch_to(connector, candidate)


@pytest.mark.parametrize(
    "error", [PostgresStartError(Path("log"), "so says the test"), OSError("no more files")]
)
@pytest.mark.parametrize("sessions", [LISTENER, ALL_SESSIONS])
def test_a_server_that_cannot_be_revived_is_an_outage_that_goes_on(
    database, admin, writer, reader, sessions, error
):
    connector = Unstartable(database.connector(Role.PROJECTOR), error, times=5)
    with running(database, connector=connector) as workers:
        hear_of_each(workers, "leads")

        assert admin.execute(END_SESSIONS, (sessions,)).rowcount >= 1

        workers.hear(str(error))
        record_chain(writer, "one")
        assert all(seen(reader, name) for name in NAMES)
        promote_another(database)
        workers.hear("leads thoughts_g2")

    assert workers.error is None


def test_a_bug_in_the_supervision_ends_the_workers_as_well(database, admin):
    connector = Unstartable(database.connector(Role.PROJECTOR), ZeroDivisionError(), times=1)
    with running(database, connector=connector) as workers:
        hear_of_each(workers, "leads")

        admin.execute(END_SESSIONS, (LISTENER,))

        assert isinstance(workers.error, ZeroDivisionError)


def test_of_many_kept_generations_the_live_one_and_the_latest_are_kept_up(database, writer, reader):
    with running(database, (Thoughts(),)) as workers:
        workers.hear("leads thoughts_g1 ")
        for number in range(2, 2 + KEPT_UP_MAX):
            promote_another(database)
            workers.hear(f"leads thoughts_g{number} ")
        promote_another(database)
        left = facts_of(workers.hear("not kept up"))
        record_chain(writer, "one")
        assert seen(reader, "thoughts")
        eventually(lambda: leading(reader) == set(range(2, 3 + KEPT_UP_MAX)))

        promote_generation(database.connector(Role.PROJECTOR), Thoughts(), number=1)
        workers.hear("not kept up")
        eventually(lambda: leading(reader) == {1, *range(3, 3 + KEPT_UP_MAX)})

    assert (left["event"], left["generations"]) == ("not_kept_up", [1])
    assert workers.error is None


def leading(reader):
    """The numbers of the generations that are led."""
    return {row.generation for row in look(reader).generations if row.leader is not None}


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
