"""Trust policy 1: additive, in integer millionths.  Numbers in, numbers out.

A thought starts at 0.5.  A signal first decays the value to its moment, then adds its delta, then
sets the clock.  A recall restarts the clock from the decayed value: as this decay has no memory,
that is the curve the value is on already, so a recall changes neither, and is only counted.  To
round in between would wear out, or hold up, what is recalled often.

``projections/sql/trust.sql`` says the same in SQL, for scores of now; the tests hold them together.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from enum import StrEnum

POLICY = 1

MILLION = 1_000_000
START = 500_000
FLOOR = 200_000
HALF_LIFE_MICROSECONDS = 90 * 24 * 60 * 60 * MILLION
# After so many nothing is left of a million; a power of more could be too small for a float.
HALF_LIVES_MAX = 64

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Signal(StrEnum):
    """What an event says of a thought."""

    AGENT_USED = "agent_used"
    USER_CONFIRMED = "user_confirmed"
    AGENT_IGNORED = "agent_ignored"
    USER_CORRECTED = "user_corrected"
    SUPERSEDED = "superseded"


DELTAS = {
    Signal.AGENT_USED: 50_000,
    Signal.USER_CONFIRMED: 100_000,
    Signal.AGENT_IGNORED: -20_000,
    Signal.USER_CORRECTED: -150_000,
    Signal.SUPERSEDED: -50_000,
}


class Level(StrEnum):
    """What a score amounts to; never stored."""

    ARCHIVED = "archived"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    PROMOTED = "promoted"


# Each level reaches up to, and not including, its bound.
BOUNDS = (
    (200_000, Level.ARCHIVED),
    (400_000, Level.LOW),
    (700_000, Level.MEDIUM),
    (800_000, Level.HIGH),
)


def decayed(value: int, elapsed_microseconds: int) -> int:
    """What is left of a value; at or below the floor it does not move."""
    if value <= FLOOR or elapsed_microseconds <= 0:
        return value
    half_lives = min(elapsed_microseconds / HALF_LIFE_MICROSECONDS, HALF_LIVES_MAX)
    # Half up.  The power is only exact, and the half only met, after whole half-lives.
    return FLOOR + int((value - FLOOR) * 0.5**half_lives + 0.5)


def signalled(value: int, signal: Signal) -> int:
    """A value, decayed to the moment of the signal, after it."""
    return min(max(value + DELTAS[signal], 0), MILLION)


def level_of(score: int) -> Level:
    """The level of a score, by its millionths and not by the digits that are shown."""
    return next((level for bound, level in BOUNDS if score < bound), Level.PROMOTED)


def mean(scores: Collection[int]) -> int | None:
    """The mean, half up; None of nothing."""
    count = len(scores)
    return (2 * sum(scores) + count) // (2 * count) if count else None


def active_microseconds(moment: int, paused_microseconds: int, paused_since: int | None) -> int:
    """The time of a chain: that of the world without the pauses of the chain."""
    if paused_since is not None:
        moment = min(moment, paused_since)
    return moment - paused_microseconds


def microseconds(moment: datetime) -> int:
    """A moment as microseconds since 1970, exactly."""
    return (moment - EPOCH) // MICROSECOND


def shown(millionths: int) -> float:
    """A score as it is told: with four digits, half up."""
    return (millionths + 50) // 100 / 10_000
