"""Policy 1 as a fold over the events of the log, in their order within each stream."""

from collections.abc import Callable, Iterable
from datetime import datetime
from uuid import UUID

from ledger.events import (
    BranchClosed,
    ChainAbandoned,
    ChainCompleted,
    ChainPaused,
    ChainRecalled,
    ChainReopened,
    ChainResumed,
    FeedbackGiven,
    Judgement,
    Outcome,
    Scope,
    ThoughtAbandoned,
    ThoughtBranched,
    ThoughtRecorded,
    ThoughtRevised,
)
from ledger.serialization import Recorded
from projections.text import shown
from projections.trust.policy import Signal, microseconds
from projections.trust.state import Chain, Memory, Recalls

# A thought before and after a signal of an event.
OnSignal = Callable[[Recorded, Memory, Signal, int, int], None]


class TrustFold:
    """Trust after the events applied so far.

    It may begin anywhere, given the chains and memories that the events will touch: of a chain all
    memories, when an event is about all of them.  Events about others are then ignored.
    """

    def __init__(self, on_signal: OnSignal | None = None) -> None:
        """*on_signal* is told each signal, with the value as decayed to it and that after it."""
        self.chains: dict[UUID, Chain] = {}
        self.memories: dict[UUID, Memory] = {}
        self.recalls: dict[UUID, Recalls] = {}
        self.touched_chains: set[UUID] = set()
        self.touched: set[UUID] = set()
        self._members: dict[UUID, dict[UUID, Memory]] = {}
        self._on_signal = on_signal

    def hold(self, memory: Memory) -> None:
        """Go on with a memory as it was left."""
        self.memories[memory.thought_id] = memory
        self._members.setdefault(memory.chain_id, {})[memory.thought_id] = memory

    def members(self, chain_id: UUID) -> list[Memory]:
        """The memories held of a chain, in the order of its thoughts."""
        held = self._members.get(chain_id, {})
        return sorted(held.values(), key=lambda memory: memory.sequence)

    def apply(self, recorded: Recorded) -> None:
        """Let one event tell."""
        event = recorded.event
        if isinstance(event, ChainRecalled):
            self._recall(event)
            return
        chain = self._chain(recorded)
        if isinstance(event, ThoughtRecorded):
            self._add(chain, recorded, event)
        else:
            self._judge(chain, recorded)

    def _chain(self, recorded: Recorded) -> Chain:
        _, header, event = recorded
        chain = self.chains.get(event.originator_id)
        if chain is None:
            chain = Chain(event.originator_id, shown(header.tenant), shown(header.actor))
            self.chains[chain.id] = chain
            self.touched_chains.add(chain.id)
        return chain

    def _recall(self, event: ChainRecalled) -> None:
        for text in event.thought_ids:
            thought_id = UUID(text)
            recalls = self.recalls.get(thought_id)
            if recalls is None:
                recalls = Recalls(thought_id, event.originator_id, 0, event.timestamp)
                self.recalls[thought_id] = recalls
            recalls.count += 1
            recalls.last_at = max(recalls.last_at, event.timestamp)

    def _add(self, chain: Chain, recorded: Recorded, event: ThoughtRecorded) -> None:
        parent = self.memories.get(event.parent_thought_id) if event.parent_thought_id else None
        self.touched.add(event.thought_id)
        self.hold(
            Memory(
                thought_id=event.thought_id,
                chain_id=chain.id,
                tenant=chain.tenant,
                sequence=event.sequence,
                position=recorded.position,
                parent_thought_id=event.parent_thought_id,
                branch=None if event.branch_id is None else event.branch_id.encode(),
                clock=chain.active_at(microseconds(event.timestamp)),
                dead_end=parent is not None and parent.dead_end,
            )
        )
        if isinstance(event, ThoughtRevised | ThoughtBranched) and event.revises_thought_id:
            revised = self._named(chain, event.revises_thought_id)
            self._signal(chain, recorded, Signal.SUPERSEDED, revised)

    def _judge(self, chain: Chain, recorded: Recorded) -> None:
        match recorded.event:
            case ChainCompleted() if not chain.completed:
                chain.completed = True
                self.touched_chains.add(chain.id)
                self._signal(chain, recorded, Signal.AGENT_USED, self.members(chain.id))
            case ChainPaused(timestamp=at):
                chain.paused_since = microseconds(at)
                self.touched_chains.add(chain.id)
            case ChainResumed(timestamp=at) | ChainReopened(timestamp=at):
                self._go_on(chain, at)
            case ChainAbandoned(timestamp=at):
                self._go_on(chain, at)
                self._signal(chain, recorded, Signal.AGENT_IGNORED, self.members(chain.id))
            case ThoughtAbandoned(thought_id=thought_id):
                self._give_up(chain, recorded, lambda memory: memory.thought_id == thought_id)
            case BranchClosed(outcome=Outcome.ABANDONED, branch_id=branch_id):
                branch = branch_id.encode()
                self._give_up(chain, recorded, lambda memory: memory.branch == branch)
            case FeedbackGiven() as event:
                self._hear(chain, recorded, event)
            case _:
                pass  # it says nothing for or against a thought

    def _go_on(self, chain: Chain, at: datetime) -> None:
        if chain.paused_since is not None:
            chain.paused += max(microseconds(at) - chain.paused_since, 0)
            chain.paused_since = None
            self.touched_chains.add(chain.id)

    def _give_up(self, chain: Chain, recorded: Recorded, is_root: Callable[[Memory], bool]) -> None:
        dead: dict[UUID, Memory] = {}
        # A parent comes before its children.
        for memory in self.members(chain.id):
            if is_root(memory) or memory.parent_thought_id in dead:
                dead[memory.thought_id] = memory
                memory.dead_end = True
        if dead and not chain.has_dead_ends:
            chain.has_dead_ends = True
            self.touched_chains.add(chain.id)
        self._signal(chain, recorded, Signal.AGENT_IGNORED, dead.values())

    def _hear(self, chain: Chain, recorded: Recorded, event: FeedbackGiven) -> None:
        match event.signal:
            case Judgement.CONFIRMED if event.scope == Scope.CHAIN:
                source = event.source.encode()
                if source not in chain.confirmed_by:
                    chain.confirmed_by.add(source)
                    self._signal(chain, recorded, Signal.USER_CONFIRMED, self.members(chain.id))
            case Judgement.CONFIRMED:
                meant = self._meant(chain, event, self._latest)
                self._signal(chain, recorded, Signal.USER_CONFIRMED, meant)
            case Judgement.CORRECTED:
                meant = self._meant(chain, event, self._conclusion)
                self._signal(chain, recorded, Signal.USER_CORRECTED, meant)
            case _:
                pass  # what a later policy may understand

    def _meant(
        self, chain: Chain, event: FeedbackGiven, default: Callable[[Chain], list[Memory]]
    ) -> list[Memory]:
        return default(chain) if event.thought_id is None else self._named(chain, event.thought_id)

    def _named(self, chain: Chain, thought_id: UUID) -> list[Memory]:
        memory = self.memories.get(thought_id)
        return [] if memory is None or memory.chain_id != chain.id else [memory]

    def _latest(self, chain: Chain) -> list[Memory]:
        return self.members(chain.id)[-1:]

    def _conclusion(self, chain: Chain) -> list[Memory]:
        """The last thought of the trunk; of a chain without a trunk, the last of all."""
        members = self.members(chain.id)
        return [memory for memory in members if memory.branch is None][-1:] or members[-1:]

    def _signal(
        self, chain: Chain, recorded: Recorded, signal: Signal, meant: Iterable[Memory]
    ) -> None:
        at = recorded.event.timestamp
        active = chain.active_at(microseconds(at))
        for memory in meant:
            before = memory.value_at(active)
            memory.take(signal, active, at)
            self.touched.add(memory.thought_id)
            if self._on_signal is not None:
                self._on_signal(recorded, memory, signal, before, memory.value)
