"""What the tests of parked chains share: projections with a bug that can be mended, and tables."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.rows import dict_row

from ledger.database import Role
from ledger.log import head
from projections.follower import Follower
from projections.generations import build, take_lead
from projections.projection import Projection
from projections.wait import wait_for
from tests.postgres.projecting import SECONDS_MAX, catch_up, rows

VERSION_MAX = 2**62


class Buggy:
    """A projection that fails on a chain from a version on, until it is mended."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._fails_from: dict[UUID, int] = {}
        self.name = projection.name
        self.version = projection.version
        self.tables = projection.tables
        self.rest_seconds = projection.rest_seconds

    def fail(self, chain_id: UUID, version: int = 1) -> None:
        self._fails_from[chain_id] = version

    def mend(self) -> None:
        self._fails_from.clear()

    def changes(self, batch: Sequence):
        for recorded in batch:
            event = recorded.event
            if event.originator_version >= self._fails_from.get(event.originator_id, VERSION_MAX):
                raise ZeroDivisionError("bang")
        return self._projection.changes(batch)


def contents(connection, projection: Projection, schema: str) -> dict[str, list[dict]]:
    """All rows of all tables of a generation, in an order that only depends on them."""
    found = {}
    with connection.cursor(row_factory=dict_row) as cursor:
        for table in projection.tables:
            cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, table)))
            found[table] = sorted(cursor.fetchall(), key=repr)
    return found


def built_afresh(database, projection: Projection, number: int = 2) -> dict[str, list[dict]]:
    """The tables of a new generation that has applied the whole log."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        generation = build(connection, projection, number)
        assert take_lead(connection, generation)
        follower = Follower(connection, projection, generation)
        follower.lead()
        catch_up(follower)
        return contents(connection, projection, f"{projection.name}_g{number}")


def parked_rows(connection, name: str, number: int = 1) -> list[dict]:
    return rows(connection, f"{name}_g{number}", "parked")


def await_head(connection, name: str) -> None:
    assert wait_for(connection, name, head(connection), SECONDS_MAX)


def eventually(ask: Callable[[], Any]) -> Any:
    """The first answer of the database that is true; asking takes its time, so nobody sleeps."""
    deadline = time.monotonic() + SECONDS_MAX
    while not (answer := ask()):
        assert time.monotonic() < deadline
    return answer
