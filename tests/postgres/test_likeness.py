"""Search by likeness: the nearest, whichever way they are looked for, and with words beside."""

import asyncio
import random
from uuid import UUID, uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.events import Judgement
from ledger.header import Context
from ledger.recorder import repository
from projections.catalogue import ALL
from projections.embeddings.hashing import HashingModel
from projections.embeddings.model import as_text
from projections.embeddings.questions import NotEmbedded, QuestionVector
from projections.embeddings.schema import ensure_schema
from projections.embeddings.spaces import index_neighbours, space_for
from projections.live import LiveConnections
from projections.recall.filters import RecallFilter
from projections.recall.ranking import Strategy
from projections.recall.search import Recall
from projections.workers import catch_up_all
from tests.postgres.projecting import SECONDS_MAX, record, thought

MODEL = HashingModel(64)
OPEN = ("active", "completed")
WORDS = [f"word{number}" for number in range(60)]

INSERT_VECTORS = """
    INSERT INTO vectors.thoughts_1
           (position, tenant, chain_id, thought_id, content_hash, vector)
    VALUES (%s, %s, %s, %s, %s, %s::vector)
"""
UPDATE_POSITION = """
    UPDATE vectors.spaces SET position = (SELECT max(notification_id) FROM ledger.events)
"""


class Asked:
    """Embeds questions at once, in this process."""

    def __init__(self, reason=None):
        self._reason = reason

    async def embed(self, text):
        if self._reason:
            return NotEmbedded(self._reason)
        (vector,) = MODEL.embed([text])
        return QuestionVector(1, MODEL.identity.dimensions, as_text(vector))


@pytest.fixture
def embed(database, projector):
    """Gives every thought that is recorded its vector, but for those of *texts_left*."""

    def give(*texts_left):
        assert catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX) == []
        ensure_schema(projector)
        space = space_for(projector, MODEL.identity, MODEL.source)
        thoughts = projector.execute(
            "SELECT position, tenant, chain_id, id, content_hash, thought FROM live.thoughts"
        ).fetchall()
        rows = [
            (*row, as_text(MODEL.embed([text])[0]))
            for *row, text in thoughts
            if text not in texts_left
        ]
        with projector.cursor() as cursor:
            cursor.execute("TRUNCATE vectors.thoughts_1")
            for row in rows:
                cursor.execute(INSERT_VECTORS, row)
            cursor.execute(UPDATE_POSITION)
        index_neighbours(projector, space)

    return give


@pytest.fixture
def recall(database):
    def ask(query, *, by="related", exact_max=12_000, reason=None, tenant="default", **wanted):
        strategy = wanted.pop("strategy", Strategy.HYBRID)
        position = wanted.pop("position", 0)

        async def asking():
            connections = LiveConnections(lambda: database.connector(Role.READER))
            try:
                searching = Recall(connections, Asked(reason), exact_thoughts_max=exact_max)
                return await getattr(searching, by)(
                    tenant,
                    query,
                    RecallFilter(**{"statuses": OPEN} | wanted),
                    strategy=strategy,
                    position=position,
                )
            finally:
                await connections.close()

        return asyncio.run(asking())

    return ask


def chain_of(*texts, session_id=None):
    chain = ThoughtChain.start(uuid4(), title="", session_id=session_id)
    for number, text in enumerate(texts, 1):
        chain.add_thought(uuid4(), thought(text, number))
    return chain


def ids(answer):
    return [chain.id for chain in answer.chains]


def texts_by_chance(count, seed=1):
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=8)) for _ in range(count)]


@pytest.mark.parametrize("exact_max", [0, 12_000], ids=["by index", "each compared"])
def test_the_nearest_are_found_in_their_order_either_way(writer, embed, recall, exact_max):
    texts = texts_by_chance(400)
    record(writer, *[chain_of(*texts[n : n + 4]) for n in range(0, len(texts), 4)])
    embed()

    for query in texts_by_chance(10, seed=2):
        answer = recall(query, by="memories", strategy=Strategy.VECTOR, exact_max=exact_max)

        found = [memory.similarity for memory in answer.memories]
        (asked,) = MODEL.embed([query])
        best = sorted(
            (
                sum(a * b for a, b in zip(asked, vector, strict=True))
                for vector in MODEL.embed(sorted(set(texts)))
            ),
            reverse=True,
        )
        assert answer.how is Strategy.VECTOR
        assert found == sorted(found, reverse=True)
        assert found[:5] == pytest.approx(best[:5], abs=1e-5)


@pytest.mark.parametrize("exact_max", [0, 12_000], ids=["by index", "each compared"])
def test_never_fewer_rows_than_there_are_however_narrow_the_filter(
    writer, embed, recall, exact_max
):
    many = [chain_of(*texts_by_chance(10, seed), session_id="many") for seed in range(60)]
    few = [chain_of(text, session_id="few") for text in texts_by_chance(12, seed=99)]
    record(writer, *many, *few)
    theirs = chain_of(*texts_by_chance(7, seed=98))
    repository(writer, Context(actor="ada", tenant="other")).event_store.put(theirs.collect())
    embed()

    def found(**wanted):
        wanted |= {"strategy": Strategy.VECTOR, "exact_max": exact_max}
        return recall("word1 word2", by="memories", **wanted).memories

    assert {row.chain_id for row in found(session_id="few")} == {chain.id for chain in few}
    assert len(found(session_id="few", limit=5)) == 5
    assert len(found(limit=50)) == 50
    assert [row.chain_id for row in found(tenant="other")] == [theirs.id] * 7
    assert found(session_id="none") == []


