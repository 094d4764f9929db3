"""The prompt to think something through with the ledger."""

from collections.abc import Mapping

from mcp_types import Prompt, PromptArgument, PromptMessage

from mcp_server.prompts.advice import Advice
from mcp_server.prompts.prompt import LedgerPrompt, name_of, problem_of, said
from mcp_server.source import LedgerSource


class ThinkThrough(LedgerPrompt):
    """Starts a chain about a problem.  It asks no database."""

    definition = Prompt(
        name="think_through",
        title="Think a problem through",
        description="Think about a problem step by step, with every thought, revision and branch "
        "recorded in the ledger",
        arguments=[
            PromptArgument(
                name="problem",
                title="Problem",
                description="What is to be thought through, or the goal",
                required=True,
            ),
            PromptArgument(
                name="session_id",
                title="Session",
                description="The session the chain belongs to, by its name",
                required=False,
            ),
        ],
    )

    def __init__(self, advice: Advice) -> None:
        self._advice = advice

    async def messages(
        self,
        source: LedgerSource,  # noqa: ARG002 - nothing is read
        given: Mapping[str, str],
        tenant: str,  # noqa: ARG002
    ) -> list[PromptMessage]:
        problem, session_id = problem_of(given), name_of(given, "session_id")
        steps = self._advice.how_to_think(session_id)
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
        return [said(f"Think this through with the ledger:\n\n{problem}\n\nHow:\n\n{numbered}")]
