"""Measure trust: how fast it is folded, and how far it tells right reasoning from wrong.

The recorded solutions of the reasoning traces say which of them are right.  The ledger is told of
half of the problems, by chance, through the use case of feedback; then the area under the curve
(AUC: how often a right solution is trusted more than a wrong one, ties counting half) is printed
for those it was told of, and for the others.
"""

import asyncio
import gzip
import json
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any
from uuid import UUID

from bench_project import REPOSITORY, database_of_its_own
from bench_recall import Chain, id_of, record

from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.events import Judgement, Scope
from ledger.header import Context
from ledger.judging import Feedback, judge
from projections.catalogue import ALL
from projections.follower import Follower
from projections.generations import ensure_live, take_lead
from projections.session import configure
from projections.trust.projection import Trust
from projections.workers import catch_up_all

TRACES = REPOSITORY.parent / "shared" / "data" / "reasoning_traces.jsonl.gz"
SOLVED = "gsm8k_models"
CATCH_UP_SECONDS_MAX = 600.0

SELECT_CHAINS = "SELECT chain_id, score_millionths FROM live.chain_trust WHERE score IS NOT NULL"
SELECT_AGENTS = "SELECT agent, score_millionths FROM live.agent_trust WHERE score IS NOT NULL"


def main() -> None:
    """Run all of it on a server of its own."""
    if not TRACES.exists():
        sys.exit(f"scripts/bench trust: the reasoning traces are not there: {TRACES}")
    with database_of_its_own() as database:
        asyncio.run(_measure(database, _traces()))


async def _measure(database: Database, traces: Sequence[Chain]) -> None:
    right = {id_of(chain): chain[-1]["meta"]["correct"] for chain in traces if _is_solved(chain)}
    solvers = {id_of(chain): _solver(chain) for chain in traces if _is_solved(chain)}
    async with Ledger(database) as ledger:
        # Each solver is an agent of its own.
        for solver, chains in groupby(sorted(traces, key=_solver), _solver):
            await record(ledger, list(chains), actor=solver)
        _print_rate(database)
        scores, _ = _scores(database)
        print("AUC of the score of a chain against its being right:")
        print(f"  told of nothing: {_auc(scores, right):.3f} ({len(right)} solutions)")
        told, others = _halves(traces)
        for chain_id in told:
            feedback = (
                Feedback(judgement=Judgement.CONFIRMED, scope=Scope.CHAIN, source="bench")
                if right[chain_id]
                else Feedback(judgement=Judgement.CORRECTED, source="bench")
            )
            await judge(ledger, Context(actor="bench"), chain_id, feedback)
    scores, agents = _scores(database)
    print("  told of one half of the problems:")
    print(f"    that half: {_auc(scores, _of(right, told)):.3f} ({len(told)})")
    print(f"    the other half, by the chain: {_auc(scores, _of(right, others)):.3f}", end="")
    by_agent = {chain_id: agents[solvers[chain_id]] for chain_id in others}
    print(f", by its agent: {_auc(by_agent, _of(right, others)):.3f} ({len(others)})")


def _print_rate(database: Database) -> None:
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        configure(connection)
        generation = ensure_live(connection, Trust())
        assert take_lead(connection, generation)
        follower = Follower(connection, Trust(), generation)
        follower.lead()
        start, events = time.perf_counter(), 0
        while applied := follower.step():
            events += applied
        seconds = time.perf_counter() - start
    print(f"{events:,} events folded into trust in {seconds:.1f} s: {events / seconds:,.0f}/s")


# -- The traces -----------------------------------------------------------------------------------


def _traces() -> list[Chain]:
    chains: dict[str, Chain] = {}
    with gzip.open(TRACES, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            operation: dict[str, Any] = json.loads(line)
            chains.setdefault(operation["chain"], []).append(operation)
    return list(chains.values())


def _is_solved(chain: Chain) -> bool:
    return chain[0]["src"] == SOLVED


def _solver(chain: Chain) -> str:
    return "-".join(chain[0]["chain"].split("-")[2:]) if _is_solved(chain) else "others"


def _halves(traces: Iterable[Chain]) -> tuple[list[UUID], list[UUID]]:
    """The solutions of one half of the problems, by chance, and those of the other."""
    problems: dict[str, list[UUID]] = {}
    for chain in filter(_is_solved, traces):
        problem = "-".join(chain[0]["chain"].split("-")[:2])
        problems.setdefault(problem, []).append(id_of(chain))
    names = sorted(problems)
    random.Random(11).shuffle(names)
    half = len(names) // 2
    told, others = (
        [chain_id for name in some for chain_id in problems[name]]
        for some in (names[:half], names[half:])
    )
    return told, others


# -- Scores ---------------------------------------------------------------------------------------


def _scores(database: Database) -> tuple[dict[UUID, int], dict[str, int]]:
    """Those of chains and of agents now, when all that is recorded is in them."""
    assert catch_up_all(database.connector(Role.PROJECTOR), ALL, CATCH_UP_SECONDS_MAX) == []
    with closing(database.connector(Role.READER).connect()) as reader:
        chains = dict(reader.execute(SELECT_CHAINS).fetchall())
        return chains, dict(reader.execute(SELECT_AGENTS).fetchall())


def _of(right: Mapping[UUID, bool], chain_ids: Iterable[UUID]) -> dict[UUID, bool]:
    return {chain_id: right[chain_id] for chain_id in chain_ids}


def _auc(scores: Mapping[UUID, int], right: Mapping[UUID, bool]) -> float:
    good = [scores[chain_id] for chain_id, is_right in right.items() if is_right]
    bad = [scores[chain_id] for chain_id, is_right in right.items() if not is_right]
    more = sum((one > other) + (one == other) / 2 for one in good for other in bad)
    return more / (len(good) * len(bad))


if __name__ == "__main__":
    main()
