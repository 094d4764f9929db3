"""An outage of the database, as long as it lasts: what of it was said, and how long to wait."""

from collections import Counter

BACKOFF_SECONDS_MIN = 0.05
BACKOFF_SECONDS_MAX = 1.0


class Outage:
    """Each reason for it is said once, and the pauses grow, until it ends."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._pause_seconds = BACKOFF_SECONDS_MIN

    def is_news(self, reason: str, *, time: int = 1) -> bool:
        """Whether *reason* is to be said: when it comes for that time."""
        self._times[reason] += 1
        return self._times[reason] == time

    def pause(self) -> float:
        """How many seconds to wait now; the next time it is more."""
        seconds = self._pause_seconds
        self._pause_seconds = min(2 * seconds, BACKOFF_SECONDS_MAX)
        return seconds

    def end(self) -> None:
        self._times.clear()
        self._pause_seconds = BACKOFF_SECONDS_MIN
