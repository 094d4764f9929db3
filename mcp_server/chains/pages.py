"""Chains and their thoughts as JSON; what there is not is left out."""

from datetime import UTC, datetime
from typing import Any

from ledger.confidence import MILLION
from ledger.reading import Page, Place, Said
from mcp_server.chains.values import cursor_of
from projections.lists import ChainPage, ChainRow


def json_of_page(page: Page) -> dict[str, Any]:
    """The answer of ``get_thought_chain``."""
    started = page.started
    return present(
        chain_id=str(page.chain_id),
        session_id=started.session_id,
        parent_chain_id=started.parent_chain_id and str(started.parent_chain_id),
        status=str(page.status),
        title=started.title,
        thoughts=[_thought(place, said) for place, said in page.thoughts],
        branchMap=dict(page.branches),
        closed_branches=dict(page.closed) or None,
        branchMap_is_of_this_page=page.is_part or None,
        thought_count=page.thought_count,
        version=page.version,
        created_at=_moment(page.created_at),
        updated_at=_moment(page.updated_at),
        next=page.following,
    )


def json_of_list(page: ChainPage) -> dict[str, Any]:
    """The answer of ``list_thought_chains``."""
    return present(
        count=len(page.chains),
        chains=[_chain(row) for row in page.chains],
        next=page.following and cursor_of(page.following),
        stale=page.stale or None,
    )


def present(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _chain(row: ChainRow) -> dict[str, Any]:
    return present(
        chain_id=str(row.id),
        title=row.title,
        status=row.status,
        session_id=row.session_id,
        parent_chain_id=row.parent_chain_id and str(row.parent_chain_id),
        agent=row.agent,
        client=row.client,
        thought_count=row.thought_count,
        version=row.version,
        conclusion=row.conclusion,
        created_at=_moment(row.created_at),
        updated_at=_moment(row.updated_at),
    )


def _thought(place: Place, said: Said | None) -> dict[str, Any]:
    step = place.step
    return present(
        thought_id=str(step.thought_id),
        sequence=place.sequence,
        thought_number=step.thought_number,
        total_thoughts=step.total_thoughts,
        branch_id=step.branch_id,
        parent=place.parent,
        revises=place.revises,
        revised_by=place.revised_by,
        abandoned=place.abandoned,
        version=step.version,
        **({} if said is None else _said(said)),
    )


def _said(said: Said) -> dict[str, Any]:
    event = said.event
    told = vars(event)
    confidence = event.confidence_millionths
    return {
        "thought": event.text,
        "next_thought_needed": event.next_thought_needed,
        "needs_more_thoughts": event.needs_more_thoughts,
        "revises_thought_number": told.get("revises_thought_number"),
        "branch_from_thought_number": event.branch_from_thought_number,
        "reason": told.get("reason"),
        "confidence": None if confidence is None else confidence / MILLION,
        "assumptions": event.assumptions,
        "critique": event.critique,
        "counter_argument": event.counter_argument,
        "next_step_rationale": event.next_step_rationale,
        "agent": said.header.actor,
        "client": said.header.client,
        "created_at": _moment(event.timestamp),
    }


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
