"""An outage of the database, as long as it lasts: what of it was said, and how long to wait."""

from collections import Counter

from ledger.errors import reason_of
from ledger.said import Said

BACKOFF_SECONDS_MIN = 0.05
BACKOFF_SECONDS_MAX = 1.0


class Outage:
    """Each reason for it is said once, and the pauses grow, until it ends."""

    def __init__(self, **facts: object) -> None:
        """*facts* are of whose outage it is."""
        self._facts = facts
        self._times: Counter[str] = Counter()
        self._pause_seconds = BACKOFF_SECONDS_MIN

    def news(self, error: Exception, *, time: int = 1) -> Said | None:
        """What is to be said of *error*: something when its reason comes for that time."""
        reason = reason_of(error)
        self._times[reason] += 1
        if self._times[reason] != time:
            return None
        sentence = f"the database failed ({reason}); trying again"
        return Said(sentence, event="database_failed", error=reason, **self._facts)

    def pause(self) -> float:
        """How many seconds to wait now; the next time it is more."""
        seconds = self._pause_seconds
        self._pause_seconds = min(2 * seconds, BACKOFF_SECONDS_MAX)
        return seconds

    def end(self) -> None:
        self._times.clear()
        self._pause_seconds = BACKOFF_SECONDS_MIN
