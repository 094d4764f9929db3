"""The conformance suites of MCP: all that is scored with fixtures, and what needs none without."""

import pytest

from tests.interop.conformance import RUNS, servers


@pytest.fixture(scope="module")
def urls(shared_data_dir):
    with servers(shared_data_dir) as urls:
        yield urls


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_suite_passes(run, urls):
    outcomes = run.suite.run(urls[run.server])

    assert list(run.surprises(outcomes)) == []
    assert any(run.is_judged(outcome) for outcome in outcomes)
