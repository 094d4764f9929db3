"""The eventsourcing library's own contract tests, run against our recorder."""

from contextlib import closing
from uuid import uuid4

import pytest
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.header import Context
from ledger.recorder import LedgerRecorder, repository
from ledger.thought import Thought


@pytest.fixture
def connection(database):
    with closing(database.connector(Role.WRITER).connect()) as connection:
        yield connection


@pytest.fixture
def recorder_of_class(request, connection):
    request.cls.create_recorder = lambda _: LedgerRecorder(connection, "contract")


@pytest.mark.usefixtures("recorder_of_class")
class TestApplicationRecorderContract(ApplicationRecorderTestCase):
    create_recorder = None


@pytest.mark.usefixtures("recorder_of_class")
class TestNonInterleavingContract(NonInterleavingNotificationIDsBaseCase):
    create_recorder = None


def test_the_librarys_repository_reads_a_chain_as_it_was_at_a_version(connection):
    chain = ThoughtChain.start(uuid4(), title="which index?")
    for n in (1, 2, 3):
        chain.add_thought(
            uuid4(),
            Thought(text=f"{n}", thought_number=n, total_thoughts=3, next_thought_needed=True),
        )
    chains = repository(connection, Context(actor="ada"))
    chains.event_store.put(chain.collect())

    earlier = chains.get(chain.id, version=3)

    assert earlier.thought_count == 2
    assert chains.get(chain.id) == chain
