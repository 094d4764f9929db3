"""The read model ``terms``: which texts say what, for search by words."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from uuid import UUID

from ledger.events import ChainStarted, ThoughtRecorded
from ledger.serialization import Recorded
from projections.projection import Change, Copy, Statement
from projections.text import shown
from projections.tokens import digest_of, terms_of

# Positions of one row of ``terms``, and the bits of its entries.
BLOCK_BITS = 8
PLACE_SHIFT = 22
TIMES_SHIFT = 16
TIMES_MAX = 63
LENGTH_MAX = 65_535

COLUMNS = {
    "position": "int8",
    "tenant": "text",
    "chain_id": "uuid",
    "thought_id": "uuid",
    "digest": "int8",
}

# The positions of a batch come after all before it, so its entries come after those there are; only
# those of a chain that was parked come late, and are put in among the others.
# Neither a term nor an array of numbers has a blank in it, and one text is passed and split much
# faster than an array of many.
UPSERT_TERMS = """
    INSERT INTO {schema}.terms AS term (term, tenant, block, entries)
    SELECT more.term, %(tenant)s, %(block)s, more.entries::int[]
      FROM unnest(
               string_to_array(%(terms)s, ' '), string_to_array(%(entries)s, ' ')
           ) AS more (term, entries)
        ON CONFLICT (term, tenant, block) DO UPDATE
       SET entries = CASE
               WHEN term.entries[cardinality(term.entries)] < excluded.entries[1]
               THEN term.entries || excluded.entries
               ELSE ARRAY(SELECT unnest(term.entries || excluded.entries) ORDER BY 1)
           END
"""

UPSERT_TOTALS = """
    INSERT INTO {schema}.term_totals AS total (tenant, texts, terms)
    VALUES (%(tenant)s, %(texts)s, %(terms)s)
        ON CONFLICT (tenant) DO UPDATE
       SET texts = total.texts + excluded.texts,
           terms = total.terms + excluded.terms
"""


class Terms:
    """What the thoughts and titles of chains say, term by term."""

    name = "terms"
    version = 2
    tables = ("term_texts", "terms", "term_totals")
    chain_columns = MappingProxyType({"term_texts": "chain_id"})
    rest_seconds = 0.01

    def changes(self, batch: Sequence[Recorded]) -> Iterator[Change]:
        said = _Said()
        for recorded in batch:
            match recorded.event:
                case ThoughtRecorded() as event:
                    said.add(recorded, event.thought_id, event.text, digest_of(event.text))
                case ChainStarted(title=title):
                    said.add(recorded, None, title, None)
                case _:
                    pass  # it says nothing that is searched
        yield from said.changes()


class _Said:
    """Folds the texts of a batch into new rows and into entries for the rows of their terms."""

    def __init__(self) -> None:
        self._texts: list[tuple[object, ...]] = []
        self._entries: dict[tuple[str, int], dict[str, list[int]]] = {}
        self._totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    def add(
        self, recorded: Recorded, thought_id: UUID | None, text: str, digest: int | None
    ) -> None:
        position, header, event = recorded
        tenant = shown(header.tenant)
        counts = terms_of(text)
        length = min(sum(counts.values()), LENGTH_MAX)
        self._texts.append((position, tenant, event.originator_id, thought_id, digest))
        self._totals[tenant][0] += 1
        self._totals[tenant][1] += length
        block, place = divmod(position, 2**BLOCK_BITS)
        entries = self._entries.setdefault((tenant, block), defaultdict(list))
        text_bits = place << PLACE_SHIFT | length
        for term, times in counts.items():
            entries[term].append(text_bits | min(times, TIMES_MAX) << TIMES_SHIFT)

    def changes(self) -> Iterator[Change]:
        if self._texts:
            yield Copy("term_texts", COLUMNS, self._texts)
        for (tenant, block), entries in self._entries.items():
            if not entries:
                continue
            yield Statement(
                UPSERT_TERMS,
                {
                    "tenant": tenant,
                    "block": block,
                    # In the order of the index, whose pages are then gone through once.
                    "terms": " ".join(sorted(entries)),
                    "entries": " ".join(_array(entries[term]) for term in sorted(entries)),
                },
            )
        for tenant, (texts, terms) in self._totals.items():
            yield Statement(UPSERT_TOTALS, {"tenant": tenant, "texts": texts, "terms": terms})


def _array(entries: list[int]) -> str:
    """As PostgreSQL writes an array."""
    return "{" + ",".join(map(str, entries)) + "}"
