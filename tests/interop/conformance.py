"""Runs the conformance suites of MCP against the server, and tells what passed.

As a command (``scripts/conformance``) it prints a table of each run, and ends with 3 when one is
not as expected.
"""

import contextlib
import json
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.http_server import HttpServer
from tests.acceptance.product import temporary_data_dir
from tests.interop.node import MODULES, run_node

SUITE_SECONDS_MAX = 90
NOT_SCORED = re.compile(r"^  \S (\S+) \(([\w-]+)\)$", re.MULTILINE)
# A warning is a SHOULD that was not heeded: no success either.
FAILURES = ("FAILURE", "WARNING")

# What the older protocol asks of a client over a session; the product keeps none, and asks nothing.
NEED_A_SESSION = frozenset(
    {
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "server-sse-multiple-streams",
    }
)

# What passes on the server as it is shipped; every other scored scenario asks for things by names
# that only the fixtures know, or for what the product does not offer.
PLAIN_LEGACY = frozenset(
    {
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "completion-complete",
        "dns-rebinding-protection",
    }
)
PLAIN_MODERN = frozenset(
    {
        "server-stateless",
        "tools-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "prompts-list",
        "completion-complete",
        "caching",
        "http-header-validation",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
    }
)


@dataclass(frozen=True)
class Suite:
    """A set of scenarios, of which so many are scored, and how it is asked for."""

    name: str
    scored: int
    package: str
    arguments: tuple[str, ...] = ()

    def run(self, url):
        """Runs all scenarios; how each went."""
        script = MODULES / self.package / "dist" / "index.js"
        with tempfile.TemporaryDirectory() as directory:
            asked = ("server", "--url", url, "-o", directory, *self.arguments)
            done = run_node(script, *asked, timeout=SUITE_SECONDS_MAX)
            checks = {
                re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.+", path.parent.name)[1]: path
                for path in sorted(Path(directory).glob("*/checks.json"))
            }
            outcomes = {name: json.loads(path.read_bytes()) for name, path in checks.items()}
        assert outcomes, f"the suite {self.name} did not run:\n{done.stdout}{done.stderr}"
        unscored = dict(NOT_SCORED.findall(done.stdout))
        return [Outcome(name, found, unscored.get(name)) for name, found in outcomes.items()]


@dataclass(frozen=True)
class Outcome:
    """How one scenario went; ``unscored`` is why the suite does not count it."""

    scenario: str
    checks: list = field(repr=False)
    unscored: str | None

    @property
    def counts(self):
        return Counter(check["status"] for check in self.checks)

    def passed(self, *, plain):
        """Whether something succeeded and nothing failed."""
        return self.counts["SUCCESS"] > 0 and not self.failures(plain=plain)

    def failures(self, *, plain):
        """What failed; when *plain* without what the suite itself says it could not test."""
        return [
            f"{check['id']}: {check.get('errorMessage')}"
            for check in self.checks
            if check["status"] in FAILURES
            and not (plain and check.get("details", {}).get("untestable"))
        ]


@dataclass(frozen=True)
class Run:
    """A suite on a server.  What is listed is to pass, else all that is scored and not excused."""

    suite: Suite
    server: str
    listed: frozenset[str] | None = None
    excused: frozenset[str] = frozenset()

    @property
    def name(self):
        return f"{self.suite.name}, {self.server}"

    @property
    def plain(self):
        return self.listed is not None

    def passed(self, outcome):
        return outcome.passed(plain=self.plain)

    def is_judged(self, outcome):
        """Whether it is to pass."""
        if self.listed is not None:
            return outcome.scenario in self.listed
        return not outcome.unscored and outcome.scenario not in self.excused

    def surprises(self, outcomes):
        """What failed and was to pass, and what passed and was not: a list that is out of date."""
        scored = sum(not outcome.unscored for outcome in outcomes)
        if scored != self.suite.scored:
            yield f"{scored} scored scenarios were run, not {self.suite.scored}"
        for missing in sorted((self.listed or set()) - {outcome.scenario for outcome in outcomes}):
            yield f"{missing} was not run"
        for outcome in outcomes:
            if self.is_judged(outcome) and not self.passed(outcome):
                failures = "; ".join(outcome.failures(plain=self.plain))
                yield f"{outcome.scenario} does not pass: {failures or 'it was skipped'}"
            elif not outcome.unscored and self.passed(outcome) and not self.is_judged(outcome):
                yield f"{outcome.scenario} passes; say so in the list"


