"""``python -m tests.postgres.freezing URL WORK [CHAIN]``: is stopped in the middle of its work.

By SIGSTOP, as by Ctrl-Z or a debugger: its connection stays, and nobody answers on it.
"""

import os
import signal
import sys
from contextlib import closing
from uuid import UUID

from psycopg import Connection
from psycopg.pq import TransactionStatus
from psycopg.waiting import Wait

from ledger.database import Database, Role
from ledger.settings import Settings
from projections.candidate import open_candidate
from projections.retrying import retry
from projections.thoughts import Thoughts
from tests.postgres.projecting import follow


class Freezing(Connection):
    """Stops its process in a COPY, when it has locked a row, or when an answer is on its way."""

    freezes_at = None

    def wait(self, gen, interval=0.1):
        answer = super().wait(self._freezing(gen) if self.freezes_at == "read" else gen, interval)
        if self.freezes_at == "copy" and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            self._freeze()
        return answer

    def execute(self, query, *args, **kwargs):
        cursor = super().execute(query, *args, **kwargs)
        if self.freezes_at == "locked" and isinstance(query, bytes) and b"FOR UPDATE" in query:
            self._freeze()
        return cursor

    def _freezing(self, gen):
        """The same exchange, up to when the server has been asked and is to be listened to."""
        ready = None
        try:
            while True:
                state = gen.send(ready)
                if state == Wait.R:
                    self._freeze()
                ready = yield state
        except StopIteration as end:
            return end.value

    def _freeze(self):
        os.kill(os.getpid(), signal.SIGSTOP)


def connect(database: Database) -> Freezing:
    return Freezing.connect(database.conninfo(Role.PROJECTOR), autocommit=True)


def lead(database: Database, freezes_at: str) -> None:
    """Stop in the second batch of a leader, for which its statements are prepared."""
    with closing(connect(database)) as connection:
        follower = follow(connection)
        follower.step(1)
        connection.freezes_at = freezes_at
        follower.step()


def build(database: Database) -> None:
    """Stop in the first batch of a build."""
    connector = database.connector(Role.PROJECTOR)
    connector.connect = lambda: connect(database)
    with open_candidate(connector, Thoughts()) as candidate:
        candidate.connection.freezes_at = "copy"
        candidate.build_up()


def unpark(database: Database, freezes_at: str, chain_id: UUID) -> None:
    """Stop in a retry that has the checkpoint's row."""
    with closing(connect(database)) as connection:
        connection.freezes_at = freezes_at
        retry(connection, Thoughts(), chain_id)


def main() -> None:
    url, work, *rest = sys.argv[1:]
    database = Database(Settings(database_url=url))
    if work == "build":
        build(database)
    elif work == "lead":
        lead(database, *rest)
    else:
        freezes_at, chain_id = rest
        unpark(database, freezes_at, UUID(chain_id))


if __name__ == "__main__":
    main()
