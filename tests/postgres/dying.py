"""An operator's command that is killed at one of its statements."""

import os
import signal
from uuid import UUID

from psycopg import Connection

from projections.retrying import retry, skip
from projections.thoughts import Thoughts


class Mortal(Connection):
    """Has its process killed as by ``kill -9`` when so many statements have been answered."""

    statements_left = 0

    def wait(self, gen, interval=0.1):
        answer = super().wait(gen, interval)
        self.statements_left -= 1
        if self.statements_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def unpark(conninfo: str, command: str, chain_id: UUID, statements: int) -> None:
    """Retry or skip, up to so many statements; BEGIN, COMMIT and SAVEPOINT are statements too."""
    connection = Mortal.connect(conninfo, autocommit=True)
    connection.statements_left = statements
    if command == "retry":
        retry(connection, Thoughts(), chain_id)
    else:
        skip(connection, Thoughts(), chain_id, reason="killed", skipped_by="ada")
