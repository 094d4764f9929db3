"""What the read models can refuse, under one base class."""

from collections.abc import Sequence
from uuid import UUID

from ledger.display import shortened
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

    def __init__(self, schema: str, built_version: int, version: int) -> None:
        todo = (
            "upgrade this thought-ledger"
            if built_version > version
            else "build a new generation with this one"
        )
        super().__init__(
            f"generation {schema} was built by version {built_version} of its projection and this "
            f"thought-ledger has version {version}, which must not write to it: {todo}"
        )
        self.schema = schema
        self.built_version = built_version
        self.version = version


class GenerationNotFoundError(ProjectionError):
    """There is no such generation."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(
            f"{name} has no generation {number}; `thought-ledger projections status` lists them"
        )
        self.name = name
        self.number = number


class GrantMissingError(ProjectionError):
    """The worker's role may not build a read model, as after a restore into another database."""

    def __init__(self, database: str) -> None:
        super().__init__(
            f"the role thought_ledger_projector may not build read models in database {database}; "
            f'let its owner run `GRANT CREATE ON DATABASE "{database}" TO thought_ledger_projector`'
        )
        self.database = database


class ReadModelNotFoundError(ProjectionError):
    """No projection has this name."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(f"there is no read model {shortened(name)}; there are {', '.join(names)}")
        self.name = name


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