STATELESS, SESSIONS = "fixtures, stateless", "fixtures, stateful"
PLAIN = "as shipped, stateless"

CONFORMANCE = Suite("0.1.16", 30, "@modelcontextprotocol/conformance")
LEGACY = Suite("2025-11-25", 30, "conformance-next", ("--requirements", "2025-11-25"))
MODERN = Suite("2026-07-28", 37, "conformance-next", ("--requirements", "2026-07-28"))

RUNS = [
    Run(CONFORMANCE, SESSIONS),
    Run(CONFORMANCE, STATELESS, excused=NEED_A_SESSION),
    Run(CONFORMANCE, PLAIN, PLAIN_LEGACY),
    Run(LEGACY, SESSIONS),
    Run(LEGACY, STATELESS, excused=NEED_A_SESSION),
    Run(LEGACY, PLAIN, PLAIN_LEGACY),
    Run(MODERN, STATELESS),
    Run(MODERN, PLAIN, PLAIN_MODERN),
]


class FixturesServer(HttpServer):
    """The product's server with the fixtures over it."""

    def __init__(self, data_dir, *arguments):
        super().__init__(data_dir)
        module = [sys.executable, "-m", "tests.interop.fixtures"]
        self._command = [*module, "--data-dir", str(data_dir), *arguments]


@contextlib.contextmanager
def servers(data_dir):
    """The URLs of the three servers, by what ``Run.server`` calls them."""
    with (
        FixturesServer(data_dir) as stateless,
        FixturesServer(data_dir, "--sessions") as sessions,
        HttpServer(data_dir, "--no-worker") as plain,
    ):
        yield {STATELESS: stateless.url, SESSIONS: sessions.url, PLAIN: plain.url}


def main():
    surprising = 0
    with temporary_data_dir() as data_dir, servers(data_dir) as urls:
        for run in RUNS:
            outcomes = run.suite.run(urls[run.server])
            surprises = list(run.surprises(outcomes))
            print_run(run, outcomes, surprises)
            surprising += len(surprises)
    print("all as expected" if not surprising else f"{surprising} not as expected")
    return 3 if surprising else 0


def print_run(run, outcomes, surprises):
    print(run.name)
    for outcome in outcomes:
        if run.plain and not run.is_judged(outcome) and not outcome.unscored:
            continue
        counts = outcome.counts
        failed = len(outcome.failures(plain=run.plain))
        print(
            f"  {outcome.scenario:<46} {counts['SUCCESS']:>3} passed {failed:>3} failed"
            f"  {verdict(run, outcome)}"
        )
    for surprise in surprises:
        print(f"  NOT AS EXPECTED: {surprise}")
    print(f"  {summary(run, outcomes)}\n")


def verdict(run, outcome):
    if run.is_judged(outcome):
        return "ok" if run.passed(outcome) else "FAILED"
    return f"not scored ({outcome.unscored})" if outcome.unscored else "needs a session"


def summary(run, outcomes):
    judged = [outcome for outcome in outcomes if run.is_judged(outcome)]
    passed = sum(map(run.passed, judged))
    others = sum(not outcome.unscored for outcome in outcomes) - len(judged)
    why = "need a fixture or what is not offered here" if run.plain else "need a session"
    return f"{passed} of {len(judged)} scenarios pass" + (
        f"; {others} more {why}" if others else ""
    )


if __name__ == "__main__":
    sys.exit(main())
