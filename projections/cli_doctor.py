"""``thought-ledger doctor``: what is well, what is not, and what to do about it."""

from collections.abc import Sequence

import typer

import ledger.health_guards
import ledger.health_log
import ledger.health_server
import projections.health
from ledger.display import printable, printing
from ledger.health import Finding, State, examine, looking
from ledger.options import DatabaseUrl, DataDir, Json, settings_of
from projections.cli_words import print_json

CHECKS = (
    *ledger.health_server.CHECKS,
    *ledger.health_guards.CHECKS,
    *ledger.health_log.CHECKS,
    *projections.health.CHECKS,
)
NO = 3


def doctor(
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Say what is well and what is not, and what to do about it.

    It changes nothing.  Exits 0 if nothing has failed, 3 if something has, 2 if it cannot look.
    """
    with looking(settings_of(data_dir, database_url)) as look:
        found = examine(look, CHECKS)
    with printing():
        if as_json:
            for finding in found:
                print_json(finding)
        else:
            _print(found)
    if any(finding.state is State.FAILED for finding in found):
        raise typer.Exit(NO)


def _print(found: Sequence[Finding]) -> None:
    width = max(len(finding.check) for finding in found)
    for finding in found:
        print(f"{finding.state:<7}  {finding.check:<{width}}  {printable(finding.fact)}")
        if finding.todo:
            print(f"{'':<7}  {'':<{width}}  to do: {printable(finding.todo)}")
