from hypothesis import given
from hypothesis import strategies as st

from projections.embeddings.bursts import (
    EVENTS_A_SECOND,
    SAMPLE_SECONDS,
    STAND_ASIDE_SECONDS_MAX,
    Bursts,
)

FAST = round(EVENTS_A_SECOND * 20)
SLOW = round(EVENTS_A_SECOND / 5)


def asides(rates, *, step=0.05):
    """Seconds stood aside while *rates*, (events a second, seconds), are recorded in turn."""
    bursts, head, now, aside = Bursts(), 0.0, 1_000.0, 0.0
    for rate, seconds in rates:
        for _ in range(round(seconds / step)):
            head += rate * step
            now += step
            aside += step * bursts.are_on(round(head), now)
    return aside


def test_nothing_stands_aside_for_agents_at_their_usual_rate():
    assert asides([(SLOW, 30.0)]) == 0.0


def test_a_burst_is_seen_at_once_and_its_end_too():
    aside = asides([(0, 5.0), (FAST, 10.0), (0, 30.0)])

    assert 10.0 - 2 * SAMPLE_SECONDS < aside < 10.0 + 2 * SAMPLE_SECONDS


def test_who_records_fast_for_long_is_embedded_beside():
    assert asides([(FAST, 300.0)]) < STAND_ASIDE_SECONDS_MAX + 1.0


def test_after_a_rest_a_burst_is_stood_aside_for_again():
    long = STAND_ASIDE_SECONDS_MAX * 2

    aside = asides([(FAST, long), (SLOW, 2.0), (FAST, long)])

    assert aside > 2 * STAND_ASIDE_SECONDS_MAX - 1.0


@given(st.lists(st.tuples(st.integers(0, FAST), st.floats(0.1, 5.0)), max_size=8))
def test_a_log_that_rests_is_embedded_whatever_was_before(rates):
    before = asides(rates)

    assert asides([*rates, (0, 10.0)]) <= before + 5 * SAMPLE_SECONDS
