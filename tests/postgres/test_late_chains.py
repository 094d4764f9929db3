"""However late the events of a chain come, every read model comes to what a rebuild comes to."""

from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.database import Role
from projections.catalogue import ALL
from projections.retrying import retry_all
from tests.postgres.histories import CHAINS_MAX, Histories, steps
from tests.postgres.parking import Buggy, contents, parked_rows
from tests.postgres.projecting import catch_up, follow

# Between two of its turns others have theirs.
IDLE_AS_LONG_AS_IT_TAKES = "SET idle_session_timeout = 0"


@pytest.fixture(params=ALL, ids=lambda projection: projection.name)
def buggy(request):
    return Buggy(request.param)


@pytest.fixture
def lived(projector, buggy):
    """Generation 1, which parks what it is told to."""
    leader = follow(projector, buggy)
    projector.execute(IDLE_AS_LONG_AS_IT_TAKES)
    return leader


@pytest.fixture
def rebuilt(database, buggy, lived):
    """Generation 2, which never parks anything."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        leader = follow(connection, buggy._projection, number=2)
        connection.execute(IDLE_AS_LONG_AS_IT_TAKES)
        yield leader


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    history=st.lists(steps(), min_size=8, max_size=30),
    more=st.lists(steps(), max_size=15),
    withheld=st.dictionaries(st.integers(0, CHAINS_MAX - 1), st.integers(1, 6), min_size=1),
    limit=st.integers(1, 40),
)
def test_chains_whose_events_come_late_come_to_what_a_rebuild_comes_to(
    writer, admin, buggy, lived, rebuilt, history, more, withheld, limit
):
    # The log cannot be emptied: each example goes on from the one before.
    histories = Histories(writer)
    histories.play(history)
    for number, version in withheld.items():
        if number in histories.chains:
            buggy.fail(histories.chains[number].id, version)
    catch_up(lived, limit)
    histories.play(more)
    catch_up(lived, limit)
    buggy.mend()

    retried = list(retry_all(admin, buggy))

    assert all(each.parked is None for each in retried)
    assert parked_rows(admin, buggy.name) == []
    lived.lead()
    catch_up(lived, limit)
    catch_up(rebuilt)
    schemas = (f"{buggy.name}_g1", f"{buggy.name}_g2")
    first, second = (contents(admin, buggy, schema) for schema in schemas)
    assert first == second
