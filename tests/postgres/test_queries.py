"""What is asked of and about the read models, in Python and on the command line."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from projections import queries
from projections.status import look, with_rates
from tests.postgres.projecting import (
    REPOSITORY,
    catch_up,
    follow,
    record,
    record_chain,
    running_worker,
)
from tests.postgres.test_follower import Stumbling


def test_before_anything_is_built_there_are_no_chains_and_no_generations(reader):
    assert queries.chains(reader, every_status=True) == []
    assert look(reader).generations == []


def test_chains_that_can_be_gone_on_with_are_listed_the_latest_moved_first(
    projector, reader, writer
):
    first, second, done, given_up = (record_chain(writer, "one") for _ in range(4))
    done.complete()
    given_up.abandon()
    first.pause()
    record(writer, done, given_up, first)
    catch_up(follow(projector))

    lines = queries.chains(reader, every_status=False)

    assert [(line.id, line.status) for line in lines] == [
        (first.id, "paused"),
        (second.id, "active"),
    ]
    assert {line.id for line in queries.chains(reader, every_status=True)} == {
        chain.id for chain in (first, second, done, given_up)
    }


def test_status_says_how_far_behind_a_generation_is_and_who_leads(projector, reader, writer):
    leader = follow(projector, Stumbling())
    record_chain(writer, "one", "boom")
    catch_up(leader)
    record_chain(writer, "two")

    (found,) = look(reader).generations

    assert (found.name, found.generation, found.state) == ("thoughts", 1, "live")
    assert (found.position, found.head, found.lag_events) == (3, 5, 2)
    assert found.lag_seconds > 0
    assert found.parked == 1
    assert found.leader_pid == projector.info.backend_pid


def test_status_of_a_read_model_that_is_up_to_date(projector, reader, writer):
    leader = follow(projector)
    record_chain(writer, "one")
    catch_up(leader)
    projector.execute("SELECT pg_advisory_unlock_all()")

    (found,) = look(reader).generations

    assert (found.lag_events, found.lag_seconds, found.leader_pid) == (0, 0.0, None)


def test_two_looks_tell_how_fast_it_comes_on_and_how_long_it_will_take(projector, reader, writer):
    leader = follow(projector)
    record_chain(writer, *"abcdefghi")
    before = look(reader)
    leader.step(5)
    after = replace(look(reader), at=before.at + 2)

    (found,) = with_rates(before, after)

    assert (found.rate, found.eta_seconds) == (2.5, 2.0)
    assert found.leader == f"{os.getpid()}@{socket.gethostname()}"
    (still,) = with_rates(after, replace(after, at=after.at + 2))
    assert (still.rate, still.eta_seconds) == (0.0, None)


def test_the_commands_print_one_json_object_a_line(database, database_url, writer):
    chain = record_chain(writer, "one")
    with running_worker(database) as worker:
        worker.hear("leads")

        (status,) = _lines("-m", "projections", "status", "--json", url=database_url)

    (line,) = _lines("-m", "mcp_server", "chains", "--json", url=database_url)
    assert set(status) == {
        *("name", "generation", "state", "projection_version", "position", "head"),
        *("lag_events", "lag_seconds", "parked", "leader", "leader_pid"),
        *("updated_at", "rate", "eta_seconds"),
    }
    assert line["id"] == str(chain.id)
    assert set(line) == {"id", "title", "status", "thoughts", "updated_at"}


@pytest.mark.parametrize("arguments", [("run",), ("status",)])
def test_a_database_that_cannot_be_reached_is_one_sentence(arguments):
    url = "postgresql://nobody@/nothing?host=/nonexistent"
    ran = _run("-m", "projections", *arguments, url=url)

    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1


def _lines(*arguments, url):
    ran = _run(*arguments, url=url)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def _run(*arguments, url):
    return subprocess.run(
        [sys.executable, *arguments, "--database-url", url],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=REPOSITORY,
        check=False,
    )
