"""Any history of commands, through the ledger and back from the database."""

import asyncio
from copy import deepcopy
from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings

from ledger import log
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.errors import LedgerError
from ledger.header import Context
from tests.histories import command_lists

CONTEXT = Context(actor="tester")
# Every example has a chain of its own, so they may share the database of the test.
SHARED = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def state(chain: ThoughtChain) -> dict[str, Any]:
    return {name: value for name, value in vars(chain).items() if name != "_pending_events"}


async def live(database: Database, chain_id: UUID, said: list[Any]) -> dict[int, dict[str, Any]]:
    """Ask it all of a chain through two ledgers in turn; the chain's state by version."""
    lived: dict[int, dict[str, Any]] = {}
    async with Ledger(database) as one, Ledger(database) as other:
        await one.begin(CONTEXT, ThoughtChain.start(chain_id, title="t"), {})
        for number, command in enumerate(said):
            ledger = (one, other)[number % 3 == 0]

            def decide(chain: ThoughtChain, command: Any = command) -> dict[str, Any]:
                command.perform(chain)
                return {}

            try:
                await ledger.change(CONTEXT, chain_id, command.verb, decide)
            except LedgerError:
                continue
            finally:
                chain = await ledger.chain(chain_id)
                lived[chain.version] = deepcopy(state(chain))
    return lived


@SHARED
@given(said=command_lists)
def test_the_log_replayed_to_any_version_is_the_chain_as_it_was(database, said):
    chain_id = uuid4()

    lived = asyncio.run(live(database, chain_id, said))

    chain: ThoughtChain | None = None
    with database.connector(Role.READER).connect() as connection:
        for recorded in log.history(connection, chain_id):
            chain = recorded.event.mutate(chain)
            assert chain is not None
            assert recorded.header.version == chain.version
            if chain.version in lived:
                assert state(chain) == lived.pop(chain.version)
    assert lived == {}
