"""Every refusal and fault the ledger can name, under one base class."""

from uuid import UUID

_ALLOWED = {
    "active": "paused, completed or abandoned",
    "paused": "resumed or abandoned",
}


class LedgerError(Exception):
    """Base of every error a caller may want to catch; its text says what to do."""


def reason_of(error: BaseException) -> str:
    """What went wrong, in one line: drivers and servers say more in further ones."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


class ChainNotFoundError(LedgerError):
    """No stream exists for the given chain."""

    def __init__(self, chain_id: UUID) -> None:
        super().__init__(
            f"chain {chain_id} does not exist; list_thought_chains, or "
            "`thought-ledger chains --all`, shows the ones that do"
        )
        self.chain_id = chain_id


class ChainExistsError(LedgerError):
    """A chain with the given id has been started before."""

    def __init__(self, chain_id: UUID) -> None:
        super().__init__(f"chain {chain_id} exists already; choose another id or go on with it")
        self.chain_id = chain_id


class ChainNotActiveError(LedgerError):
    """The chain's status refuses what was asked."""

    def __init__(self, chain_id: UUID, status: str) -> None:
        super().__init__(
            f"chain {chain_id} is {status} and takes no thoughts; "
            f"resume it (resume_thought_chain, or `thought-ledger resume {chain_id}`) "
            "or start a new chain with thought 1"
        )
        self.chain_id = chain_id
        self.status = status


class TransitionError(LedgerError):
    """A chain cannot go from its status to the one asked for."""

    def __init__(self, chain_id: UUID, status: str, verb: str) -> None:
        allowed = _ALLOWED.get(status, "resumed")
        already = f"{status} already" if verb == status else f"{status} and cannot be {verb}"
        super().__init__(f"chain {chain_id} is {already}; it can be {allowed}")
        self.chain_id = chain_id
        self.status = status
        self.verb = verb


class ThoughtNotFoundError(LedgerError):
    """The chain has no such thought."""

    def __init__(self, chain_id: UUID, thought: UUID | int) -> None:
        super().__init__(
            f"chain {chain_id} has no thought {thought}; "
            f"get_thought_chain, or `thought-ledger replay {chain_id}`, shows those it has"
        )
        self.chain_id = chain_id
        self.thought = thought


class NothingToJudgeError(LedgerError):
    """Feedback on a chain without thoughts."""

    def __init__(self, chain_id: UUID) -> None:
        super().__init__(f"chain {chain_id} has no thoughts yet, so there is nothing to judge")
        self.chain_id = chain_id


class FeedbackError(LedgerError):
    """Feedback that says two things at once."""


class ThoughtExistsError(LedgerError):
    """The chain has a thought with the given id already."""

    def __init__(self, chain_id: UUID, thought_id: UUID) -> None:
        super().__init__(f"chain {chain_id} has thought {thought_id} already")
        self.chain_id = chain_id
        self.thought_id = thought_id


class ReferenceOutOfRangeError(LedgerError):
    """A thought refers to a number beyond the thoughts there are."""

    def __init__(self, field: str, thought_number: int, length: int) -> None:
        super().__init__(f"{field} {thought_number} out of range (history length {length})")
        self.field = field
        self.thought_number = thought_number
        self.length = length


class BranchOriginMissingError(LedgerError):
    """A branch is to be opened, and nobody says where."""

    def __init__(self, chain_id: UUID, branch_id: str) -> None:
        super().__init__(
            f"chain {chain_id} has no branch {branch_id!r} yet; say where it leaves from: "
            "from_thought_number or thought_id"
        )
        self.chain_id = chain_id
        self.branch_id = branch_id


