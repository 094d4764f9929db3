"""What libpq reads from the environment must not change how the ledger talks to its database."""

from uuid import uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.header import Context
from ledger.settings import Settings


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_strange_client_encoding_costs_no_letter(database_url, monkeypatch, encoding):
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    context = Context(actor="日本 → ü")

    with Database(Settings(database_url=database_url)) as database:
        async with Ledger(database) as ledger:
            receipt = await ledger.begin(context, ThoughtChain.start(uuid4(), title="t"), {})
        with database.connector(Role.READER).connect() as connection:
            row = connection.execute("SELECT actor FROM ledger.events").fetchone()

    assert receipt.position is not None
    assert row == (context.actor,)
