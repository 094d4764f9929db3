"""The prompt that begins a session with what has been learned before."""

from collections.abc import Mapping

from mcp_types import Prompt, PromptArgument, PromptMessage

from mcp_server.prompts.advice import Advice
from mcp_server.prompts.prompt import LedgerPrompt, name_of, said, shown
from mcp_server.resources.chains import MARKDOWN
from mcp_server.resources.memory import memory_text
from mcp_server.resources.resource import MEMORY_URI
from mcp_server.source import LedgerSource
from projections.tiers.tiers import Tiers


class StartSession(LedgerPrompt):
    """Puts the memory of the ledger before the agent, and says how to go on from there."""

    definition = Prompt(
        name="start_session",
        title="Start a session",
        description="Begin with what the ledger remembers: reasoning that proved good, and dead "
        "ends to avoid",
        arguments=[
            PromptArgument(
                name="session_id",
                title="Session",
                description="The session's name, which its chains will carry",
                required=False,
            )
        ],
    )

    def __init__(self, advice: Advice) -> None:
        self._advice = advice

    async def messages(
        self, source: LedgerSource, given: Mapping[str, str], tenant: str
    ) -> list[PromptMessage]:
        steps = self._advice.how_to_think(name_of(given, "session_id"))
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
        await source.get()
        tiers = Tiers(source.lists.connections)
        memory = await memory_text(tiers, tenant, self._advice.how_to_recall())
        return [
            shown(MEMORY_URI, MARKDOWN, memory),
            said(
                "That is what the ledger remembers; each line names its chain. Use what proved "
                f"good, and do not try the dead ends again without a reason. How:\n\n{numbered}"
            ),
        ]
