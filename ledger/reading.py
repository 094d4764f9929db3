"""A chain read in bounded pages: its shape from the folded chain, its texts from the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast
from uuid import UUID

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.chain_state import Status
from ledger.errors import BranchNotFoundError
from ledger.events import ChainStarted, ThoughtRecorded
from ledger.header import Header
from ledger.limits import PAGE_THOUGHTS_MAX
from ledger.serialization import Recorded
from ledger.steps import Step, Steps

# A page ends with the event that takes it over this: 100 thoughts may have 100 MiB.
PAGE_BYTES_MAX = 2 * 2**20
# A page of a chain with more thoughts on branches has only the branches of its own thoughts.
BRANCHED_THOUGHTS_MAX = 1_000
# How many thoughts are read at once from a chain's end backwards; each may have over 1 MiB.
READ_BACK_THOUGHTS = 10
# More than any so many thoughts have: none of them may be left out.
READ_BACK_BYTES_MAX = 2**31


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which thoughts of a chain: all that every given limit allows.

    ``start`` is a sequence.  ``at_version`` None is the chain as it is now.
    """

    branch_id: str | None = None
    last: int | None = None
    start: int | None = None
    limit: int | None = None
    at_version: int | None = None
    structure_only: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thought is: its step, and the sequences of the thoughts it has to do with."""

    sequence: int
    step: Step
    parent: int | None
    revises: int | None
    revised_by: int | None
    abandoned: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What a thought says, and who recorded it."""

    header: Header
    event: ThoughtRecorded


@dataclass(frozen=True, slots=True)
class Page:
    """Some thoughts of a chain in order; ``following`` is the sequence the next page starts with.

    ``said`` is None for each when only the structure was wanted.  ``branches`` has the sequences on
    each branch, and ``closed`` the outcomes of branches; ``is_part``: both only for these thoughts.
    """

    chain_id: UUID
    started: ChainStarted
    status: Status
    version: int
    thought_count: int
    created_at: datetime
    updated_at: datetime
    branches: Mapping[str, list[int]]
    closed: Mapping[str, str]
    is_part: bool
    thoughts: list[tuple[Place, Said | None]]
    following: int | None


async def read_page(ledger: Ledger, chain_id: UUID, wanted: Wanted) -> Page:
    """The thoughts that are wanted, as far as one page holds them.

    Raises ChainNotFoundError, BranchNotFoundError, VersionNotFoundError.
    """
    if wanted.at_version is None:
        chain = await ledger.chain(chain_id)
    else:
        chain = await ledger.chain_at(chain_id, wanted.at_version)
    # Until the next await nobody else changes the chain.
    branches = _branches(enumerate(chain.steps.recorded, start=1))
    if wanted.branch_id is not None and wanted.branch_id not in branches:
        raise BranchNotFoundError(chain_id, wanted.branch_id)
    sequences = _sequences(chain, branches, wanted)
    limit = min(wanted.limit or PAGE_THOUGHTS_MAX, PAGE_THOUGHTS_MAX)
    places = _places(chain.steps, sequences[:limit])
    status, version, count = chain.status, chain.version, chain.thought_count
    times, closed = (chain.created_on, chain.modified_on), dict(chain.closed)
    following = sequences[limit] if len(sequences) > limit else None

    started, thoughts = await _read(ledger, chain_id, places, wanted)
    if len(thoughts) < len(places):
        following = places[len(thoughts)].sequence
    if is_part := sum(map(len, branches.values())) > BRANCHED_THOUGHTS_MAX:
        branches = _branches((place.sequence, place.step) for place, _ in thoughts)
        closed = {branch: closed[branch] for branch in branches if branch in closed}
    return Page(
        chain_id=chain_id,
        started=started,
        status=status,
        version=version,
        thought_count=count,
        created_at=times[0],
        updated_at=times[1],
        branches=branches,
        closed=closed,
        is_part=is_part,
        thoughts=thoughts,
        following=following,
    )


