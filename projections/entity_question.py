"""What a question about entities asks for: the names it may mean."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from projections.entity import Entity, entity_id_of, folded
from projections.entity_text import entities_of
from projections.entity_words import file_name_of
from projections.normal import nfkc
from projections.text import shown

# So much of a question is read, and so many words of it are looked up besides what it names.
QUERY_CHARACTERS_MAX = 16_384
QUERY_WORDS_MAX = 64
WORD_CHARACTERS_MIN = 3
# A quoted name has so many words at most.
NAME_WORDS_MAX = 5

_WORD = re.compile(r"[\w@][\w./@-]*")


@dataclass(frozen=True, slots=True)
class AskedEntities:
    """``ids`` are what is named as thoughts name it, ``keys`` all names that may be meant."""

    ids: Sequence[UUID]
    keys: Sequence[str]


def ask_by_name(tenant: str, name: str) -> AskedEntities:
    """One entity, written in whatever way."""
    name = " ".join(nfkc(shown(name)).split()).strip("`\"'")
    named = [*entities_of(name), *entities_of(f"`{name}`"), *entities_of(f'"{name}"')]
    path = file_name_of(name) if "/" in name or "\\" in name else None
    return _asked(tenant, named, [name, path or name, name.removesuffix("()")])


def ask_by_text(tenant: str, query: str) -> AskedEntities:
    """What a text names, and whatever is called by one of its words or some in a row."""
    query = nfkc(shown(query[:QUERY_CHARACTERS_MAX]))[:QUERY_CHARACTERS_MAX]
    return _asked(tenant, entities_of(query), _names_in(query))


def _asked(tenant: str, named: Iterable[Entity], names: Iterable[str]) -> AskedEntities:
    found = {entity_id_of(tenant, entity): entity for entity in named}
    keys = [folded(entity.name) for entity in found.values()]
    keys += [folded(name) for name in names]
    return AskedEntities([*found], [*dict.fromkeys(filter(None, keys))])


def _names_in(query: str) -> Iterator[str]:
    words = [found.group().rstrip("./-@") for found in _WORD.finditer(query)]
    words = words[:QUERY_WORDS_MAX]
    yield from (word for word in words if len(word) >= WORD_CHARACTERS_MIN)
    for count in range(2, NAME_WORDS_MAX + 1):
        for start in range(len(words) - count + 1):
            yield " ".join(words[start : start + count])
