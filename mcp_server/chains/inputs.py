"""The arguments of the toolset ``chains``, as lenient as those of the drop-in tool."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from ledger.chain_state import Status
from ledger.events import Outcome
from ledger.reading import Wanted
from ledger.reasoning import BranchThought, Reference
from ledger.thought import Thought
from mcp_server.chains.values import to_after, to_choice, to_millionths, to_name, to_note, to_notes
from mcp_server.inputs import (
    Arguments,
    InputError,
    ThoughtInput,
    read_thought,
    thought_of,
    to_boolean,
    to_identifier,
    to_integer,
    to_thought,
    to_uuid,
)
from projections.lists import LIST_CHAINS_MAX, ChainFilter

LIST_CHAINS_DEFAULT = 20
NO_CHAIN = UUID(int=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class AddInput:
    """One call of ``add_thought``: the drop-in's fields, and what else it says."""

    said: ThoughtInput
    thought: Thought
    session_id: str | None
    expected_version: int | None
    warnings: tuple[str, ...]
    request_id: str | None

    def require_chain_for_version(self) -> None:
        """Refuse a version of no chain in particular.  Raises InputError."""
        if self.expected_version is not None and self.said.chain_id is None:
            raise InputError(("expectedVersion", "needs the chain_id of the chain it speaks of"))


@dataclass(frozen=True, kw_only=True, slots=True)
class StartInput:
    """One call of ``start_thought_chain``."""

    session_id: str | None
    parent_chain_id: UUID | None
    title: str | None
    request_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadInput:
    """One call of ``get_thought_chain``."""

    chain_id: UUID
    wanted: Wanted
    request_id: None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListInput:
    """One call of ``list_thought_chains``."""

    wanted: ChainFilter
    request_id: None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviseInput:
    """One call of ``revise_thought``."""

    chain_id: UUID
    reference: Reference
    text: str
    reason: str | None
    request_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BranchInput:
    """One call of ``branch_thought``; one that goes on with a branch need not say where it is."""

    chain_id: UUID
    reference: Reference | None
    thought: BranchThought
    request_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CloseInput:
    """One call of ``close_branch``."""

    chain_id: UUID
    branch_id: str
    outcome: Outcome
    conclusion: str | None
    request_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveInput:
    """One call of a tool that moves a chain's status, or gives one of its thoughts up."""

    chain_id: UUID
    reason: str | None
    conclusion: str | None
    reference: Reference | None
    request_id: str | None


def parse_add(arguments: Mapping[str, object]) -> AddInput:
    """Read the arguments of ``add_thought``.  Raises InputError."""
    given = Arguments(arguments)
    said = read_thought(given)
    session_id = given.allow("session_id", to_identifier)
    confidence = given.allow("confidence", to_millionths)
    assumptions = given.allow("assumptions", to_notes)
    critique = given.allow("critique", to_note)
    counter_argument = given.allow("counterArgument", to_note)
    next_step_rationale = given.allow("nextStepRationale", to_note)
    expected_version = given.allow("expectedVersion", to_integer)
    given.refuse_problems()
    thought = replace(
        thought_of(said),
        confidence_millionths=confidence,
        assumptions=assumptions,
        critique=critique,
        counter_argument=counter_argument,
        next_step_rationale=next_step_rationale,
    )
    return AddInput(
        said=said,
        thought=thought,
        session_id=session_id,
        expected_version=expected_version,
        warnings=(
            *_warnings(said, half_branch=_is_half_a_branch(arguments)),
            *given.unread(),
        ),
        request_id=said.request_id,
    )


def parse_start(arguments: Mapping[str, object]) -> StartInput:
    """Read the arguments of ``start_thought_chain``.  Raises InputError."""
    given = Arguments(arguments)
    started = StartInput(
        session_id=given.allow("session_id", to_identifier),
        parent_chain_id=given.allow("parent_chain_id", to_uuid),
        title=given.allow("title", to_note),
        request_id=given.allow("requestId", to_identifier),
    )
    given.refuse_problems()
    return started


def parse_read(arguments: Mapping[str, object]) -> ReadInput:
    """Read the arguments of ``get_thought_chain``.  Raises InputError."""
    given = Arguments(arguments)
    chain_id = given.require("chain_id", to_uuid, placeholder=NO_CHAIN)
    wanted = Wanted(
        branch_id=given.allow("branch_id", to_identifier),
        last=given.allow("last", to_integer),
        start=given.allow("from", to_integer),
        limit=given.allow("limit", to_integer),
        at_version=given.allow("at_version", to_integer),
        structure_only=given.allow("structure_only", to_boolean) or False,
    )
    given.refuse_problems()
    return ReadInput(chain_id=chain_id, wanted=wanted)