async def read_end(
    ledger: Ledger, chain_id: UUID, *, branch_id: str | None = None, last: int, characters_max: int
) -> Page:
    """The *last* thoughts, or fewer: only the last of all may take them over *characters_max*.

    Raises ChainNotFoundError, BranchNotFoundError.
    """
    wanted = Wanted(branch_id=branch_id, last=last, structure_only=True)
    page = await read_page(ledger, chain_id, wanted)
    places = [place for place, _ in page.thoughts]
    thoughts: list[tuple[Place, Said | None]] = []
    characters = 0
    while places:
        some, places = places[-READ_BACK_THOUGHTS:], places[:-READ_BACK_THOUGHTS]
        for place, said in reversed(await _said(ledger, chain_id, some, READ_BACK_BYTES_MAX)):
            characters += len(said.event.text)
            if thoughts and characters > characters_max:
                return replace(page, thoughts=thoughts[::-1])
            thoughts.append((place, said))
    return replace(page, thoughts=thoughts[::-1])


async def _said(
    ledger: Ledger, chain_id: UUID, places: list[Place], bytes_max: int
) -> list[tuple[Place, Said]]:
    versions = [place.step.version for place in places]
    return _paired(places, await ledger.recorded(chain_id, versions, bytes_max=bytes_max))


async def _read(
    ledger: Ledger, chain_id: UUID, places: list[Place], wanted: Wanted
) -> tuple[ChainStarted, list[tuple[Place, Said | None]]]:
    versions = [] if wanted.structure_only else [place.step.version for place in places]
    first, *recorded = await ledger.recorded(chain_id, [1, *versions], bytes_max=PAGE_BYTES_MAX)
    started = cast("ChainStarted", first.event)
    if wanted.structure_only:
        return started, [(place, None) for place in places]
    if places and not recorded:  # a chain's start may fill a page by itself
        recorded = await ledger.recorded(chain_id, versions, bytes_max=PAGE_BYTES_MAX)
    return started, [*_paired(places, recorded)]


def _paired(places: list[Place], recorded: list[Recorded]) -> list[tuple[Place, Said]]:
    """The places of what was read, which may be fewer than asked for."""
    said = [Said(one.header, cast("ThoughtRecorded", one.event)) for one in recorded]
    return list(zip(places, said, strict=False))


def _branches(placed: Iterable[tuple[int, Step]]) -> dict[str, list[int]]:
    """The sequences on each branch, of steps with theirs."""
    branches: dict[str, list[int]] = {}
    for sequence, step in placed:
        if step.branch_id is not None:
            branches.setdefault(step.branch_id, []).append(sequence)
    return branches


def _sequences(
    chain: ThoughtChain, branches: Mapping[str, list[int]], wanted: Wanted
) -> list[int] | range:
    sequences: list[int] | range = range(1, chain.thought_count + 1)
    if wanted.branch_id is not None:
        sequences = branches[wanted.branch_id]
    if wanted.last is not None:
        sequences = sequences[-wanted.last :]
    start = wanted.start
    return sequences if start is None else [one for one in sequences if one >= start]


def _places(steps: Steps, sequences: list[int] | range) -> list[Place]:
    revised_by = _revised_by(steps)
    abandoned = steps.abandoned()
    places: list[Place] = []
    for sequence in sequences:
        step = steps.recorded[sequence - 1]
        parent_id, revises_id = step.parent_thought_id, step.revises_thought_id
        places.append(
            Place(
                sequence,
                step,
                None if parent_id is None else steps.sequences.get(parent_id),
                None if revises_id is None else steps.sequences.get(revises_id),
                revised_by.get(step.thought_id),
                step.thought_id in abandoned,
            )
        )
    return places


def _revised_by(steps: Steps) -> dict[UUID, int]:
    """The sequence of the latest revision of each revised thought."""
    return {
        step.revises_thought_id: sequence
        for sequence, step in enumerate(steps.recorded, start=1)
        if step.revises_thought_id is not None
    }
