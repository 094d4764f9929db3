"""A reader that follows the log while others write, as a projection's worker does."""

import threading
import time
from collections import defaultdict
from typing import Self
from uuid import UUID

from ledger import log
from ledger.database import Database, Role
from ledger.serialization import Recorded

SECONDS_MAX = 60
LISTEN = "LISTEN ledger_events"


class Follower:
    """Reads on from position to position in a thread, until it has seen so many events."""

    def __init__(self, database: Database, events: int) -> None:
        self.seen: list[Recorded] = []
        self._database = database
        self._events = events
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._events = 0
        self._thread.join(SECONDS_MAX + 5)

    def _follow(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        with self._database.connector(Role.READER).connect() as connection:
            connection.execute(LISTEN)
            while len(self.seen) < self._events and time.monotonic() < deadline:
                after = self.seen[-1].position if self.seen else 0
                page = log.read(connection, after=after, limit=100)
                self.seen += page
                if not page:
                    list(connection.notifies(timeout=0.5, stop_after=1))

    @property
    def positions(self) -> list[int]:
        return [recorded.position for recorded in self.seen]

    @property
    def versions(self) -> dict[UUID, list[int]]:
        """The versions of every chain in the order they were seen."""
        found: dict[UUID, list[int]] = defaultdict(list)
        for recorded in self.seen:
            found[recorded.header.chain_id].append(recorded.header.version)
        return dict(found)
