"""What a client may suggest while a person types an argument of a prompt or of an address."""

import re
from collections.abc import Sequence
from uuid import UUID

from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    Prompt,
    PromptReference,
    ResourceTemplate,
)

from ledger.errors import ChainNotFoundError
from ledger.header import Context
from mcp_server.requests import Request, Requests
from projections.lists import STARTS_MAX, Starts

VARIABLE = re.compile(r"\{(\w+)\}")
NOTHING = Starts([], 0)


class Completions:
    """Completes ids of chains, branches and sessions by what they start with."""

    def __init__(
        self, requests: Requests, prompts: Sequence[Prompt], templates: Sequence[ResourceTemplate]
    ) -> None:
        self._requests = requests
        self._arguments = {
            prompt.name: {argument.name for argument in prompt.arguments or ()}
            for prompt in prompts
        } | {one.uri_template: set(VARIABLE.findall(one.uri_template)) for one in templates}

    async def complete(self, request: Request, params: CompleteRequestParams) -> CompleteResult:
        """The values; none for what is not known here: a client asks as a person types."""
        ref, argument = params.ref, params.argument
        named = ref.name if isinstance(ref, PromptReference) else ref.uri
        starts = NOTHING
        with self._requests.reading(request) as context:
            if argument.name in self._arguments.get(named, ()):
                given = (params.context and params.context.arguments) or {}
                starts = await self._starts(
                    context, argument.name, argument.value, given.get("chain_id")
                )
        return CompleteResult(
            completion=Completion(
                values=starts.values,
                total=starts.total,
                has_more=starts.total > len(starts.values),
            )
        )

    async def _starts(
        self, context: Context, name: str, prefix: str, chain_id: str | None
    ) -> Starts:
        source = self._requests.source
        match name:
            case "chain_id":
                await source.get()
                return await source.lists.chain_ids(context.tenant, prefix)
            case "session_id":
                await source.get()
                return await source.lists.session_ids(context.tenant, prefix)
            case "branch_id":
                return await self._branches(chain_id, prefix)
            case _:
                return NOTHING

    async def _branches(self, chain_id: str | None, prefix: str) -> Starts:
        """The branches of a chain by first appearance."""
        try:
            known = UUID(chain_id or "")
            chain = await (await self._requests.source.get()).chain(known)
        except (ValueError, ChainNotFoundError):
            return NOTHING
        found = [branch for branch in chain.branches if branch.startswith(prefix)]
        return Starts(found[:STARTS_MAX], len(found))
