"""``python -m tests.postgres.killing URL WORK N``: works on read models until its N-th exchange.

An exchange with the server is a statement, a BEGIN, a COMMIT, a piece of a COPY.  At that one it
is killed, by SIGKILL: when the server has answered, or (with ``before``) before it is asked.
Without N it prints how many exchanges the work takes.
"""

import os
import signal
import sys
from contextlib import closing

import psycopg

from ledger.database import Database, Role
from ledger.settings import Settings
from projections.candidate import open_candidate
from projections.follower import Follower
from projections.generations import ensure_live, take_lead
from projections.operations import promote_generation, roll_back
from projections.session import configure
from projections.thoughts import Thoughts

STEP_EVENTS = 7
BUILD_EVENTS_PER_SECOND = 1_000


class Fate:
    """Counts the exchanges of this process and ends it at one of them."""

    def __init__(self, fatal: int | None, *, before: bool) -> None:
        self.count = 0
        self.fatal = fatal
        self.before = before

    def hang_over(self, connection_class: type[psycopg.Connection]) -> None:
        exchange = connection_class.wait

        def fatal_exchange(*args, **kwargs):
            self.count += 1
            if self.count == self.fatal and self.before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = exchange(*args, **kwargs)
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        connection_class.wait = fatal_exchange


def step(database: Database) -> None:
    """Catch the live generation up, a few events at a time."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        configure(connection)
        generation = ensure_live(connection, Thoughts())
        # The one killed before may still be on its way out.
        while not take_lead(connection, generation):
            pass
        follower = Follower(connection, Thoughts(), generation)
        follower.lead()
        while follower.step(STEP_EVENTS):
            pass


def rebuild(database: Database) -> None:
    """Build a generation beside the live one, and switch readers to it."""
    connector = database.connector(Role.PROJECTOR)
    with open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up(events_per_second_max=BUILD_EVENTS_PER_SECOND)
    promote_generation(connector, Thoughts())
    roll_back(connector, Thoughts())


def main() -> None:
    url, work, *rest = sys.argv[1:]
    fate = Fate(int(rest[0]) if rest else None, before="before" in rest)
    with Database(Settings(database_url=url)) as database:
        # From here on, so that opening the database is not counted.
        fate.hang_over(psycopg.Connection)
        {"step": step, "rebuild": rebuild}[work](database)
    print(fate.count)


if __name__ == "__main__":
    main()
