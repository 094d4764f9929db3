"""Whether the read models are what the log says: built, led, not behind, nothing parked."""

from collections.abc import Iterator

from ledger.health import Check, Look, Seen, failed, ok, warning
from projections import status
from projections.catalogue import ALL
from projections.embeddings import status as embedding
from projections.embeddings.errors import MODEL_SETTING
from projections.embeddings.lead import FAILED, IS_READY, NOT_INSTALLED
from projections.embeddings.status import sentence
from projections.status import LAG_EVENTS_MAX, GenerationStatus

LAG_SECONDS_MAX = 10.0
START_WORKER = "start a worker: `thought-ledger projections run`, or `thought-ledger serve`"


def _followed(look: Look) -> Iterator[Seen]:
    live = {row.name: row for row in _live(look)}
    for projection in ALL:
        if projection.name not in live:
            yield warning(f"{projection.name} has not been built", START_WORKER)
        else:
            yield _progress(look, live[projection.name])


def _progress(look: Look, row: GenerationStatus) -> Seen:
    if row.position > row.head:
        return failed(
            f"{row.name} is at position {row.position} and the log ends at {row.head}: the log was "
            "restored from an older backup",
            f"run `thought-ledger projections rebuild {row.name} --fresh --promote`",
        )
    events = f"{'over ' if row.lag_events >= LAG_EVENTS_MAX else ''}{row.lag_events:,}"
    behind = (
        f"{events} events and {row.lag_seconds:.1f} s behind the log"
        if row.lag_events
        else f"at position {row.position}, the end of the log"
    )
    if row.leader_pid is not None:
        fact = f"{row.name} is {behind}; database session {row.leader_pid} leads it"
        if row.lag_seconds > LAG_SECONDS_MAX:
            return warning(
                fact,
                "look again in a minute: if `thought-ledger projections status` does not come "
                "closer, look at the worker's log and the load of the database",
            )
        return ok(fact)
    fact = f"{row.name} is {behind}; nobody leads it"
    if row.lag_events:
        return failed(fact, START_WORKER)
    # Embedded, workers come and go with the servers of agents.  Elsewhere one is meant to be there.
    return ok(fact) if look.data_dir is not None else warning(fact, START_WORKER)


def _versions(look: Look) -> Iterator[Seen]:
    versions = {projection.name: projection.version for projection in ALL}
    wrong = [
        row
        for row in _live(look)
        if row.name in versions and row.projection_version != versions[row.name]
    ]
    for row in wrong:
        yield _other_version(row, versions[row.name])
    if not wrong:
        yield ok("every read model was built by this version of the code")


def _other_version(row: GenerationStatus, version: int) -> Seen:
    fact = (
        f"{row.name}_g{row.generation} was built by version {row.projection_version} of "
        f"{row.name}, and this thought-ledger has version {version}"
    )
    if row.projection_version > version:
        return failed(fact, "upgrade this thought-ledger")
    todo = (
        f"`thought-ledger projections rebuild {row.name}`, then `diff` and `promote`, switch "
        "readers to this version"
    )
    if row.leader is None:
        return failed(f"{fact}; nobody keeps it up", f"now: {todo}")
    return warning(f"{fact}; {row.leader} keeps it up", f"when you want it: {todo}")


def _others(look: Look) -> Iterator[Seen]:
    """What is there beside the live ones: forgotten builds, and kept ones nobody keeps up."""
    found = status.look(look.connection).generations
    forgotten = [row for row in found if row.state == "building" and row.leader_pid is None]
    left = [row for row in found if row.state == "kept" and row.leader_pid is None]
    for row in forgotten:
        yield warning(
            f"{row.name}_g{row.generation} was begun and never promoted",
            f"run `thought-ledger projections promote {row.name}`, or `thought-ledger projections "
            f"retire {row.name} --generation {row.generation}`",
        )
    for row in left:
        yield warning(
            f"{row.name}_g{row.generation} is kept to go back to, and nobody keeps it up",
            f"start a worker of version {row.projection_version} of {row.name}, or run "
            f"`thought-ledger projections retire {row.name} --generation {row.generation}`",
        )
    if not forgotten and not left:
        yield ok("no generation is forgotten beside the live ones")


def _parked(look: Look) -> Iterator[Seen]:
    wrong = False
    for row in _live(look):
        if row.parked:
            wrong = True
            yield failed(
                f"{row.parked} {'chain is' if row.parked == 1 else 'chains are'} parked in "
                f"{row.name}: what was recorded in them since is not in the read model",
                f"`thought-ledger projections parked {row.name}` lists them, and `... show "
                f"{row.name} CHAIN` says of each why, and what to do",
            )
    if not wrong:
        yield ok("no chain is parked")


def _embeddings(look: Look) -> Iterator[Seen]:
    status = embedding.look(look.connection)
    fact = f"embedding is {sentence(status)}"
    if status.state == FAILED:
        yield warning(fact, "see to the reason; it is tried again by itself, and search has words")
    elif status.state == NOT_INSTALLED:
        yield warning(fact, f"install it, or set {MODEL_SETTING} to off to do without")
    elif status.reason and status.state == IS_READY:
        yield warning(fact, f"correct {MODEL_SETTING}, or install that model")
    elif status.left_out:
        yield warning(
            fact, "`SELECT * FROM vectors.left_out` says why; each start of it tries them once more"
        )
    else:
        yield ok(fact)


def _live(look: Look) -> list[GenerationStatus]:
    return [row for row in status.look(look.connection).generations if row.state == "live"]


CHECKS = (
    Check("read models", _followed),
    Check("versions", _versions),
    Check("generations", _others),
    Check("parked", _parked),
    Check("embeddings", _embeddings),
)