def test_a_chain_with_very_many_thoughts_hides_no_other(writer, embed, recall):
    talkative = chain_of(*[f"word1 word2 number {number}" for number in range(300)])
    others = [chain_of(f"word1 and other things {number}") for number in range(9)]
    record(writer, talkative, *others)
    embed()

    answer = recall("word1 word2 number", strategy=Strategy.VECTOR, limit=10)

    assert ids(answer)[0] == talkative.id
    assert set(ids(answer)) == {talkative.id, *(chain.id for chain in others)}


def test_words_and_likeness_are_one_score_and_each_finds_what_the_other_does_not(
    writer, embed, recall
):
    both = chain_of("indexing the tables")
    alike = chain_of("reindexed a table")  # shares no word, but parts of some
    late = chain_of("the tables are not embedded yet")
    record(writer, both, alike, late)
    embed("the tables are not embedded yet")

    answer = recall("indexing tables")

    assert answer.how is Strategy.HYBRID
    assert ids(answer)[0] == both.id
    assert set(ids(answer)) == {both.id, alike.id, late.id}
    assert set(ids(recall("indexing tables", strategy=Strategy.TEXT))) == {both.id, late.id}
    assert set(ids(recall("indexing tables", strategy=Strategy.VECTOR))) >= {both.id, alike.id}


def test_without_a_vector_it_goes_by_words_and_says_why(writer, embed, recall):
    chain = chain_of("the cache is cold")
    record(writer, chain)
    embed()

    for strategy in Strategy:
        answer = recall("cache", strategy=strategy, reason="the model is loading")

        assert ids(answer) == [chain.id]
        asked_otherwise = strategy is not Strategy.TEXT
        assert answer.how is Strategy.TEXT
        assert answer.because == ("the model is loading" if asked_otherwise else None)


def test_tiered_goes_by_words_only_where_nothing_is_much_alike(writer, embed, recall):
    record(writer, chain_of("the cache is cold"), chain_of("an index of tables"))
    embed()

    assert recall("the cache is cold", strategy=Strategy.TIERED).how is Strategy.VECTOR
    assert recall("cold zanzibar", strategy=Strategy.TIERED).how is Strategy.HYBRID


def test_what_has_no_vector_yet_is_found_by_tiered_and_missed_by_vector_which_says_so(
    database, writer, embed, recall
):
    old, new = chain_of("the cache is cold"), chain_of("the cache is cold again")
    record(writer, old)
    embed()
    end = writer.execute("SELECT max(notification_id) FROM ledger.events").fetchone()[0]
    position = record(writer, new)
    assert catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX) == []

    tiered = recall("the cache is cold again", strategy=Strategy.TIERED)
    vector = recall("the cache is cold again", strategy=Strategy.VECTOR)

    assert (ids(tiered)[0], tiered.how) == (new.id, Strategy.HYBRID)
    assert (ids(vector), vector.stale) == ([old.id], False)
    assert f"after position {end} " in vector.because
    asked = recall("the cache is cold again", strategy=Strategy.VECTOR, position=position)
    assert asked.stale


def test_the_exact_text_is_first_also_where_it_has_no_vector_yet(writer, embed, recall):
    text = "the cache is cold because it was never warm"
    exact, near = chain_of(text), chain_of(f"{text} at all")
    record(writer, exact, near)
    embed(text)

    answer = recall(text)

    assert ids(answer) == [exact.id, near.id]
    assert answer.chains[0].score == 1 > answer.chains[1].score


def test_a_dead_end_by_likeness_comes_after_what_is_as_good(writer, embed, recall):
    dead, live = chain_of("word1 word2", "word3"), chain_of("word1 word2 word4")
    dead.abandon_thought(dead.steps.recorded[0].thought_id)
    record(writer, live, dead)
    embed()

    answer = recall("word1 word2 word5", strategy=Strategy.VECTOR)

    assert ids(answer) == [live.id, dead.id]
    assert [chain.dead_end for chain in answer.chains] == [False, True]


def test_what_is_archived_takes_no_place_of_what_is_not(writer, embed, recall):
    good = [chain_of(f"word1 word2 and others {number}") for number in range(3)]
    archived = [chain_of("word1 word2") for _ in range(120)]
    for chain in archived:
        for _ in range(3):
            chain.judge(Judgement.CORRECTED, source="ada")
    record(writer, *good, *archived)
    embed()

    for by in ("related", "memories"):
        for strategy in (Strategy.VECTOR, Strategy.TIERED, Strategy.HYBRID):
            answer = recall("word1 word2", by=by, strategy=strategy, limit=10)
            rows = answer.chains if by == "related" else answer.memories
            assert {getattr(row, "chain_id", row.id) for row in rows} == {c.id for c in good}


def test_a_vector_of_an_event_the_read_models_do_not_have_is_passed_over(
    writer, projector, embed, recall
):
    chain = chain_of("word1 word2")
    record(writer, chain)
    embed()
    (vector,) = MODEL.embed(["word1 word2"])
    row = (10_000, "default", UUID(int=1), UUID(int=2), b"", as_text(vector))
    projector.execute(INSERT_VECTORS, row)

    assert ids(recall("word1 word2")) == [chain.id]
