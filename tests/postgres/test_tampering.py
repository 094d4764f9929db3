"""What somebody with all rights changes in the log shows when the chain is read."""

import asyncio
from contextlib import closing
from uuid import uuid4

import psycopg
import pytest

from ledger import log
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Role
from ledger.errors import TamperedEventError
from ledger.header import Context
from ledger.thought import Thought

CONTEXT = Context(actor="ada")


@pytest.fixture
def chain_id(database):
    """A recorded chain of three thoughts: versions 1 to 4."""
    chain = ThoughtChain.start(uuid4(), title="which index?", session_id="morning")
    for number in (1, 2, 3):
        chain.add_thought(uuid4(), thought(number))
    ask(database, lambda ledger: ledger.begin(CONTEXT, chain, {}))
    return chain.id


@pytest.fixture
def tamper(database_url):
    """Runs a statement as a superuser who has switched the guards off."""
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
        yield admin.execute


def test_an_event_taken_out_of_a_chain_is_missed_by_the_replay(database, chain_id, tamper):
    tamper("DELETE FROM ledger.events WHERE originator_version = 3")

    with pytest.raises(TamperedEventError) as tampered:
        replay(database, chain_id)

    assert (tampered.value.chain_id, tampered.value.version) == (chain_id, 3)


def test_a_chain_with_an_event_taken_out_takes_no_thought(database, chain_id, tamper):
    tamper("DELETE FROM ledger.events WHERE originator_version = 3")

    with pytest.raises(TamperedEventError):
        ask(database, lambda ledger: ledger.think(CONTEXT, chain_id, thought(4), lambda _: {}))

    assert count(database) == 3


@pytest.mark.parametrize(
    "change",
    [
        "recorded_at = recorded_at + interval '1 microsecond'",
        "actor = 'mallory'",
        "session_id = 'evening'",
        "topic = 'chain.paused'",
        "originator_id = gen_random_uuid()",
    ],
)
def test_a_changed_column_is_noticed_by_the_replay(database, chain_id, tamper, change):
    tamper(f"UPDATE ledger.events SET {change} WHERE originator_version = 1")

    with pytest.raises(TamperedEventError):
        replay(database, chain_id)


def test_a_changed_state_is_noticed_by_the_replay(database, chain_id, tamper):
    tamper("UPDATE ledger.events SET state = state || ' '::bytea WHERE originator_version = 2")

    with pytest.raises(TamperedEventError):
        replay(database, chain_id)


def thought(number):
    return Thought(
        text=f"thought {number}",
        thought_number=number,
        total_thoughts=3,
        next_thought_needed=True,
    )


def ask(database, use_case):
    async def run():
        async with Ledger(database) as ledger:
            return await use_case(ledger)

    return asyncio.run(run())


def replay(database, chain_id):
    with closing(database.connector(Role.READER).connect()) as connection:
        return list(log.history(connection, chain_id))


def count(database):
    with closing(database.connector(Role.READER).connect()) as connection:
        (found,) = connection.execute("SELECT count(*) FROM ledger.events").fetchone()
    return found
