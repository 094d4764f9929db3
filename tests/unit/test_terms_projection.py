"""What a batch of events does to the read model of search, without a database."""

from uuid import uuid4

from ledger.aggregate import ThoughtChain
from ledger.header import Context
from ledger.serialization import decode, store
from ledger.thought import Thought
from projections.projection import Copy, Statement
from projections.terms import UPSERT_TERMS, UPSERT_TOTALS, Terms
from projections.tokens import digest_of


def recorded(*events, first=1, tenant="default"):
    context = Context(actor="ada", tenant=tenant)
    return [decode(position, store(event, context)) for position, event in enumerate(events, first)]


def events_of(title, *texts):
    chain = ThoughtChain.start(uuid4(), title=title)
    for number, text in enumerate(texts, 1):
        chain.add_thought(
            uuid4(),
            Thought(text=text, thought_number=number, total_thoughts=9, next_thought_needed=True),
        )
    return chain.collect()


def entries(changes):
    """By tenant, block and term: place, times and length of each entry."""
    found = {}
    for change in changes:
        if isinstance(change, Statement) and change.statement == UPSERT_TERMS:
            said = change.parameters
            rows = zip(said["terms"].split(), said["entries"].split(), strict=True)
            for term, numbers in rows:
                found[said["tenant"], said["block"], term] = [
                    (bits >> 22, bits >> 16 & 63, bits & 65_535)
                    for bits in map(int, numbers.strip("{}").split(","))
                ]
    return found


def test_titles_and_thoughts_are_texts_and_only_a_thought_has_a_digest():
    started, added = events_of("Which index?", "a b-tree")

    (copy, *_) = Terms().changes(recorded(started, added))

    assert isinstance(copy, Copy)
    chain_id = started.originator_id
    assert copy.rows == [
        (1, "default", chain_id, None, None),
        (2, "default", chain_id, added.thought_id, digest_of("a b-tree")),
    ]


def test_an_entry_says_where_how_often_and_in_how_many_terms():
    _, *added = events_of("", "a b a", "b")

    found = entries(Terms().changes(recorded(*added, first=256 + 7)))

    assert found == {
        ("default", 1, "a"): [(7, 2, 3)],
        ("default", 1, "b"): [(7, 1, 3), (8, 1, 1)],
    }


def test_a_batch_over_the_end_of_a_block_is_two_statements():
    _, *added = events_of("", "a", "a", "a")

    found = entries(Terms().changes(recorded(*added, first=510)))

    assert found == {
        ("default", 1, "a"): [(254, 1, 1), (255, 1, 1)],
        ("default", 2, "a"): [(0, 1, 1)],
    }


def test_tenants_do_not_share_terms():
    _, one = events_of("", "a")
    _, other = events_of("", "a a")

    changes = list(
        Terms().changes([*recorded(one), *recorded(other, first=2, tenant="t\0")]),
    )

    assert entries(changes) == {
        ("default", 0, "a"): [(1, 1, 1)],
        ("t\ufffd", 0, "a"): [(2, 2, 2)],
    }
    totals = [c.parameters for c in changes if getattr(c, "statement", None) == UPSERT_TOTALS]
    assert [(t["tenant"], t["texts"], t["terms"]) for t in totals] == [
        ("default", 1, 1),
        ("t\ufffd", 1, 2),
    ]


def test_what_is_very_long_fits_an_entry():
    _, added = events_of("", "a " * 32_000 + "b c " * 10_000)

    found = entries(Terms().changes(recorded(added, first=255)))

    assert found["default", 0, "a"] == [(255, 63, 32_768)]
    assert 255 << 22 | 63 << 16 | 65_535 < 2**31


def test_events_that_say_nothing_change_nothing():
    chain = ThoughtChain.start(uuid4(), title="t")
    chain.collect()
    chain.pause()
    chain.resume()

    assert list(Terms().changes(recorded(*chain.collect()))) == []