def parse_list(arguments: Mapping[str, object]) -> ListInput:
    """Read the arguments of ``list_thought_chains``.  Raises InputError."""
    given = Arguments(arguments)
    wanted = ChainFilter(
        session_id=given.allow("session_id", to_identifier),
        status=given.allow("status", partial(to_choice, choices=[*map(str, Status)])),
        parent_chain_id=given.allow("parent_chain_id", to_uuid),
        agent=given.allow("agent", to_identifier),
        limit=min(given.allow("limit", to_integer) or LIST_CHAINS_DEFAULT, LIST_CHAINS_MAX),
        after=given.allow("cursor", to_after),
    )
    given.refuse_problems()
    return ListInput(wanted=wanted)


def parse_revise(arguments: Mapping[str, object]) -> ReviseInput:
    """Read the arguments of ``revise_thought``.  Raises InputError."""
    given = Arguments(arguments)
    chain_id = given.require("chain_id", to_uuid, placeholder=NO_CHAIN)
    reference = _reference(given, "thought_number")
    text = given.require("revised_thought", to_thought, placeholder="")
    reason = given.allow("reason", to_note)
    request_id = given.allow("requestId", to_identifier)
    given.refuse_problems()
    return ReviseInput(
        chain_id=chain_id,
        reference=_required(reference, "thought_number"),
        text=text,
        reason=reason,
        request_id=request_id,
    )


def parse_branch(arguments: Mapping[str, object]) -> BranchInput:
    """Read the arguments of ``branch_thought``.  Raises InputError."""
    given = Arguments(arguments)
    chain_id = given.require("chain_id", to_uuid, placeholder=NO_CHAIN)
    reference = _reference(given, "from_thought_number")
    needed = given.allow("nextThoughtNeeded", to_boolean)
    thought = BranchThought(
        text=given.require("thought", to_thought, placeholder=""),
        branch_id=given.require("branch_id", to_name, placeholder=""),
        thought_number=given.allow("thoughtNumber", to_integer),
        total_thoughts=given.allow("totalThoughts", to_integer),
        next_thought_needed=True if needed is None else needed,
    )
    request_id = given.allow("requestId", to_identifier)
    given.refuse_problems()
    return BranchInput(
        chain_id=chain_id,
        reference=reference,
        thought=thought,
        request_id=request_id,
    )


def parse_close(arguments: Mapping[str, object]) -> CloseInput:
    """Read the arguments of ``close_branch``.  Raises InputError."""
    given = Arguments(arguments)
    outcomes = [*map(str, Outcome)]
    chain_id = given.require("chain_id", to_uuid, placeholder=NO_CHAIN)
    branch_id = given.require("branch_id", to_name, placeholder="")
    outcome = given.require("outcome", partial(to_choice, choices=outcomes), placeholder="kept")
    conclusion = given.allow("conclusion", to_note)
    request_id = given.allow("requestId", to_identifier)
    given.refuse_problems()
    return CloseInput(
        chain_id=chain_id,
        branch_id=branch_id,
        outcome=Outcome(outcome),
        conclusion=conclusion,
        request_id=request_id,
    )


def parse_move(arguments: Mapping[str, object], *extra: str) -> MoveInput:
    """Read a chain and a reason, and of *extra* ``conclusion`` or ``thought``.  Raises InputError.

    ``thought`` stands for the two ways to name one.
    """
    given = Arguments(arguments)
    moved = MoveInput(
        chain_id=given.require("chain_id", to_uuid, placeholder=NO_CHAIN),
        reason=given.allow("reason", to_note),
        conclusion=given.allow("conclusion", to_note) if "conclusion" in extra else None,
        reference=_reference(given, "thought_number") if "thought" in extra else None,
        request_id=given.allow("requestId", to_identifier),
    )
    given.refuse_problems()
    return moved


def _reference(given: Arguments, number_field: str) -> Reference | None:
    thought_id = given.allow("thought_id", to_uuid)
    thought_number = given.allow(number_field, to_integer)
    return thought_number if thought_id is None else thought_id


def _required(reference: Reference | None, number_field: str) -> Reference:
    if reference is None:
        raise InputError((number_field, "is missing; give it, or thought_id"))
    return reference


def _is_half_a_branch(arguments: Mapping[str, object]) -> bool:
    given = Arguments(arguments)
    parse: Callable[[str, object], Any] = lambda _field, value: value  # noqa: E731
    names = [given.allow(name, parse) for name in ("branchId", "branchFromThought")]
    return names.count(None) == 1


def _warnings(said: ThoughtInput, *, half_branch: bool) -> list[str]:
    warnings: list[str] = []
    if half_branch:
        warnings.append("recorded on the trunk: a branch needs both branchId and branchFromThought")
    if said.is_revision and said.revises_thought is None:
        warnings.append("recorded as a revision of nothing: say which with revisesThought")
    return warnings