class ThoughtAbandonedError(LedgerError):
    """A thought would hang under one that was given up."""

    def __init__(self, chain_id: UUID, thought_number: int, live_number: int | None) -> None:
        """*live_number* is that of the last thought that was not given up, if there is one."""
        advice = (
            "nothing in this chain is live any more; start another with thought 1"
            if live_number is None
            else f"revise thought {live_number}, the last live one, or branch from it under a new "
            "branch id"
        )
        super().__init__(
            f"thought {thought_number} of chain {chain_id}, or one above it, was given up as a "
            f"dead end and takes nothing after it; {advice}"
        )
        self.chain_id = chain_id
        self.thought_number = thought_number
        self.live_number = live_number


class StaleVersionError(LedgerError):
    """The chain is not at the version its writer believes it is."""

    def __init__(self, chain_id: UUID, expected: int, current: int) -> None:
        super().__init__(
            f"chain {chain_id} is at version {current}, not {expected}: somebody else wrote; "
            f"read what is new, then send it again with expectedVersion {current}"
        )
        self.chain_id = chain_id
        self.expected = expected
        self.current = current


class VersionNotFoundError(LedgerError):
    """The chain has not come to such a version."""

    def __init__(self, chain_id: UUID, version: int, current: int) -> None:
        super().__init__(
            f"chain {chain_id} has no version {version} yet; "
            f"ask for one from 1 to {current}, or leave it out for the latest"
        )
        self.chain_id = chain_id
        self.version = version
        self.current = current


class BranchNotFoundError(LedgerError):
    """The chain has no such branch."""

    def __init__(self, chain_id: UUID, branch_id: str) -> None:
        super().__init__(
            f"chain {chain_id} has no branch {branch_id!r}; "
            "the branchMap of get_thought_chain names those it has"
        )
        self.chain_id = chain_id
        self.branch_id = branch_id


class BranchClosedError(LedgerError):
    """The branch takes no more thoughts."""

    def __init__(self, chain_id: UUID, branch_id: str) -> None:
        super().__init__(
            f"branch {branch_id!r} of chain {chain_id} is closed; open a branch under another name"
        )
        self.chain_id = chain_id
        self.branch_id = branch_id


class LimitExceededError(LedgerError):
    """Something is longer than the ledger records."""

    def __init__(self, what: str, size: int, limit: int, unit: str) -> None:
        super().__init__(f"{what} is {size:,} {unit} long, over the limit of {limit:,} {unit}")
        self.what = what
        self.size = size
        self.limit = limit


class ConcurrentAppendError(LedgerError):
    """Other writers kept winning the race for the next version of the stream."""

    def __init__(self, chain_id: UUID, attempts: int) -> None:
        super().__init__(
            f"chain {chain_id} changed under this writer {attempts} times; "
            "nothing was recorded, try again"
        )
        self.chain_id = chain_id
        self.attempts = attempts


class RequestMismatchError(LedgerError):
    """A request id was used again for something else."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"request id {request_id!r} was used before for a different command; "
            "use a new id for a new command"
        )
        self.request_id = request_id


class OutcomeUnknownError(LedgerError):
    """The connection was lost for good before the answer to an append arrived."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "it is not known whether this was recorded, the database stopped answering "
            f"({reason}); read the chain, or send it again with the same requestId if it had one"
        )


class AppenderBusyError(LedgerError):
    """Too many appends wait already."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting:,} appends wait already; nothing was recorded, try again later")
        self.waiting = waiting


class UnknownTopicError(LedgerError):
    """The log holds an event type this version of the code does not know."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"topic {topic!r} is not in the event catalogue; "
            "it was recorded by a newer version of thought-ledger, upgrade this one"
        )
        self.topic = topic


class UnreadableEventError(LedgerError):
    """A stored event does not have the shape its topic promises."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(f"cannot read a stored {topic!r}: {reason}")
        self.topic = topic
        self.reason = reason


class TamperedEventError(LedgerError):
    """Stored bytes do not match what their header or their columns commit to."""

    def __init__(self, chain_id: UUID, version: int, what: str) -> None:
        super().__init__(
            f"version {version} of chain {chain_id} was changed after it was recorded: {what}"
        )
        self.chain_id = chain_id
        self.version = version
        self.what = what
