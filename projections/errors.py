"""What the read models can refuse, under one base class."""

from collections.abc import Sequence
from uuid import UUID

from ledger.errors import LedgerError


class ProjectionError(LedgerError):
    """Base of the errors of read models."""


class FencedError(ProjectionError):
    """What a worker knows of its generation is out of date; nothing of this batch was applied."""

    def __init__(self, schema: str) -> None:
        super().__init__(
            f"another worker leads {schema} now, or an operator retried or skipped what was parked"
        )
        self.schema = schema


class ProjectionVersionError(ProjectionError):
    """A generation was built by another version of its projection."""

    def __init__(
        self, schema: str, *, built_version: int, version: int, projection_name: str
    ) -> None:
        todo = (
            "upgrade this thought-ledger"
            if built_version > version
            else "build a new generation with this one: "
            f"`thought-ledger projections rebuild {projection_name} --promote`"
        )
        super().__init__(
            f"generation {schema} was built by version {built_version} of its projection and this "
            f"thought-ledger has version {version}, which must not write to it: {todo}"
        )
        self.schema = schema
        self.built_version = built_version
        self.version = version


class ProjectionNotFoundError(ProjectionError):
    """No read model has that name."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(f"there is no read model {name!r}; there are {', '.join(sorted(names))}")
        self.name = name


class LogRestoredError(ProjectionError):
    """A read model has applied events that are no longer in the log."""

    def __init__(self, name: str, position: int, head: int) -> None:
        super().__init__(
            f"the read model {name} is at position {position} and the log ends at {head}: the log "
            "was restored from an older backup; build the read model again with "
            f"`thought-ledger projections rebuild {name} --fresh --promote`"
        )
        self.name = name
        self.position = position
        self.head = head


class GenerationNotFoundError(ProjectionError):
    """There is no such generation."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(
            f"{name} has no generation {number}; `thought-ledger projections status` lists them"
        )
        self.name = name
        self.number = number


class GenerationLiveError(ProjectionError):
    """Readers see the generation, so it must stay."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(
            f"generation {number} of {name} is live and cannot be retired; "
            "promote another one first"
        )
        self.name = name
        self.number = number


class NothingToPromoteError(ProjectionError):
    """There is no generation beside the live one."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} has no generation after the live one; "
            f"`thought-ledger projections rebuild {name}` builds one, "
            f"`... rollback {name}` goes to the one before"
        )
        self.name = name


class NothingToRollBackError(ProjectionError):
    """No generation was live before and is still there."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no generation before the live one that is kept to go back to")
        self.name = name


class BeingBuiltError(ProjectionError):
    """Another process leads the generation that is to be built, compared or promoted."""

    def __init__(self, schema: str) -> None:
        super().__init__(
            f"another process builds {schema} just now; wait for it, or end it: what it has done "
            "stays, and a rebuild goes on from there"
        )
        self.schema = schema


class GenerationBehindError(ProjectionError):
    """Readers would go back in time."""

    def __init__(self, schema: str, position: int, live_position: int) -> None:
        super().__init__(
            f"{schema} is at position {position} and readers see {live_position} already; "
            "a worker of the version that built it has to bring it up first"
        )
        self.schema = schema
        self.position = position
        self.live_position = live_position


class SwitchBlockedError(ProjectionError):
    """Something holds what the switch needs for longer than readers may be kept waiting."""

    def __init__(self, name: str, sessions: Sequence[int]) -> None:
        who = f" (database sessions {', '.join(map(str, sessions))})" if sessions else ""
        super().__init__(
            f"long transactions hold the read model {name} and keep readers from being switched"
            f"{who}; nothing was changed: try again when they have ended, or end them, as a "
            "superuser by `SELECT pg_terminate_backend(SESSION)`"
        )
        self.name = name
        self.sessions = tuple(sessions)


class GenerationBlockedError(ProjectionError):
    """Somebody reads a generation that is to be dropped."""

    def __init__(self, schema: str) -> None:
        super().__init__(
            f"queries on {schema} go on and keep it from being dropped; try again when they have "
            "ended"
        )
        self.schema = schema


class GenerationBrokenError(ProjectionError):
    """A generation lacks something that was made with it."""

    def __init__(self, name: str, schema: str) -> None:
        super().__init__(
            f"{schema} is not whole any more; `thought-ledger projections rebuild {name} --fresh` "
            "drops what was begun and begins again"
        )
        self.name = name
        self.schema = schema


class NoLiveGenerationError(ProjectionError):
    """Readers see no generation, so there is nothing to compare with."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no generation of {name} is live yet; a worker makes one "
            "(`thought-ledger projections run`)"
        )
        self.name = name


class StillMovingError(ProjectionError):
    """The two could not be brought to one position."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the live generation of {name} does not keep up with the log, so it cannot be "
            "compared at one position; see `thought-ledger projections status`, then try again"
        )
        self.name = name


class ViewInUseError(ProjectionError):
    """A view has to change its columns, and objects of others are built on it."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            "a view of schema live gets other columns, and objects that are not ours depend on it "
            f"({detail}); drop them, promote, and create them again"
        )
        self.detail = detail


class GrantMissingError(ProjectionError):
    """The worker's role may not build a read model, as after a restore into another database."""

    def __init__(self, database: str) -> None:
        super().__init__(
            f"the role thought_ledger_projector may not build read models in database {database}; "
            f'let its owner run `GRANT CREATE ON DATABASE "{database}" TO thought_ledger_projector`'
        )
        self.database = database


class NotParkedError(ProjectionError):
    """The chain is not parked where it was looked for."""

    def __init__(self, name: str, chain_id: UUID) -> None:
        super().__init__(
            f"chain {chain_id} is not parked in {name}; "
            "`thought-ledger projections parked` lists those that are"
        )
        self.name = name
        self.chain_id = chain_id


class ParkedApartError(ProjectionError):
    """A chain is parked at different events in several generations; which to skip is not clear."""

    def __init__(self, name: str, chain_id: UUID, positions: Sequence[int]) -> None:
        super().__init__(
            f"chain {chain_id} is parked at positions {', '.join(map(str, positions))} in several "
            f"generations of {name}; `thought-ledger projections retry {name} {chain_id}` first: "
            "then they stop at the same event"
        )
        self.name = name
        self.chain_id = chain_id
        self.positions = positions


class ReadModelBusyError(ProjectionError):
    """Others kept a read model locked for too long."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(
            f"{name} was being written to for {seconds:.0f} seconds; nothing was changed, try again"
        )
        self.name = name
