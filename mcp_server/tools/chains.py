"""The toolset ``chains``: reasoning in named chains, with branches, statuses and lists."""

from collections.abc import Callable
from typing import Any

from ledger import outcomes
from ledger.application import Ledger
from ledger.commands import Receipt
from ledger.header import Context
from ledger.reading import read_page
from mcp_server.chains.inputs import (
    ListInput,
    MoveInput,
    ReadInput,
    StartInput,
    parse_list,
    parse_move,
    parse_read,
    parse_start,
)
from mcp_server.chains.pages import json_of_list, json_of_page
from mcp_server.chains.schemas import ABANDON, COMPLETE, GET, LIST, PAUSE, RESUME, START
from mcp_server.inputs import ThoughtInput
from mcp_server.thinking import Thinking
from mcp_server.tools.chain_thoughts import AddThought, BranchThought, CloseBranch, ReviseThought
from mcp_server.tools.related import RelatedChains
from mcp_server.tools.tool import LedgerTool
from projections.lists import ChainLists
from projections.recall.search import recall_over


def chain_tools(
    thinking: Thinking,
    lists: ChainLists,
    on_thought: Callable[[ThoughtInput], None] | None = None,
) -> list[LedgerTool]:
    """The tools of one connection, in the order a model reads them."""
    return [
        AddThought(thinking, on_thought),
        StartChain(thinking),
        GetChain(),
        ListChains(thinking, lists),
        RelatedChains(thinking, recall_over(lists.connections)),
        ReviseThought(thinking),
        BranchThought(thinking),
        CloseBranch(thinking),
        PauseChain(thinking),
        ResumeChain(thinking),
        CompleteChain(thinking),
        AbandonChain(thinking),
    ]


class StartChain(LedgerTool):
    """Starts a chain without thoughts."""

    definition = START

    def __init__(self, thinking: Thinking) -> None:
        self._thinking = thinking

    def parse(self, arguments: dict[str, Any]) -> StartInput:
        return parse_start(arguments)

    async def run(self, ledger: Ledger, context: Context, said: StartInput) -> dict[str, Any]:
        return (await self._thinking.start(ledger, context, said)).answer


class GetChain(LedgerTool):
    """Reads a chain from the log, so that what was just recorded is in it."""

    definition = GET

    def parse(self, arguments: dict[str, Any]) -> ReadInput:
        return parse_read(arguments)

    async def run(self, ledger: Ledger, context: Context, said: ReadInput) -> dict[str, Any]:
        page = await read_page(ledger, said.chain_id, said.wanted)
        # A chain's structure alone recalls nothing of what it says.
        returned = [place.step.thought_id for place, told in page.thoughts if told is not None]
        ledger.recalled(context, said.chain_id, GET.name, returned)
        return json_of_page(page)


class ListChains(LedgerTool):
    """Lists chains from the read model, as of what this connection has written."""

    definition = LIST

    def __init__(self, thinking: Thinking, lists: ChainLists) -> None:
        self._thinking = thinking
        self._lists = lists

    def parse(self, arguments: dict[str, Any]) -> ListInput:
        return parse_list(arguments)

    async def run(self, ledger: Ledger, context: Context, said: ListInput) -> dict[str, Any]:  # noqa: ARG002 - it asks no log
        position = self._thinking.position
        page = await self._lists.chains(context.tenant, said.wanted, position=position)
        return json_of_list(page)


class _MoveChain(LedgerTool):
    """What the tools that move a chain's status have in common."""

    def __init__(self, thinking: Thinking) -> None:
        self._thinking = thinking

    def parse(self, arguments: dict[str, Any]) -> MoveInput:
        return parse_move(arguments)

    async def run(self, ledger: Ledger, context: Context, said: MoveInput) -> dict[str, Any]:
        receipt = await self.move(ledger, context, said)
        self._thinking.note(receipt)
        return {"success": True, "chain_id": str(receipt.chain_id), **receipt.answer}

    async def move(self, ledger: Ledger, context: Context, said: MoveInput) -> Receipt:
        raise NotImplementedError


class PauseChain(_MoveChain):
    """Sets a chain aside."""

    definition = PAUSE

    async def move(self, ledger: Ledger, context: Context, said: MoveInput) -> Receipt:
        return await ledger.pause(context, said.chain_id, said.reason)


class ResumeChain(_MoveChain):
    """Takes a chain up again."""

    definition = RESUME

    async def move(self, ledger: Ledger, context: Context, said: MoveInput) -> Receipt:
        return await outcomes.resume(ledger, context, said.chain_id, said.reason, tool=RESUME.name)


class CompleteChain(_MoveChain):
    """Ends a chain, with what came of it."""

    definition = COMPLETE

    def parse(self, arguments: dict[str, Any]) -> MoveInput:
        return parse_move(arguments, "conclusion")

    async def move(self, ledger: Ledger, context: Context, said: MoveInput) -> Receipt:
        return await outcomes.complete(ledger, context, said.chain_id, said.reason, said.conclusion)


class AbandonChain(_MoveChain):
    """Gives a chain up, or one of its thoughts."""

    definition = ABANDON

    def parse(self, arguments: dict[str, Any]) -> MoveInput:
        return parse_move(arguments, "thought")

    async def move(self, ledger: Ledger, context: Context, said: MoveInput) -> Receipt:
        if said.reference is None:
            return await ledger.abandon(context, said.chain_id, said.reason)
        return await outcomes.abandon_thought(
            ledger, context, said.chain_id, said.reference, said.reason
        )
