"""What the read models can refuse, under one base class."""

from ledger.errors import LedgerError


class ProjectionError(LedgerError):
    """Base of the errors of read models."""


class FencedError(ProjectionError):
    """Another worker has taken the lead; nothing of this batch was applied."""

    def __init__(self, schema: str) -> None:
        super().__init__(f"another worker leads {schema} now")
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


class LogRestoredError(ProjectionError):
    """A read model has applied events that are no longer in the log."""

    def __init__(self, name: str, position: int, head: int) -> None:
        super().__init__(
            f"the read model {name} is at position {position} and the log ends at {head}: the log "
            "was restored from an older backup; build the read model again with "
            f"`thought-ledger projections rebuild {name}`"
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


class GrantMissingError(ProjectionError):
    """The worker's role may not build a read model, as after a restore into another database."""

    def __init__(self, database: str) -> None:
        super().__init__(
            f"the role thought_ledger_projector may not build read models in database {database}; "
            f'let its owner run `GRANT CREATE ON DATABASE "{database}" TO thought_ledger_projector`'
        )
        self.database = database
