"""The prompts of a server: listed and filled in."""

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
)

from ledger.display import shortened
from ledger.errors import BranchNotFoundError, ChainNotFoundError
from mcp_server.prompts.advice import Advice
from mcp_server.prompts.chains import ResumeChain, ReviewReasoning
from mcp_server.prompts.prompt import LedgerPrompt
from mcp_server.prompts.start_session import StartSession
from mcp_server.prompts.think_through import ThinkThrough
from mcp_server.requests import Request, Requests, refuse_cursor


class PromptBook:
    """The prompts every connection is offered, with advice for the tools it is offered."""

    def __init__(self, requests: Requests, advice: Advice) -> None:
        self._requests = requests
        prompts: list[LedgerPrompt] = [
            StartSession(advice),
            ThinkThrough(advice),
            ResumeChain(advice),
            ReviewReasoning(),
        ]
        self._prompts = {prompt.definition.name: prompt for prompt in prompts}

    @property
    def definitions(self) -> list[Prompt]:
        return [prompt.definition for prompt in self._prompts.values()]

    async def list(self, _: Request, params: PaginatedRequestParams | None) -> ListPromptsResult:
        refuse_cursor(params)
        return ListPromptsResult(prompts=self.definitions)

    async def get(self, request: Request, params: GetPromptRequestParams) -> GetPromptResult:
        prompt = self._prompts.get(params.name)
        if prompt is None:
            names = ", ".join(self._prompts)
            raise MCPError(
                INVALID_PARAMS, f"there is no prompt {shortened(params.name)}; the prompts: {names}"
            )
        with self._requests.reading(request) as context:
            try:
                given = params.arguments or {}
                messages = await prompt.messages(self._requests.source, given, context.tenant)
            except (ChainNotFoundError, BranchNotFoundError) as error:
                raise MCPError(INVALID_PARAMS, str(error)) from None
        return GetPromptResult(description=prompt.definition.description, messages=messages)
