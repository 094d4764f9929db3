"""What a thought speaks of by name, in the form that all ways to write it share."""

import hashlib
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

NAME_CHARACTERS_MAX = 200


class Kind(StrEnum):
    """What is named."""

    FILE = "file"
    SYMBOL = "symbol"
    PACKAGE = "package"
    URL = "url"
    NAME = "name"


# What parts a name, and whether its last part is what it is called for short; of an address the
# host is.
_PARTED_BY = {Kind.FILE: "/", Kind.SYMBOL: ".", Kind.PACKAGE: "/", Kind.URL: "/"}


class Entity(NamedTuple):
    """``name`` is the same however it is written, ``written`` as this text has it."""

    kind: Kind
    name: str
    written: str

    @property
    def short(self) -> str:
        """What it is also called: a file without its folders, an address by its host alone."""
        separator = _PARTED_BY.get(self.kind)
        if separator is None:
            return self.name
        if self.kind is Kind.URL:
            return self.name.partition(separator)[0]
        return self.name.rpartition(separator)[2]


def entity_id_of(tenant: str, entity: Entity) -> UUID:
    """The id of an entity, the same in every generation; tenants do not share any."""
    said = "\0".join((tenant, entity.kind, entity.name))
    return UUID(bytes=hashlib.blake2b(said.encode(), digest_size=16).digest(), version=5)


def folded(name: str) -> str:
    """A name as it is looked for: without case."""
    return " ".join(name.casefold().split())
