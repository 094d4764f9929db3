"""When so much is recorded at once that embedding, which can wait, stands aside.

Threads that run only when nobody else would still cost a busy writer a tick of the kernel's clock
now and then; measured: docs/operations-embeddings.md.
"""

# More than a model makes of it, or about as much: what is recorded now is embedded later anyway.
EVENTS_A_SECOND = 100.0
# Rates of shorter times say little.
SAMPLE_SECONDS = 0.1
# Who records as fast for longer does it always, and is embedded beside.
STAND_ASIDE_SECONDS_MAX = 60.0


class Bursts:
    """Follows the head of the log; times are those of ``time.monotonic``."""

    def __init__(self) -> None:
        self._sampled: tuple[float, int] | None = None
        self._began_at: float | None = None

    def are_on(self, head: int, now: float) -> bool:
        """Whether to stand aside at *now*, when the log's last position is *head*."""
        if self._sampled is None:
            self._sampled = now, head
            return False
        at, before = self._sampled
        if now - at >= SAMPLE_SECONDS:
            self._sampled = now, head
            if head - before < EVENTS_A_SECOND * (now - at):
                self._began_at = None
            elif self._began_at is None:
                self._began_at = at
        return self._began_at is not None and now - self._began_at < STAND_ASIDE_SECONDS_MAX
