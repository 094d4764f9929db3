"""What the fold keeps: of a chain, of a thought's memory, and of its recalls."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from projections.trust import policy
from projections.trust.policy import START, Signal


@dataclass(slots=True)
class Chain:
    """A chain, as far as its thoughts' trust depends on it.

    ``paused_since`` and ``paused`` are microseconds.  ``confirmed_by`` holds who confirmed it as a
    whole, in UTF-8, for a source may have U+0000 in its name.
    """

    id: UUID
    tenant: str
    agent: str
    completed: bool = False
    has_dead_ends: bool = False
    paused: int = 0
    paused_since: int | None = None
    confirmed_by: set[bytes] = field(default_factory=set[bytes])

    def active_at(self, moment: int) -> int:
        return policy.active_microseconds(moment, self.paused, self.paused_since)


@dataclass(slots=True)
class Memory:
    """What is kept of one thought: its value and the clock of it, in the time of its chain.

    ``branch`` is in UTF-8, None on the trunk.
    """

    thought_id: UUID
    chain_id: UUID
    tenant: str
    sequence: int
    position: int
    parent_thought_id: UUID | None
    branch: bytes | None
    clock: int
    value: int = START
    agent_used: int = 0
    user_confirmed: int = 0
    agent_ignored: int = 0
    user_corrected: int = 0
    superseded: int = 0
    dead_end: bool = False
    last_signal_at: datetime | None = None

    @property
    def counts(self) -> bool:
        """Whether it is live: neither superseded nor in a dead end."""
        return not self.superseded and not self.dead_end

    def value_at(self, active: int) -> int:
        """The score at a time of its chain."""
        return policy.decayed(self.value, active - self.clock)

    def take(self, signal: Signal, active: int, at: datetime) -> None:
        """Let a signal tell."""
        self.value = policy.signalled(self.value_at(active), signal)
        # Clocks of several machines differ: no stretch of time is to decay a value twice.
        self.clock = max(self.clock, active)
        setattr(self, signal.value, getattr(self, signal.value) + 1)
        self.last_signal_at = at


@dataclass(slots=True)
class Recalls:
    """How often a thought was returned to somebody who read its chain, and when last.

    ``stream_id`` is the stream of its chain's recalls.
    """

    thought_id: UUID
    stream_id: UUID
    count: int
    last_at: datetime
