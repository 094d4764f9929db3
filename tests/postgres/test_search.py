"""Search of chains: what is found, what comes first, and never fewer than there are."""

import asyncio
import random
import threading
from contextlib import ExitStack
from uuid import uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.events import Judgement, Outcome
from ledger.header import Context
from ledger.recorder import repository
from projections.catalogue import ALL
from projections.embeddings.questions import QuestionEmbedder
from projections.live import LiveConnections
from projections.recall import answers, words
from projections.recall.filters import RecallFilter
from projections.recall.search import Recall
from projections.tokens import TEXT_CHARACTERS_MAX
from projections.workers import catch_up_all
from tests.postgres.projecting import SECONDS_MAX, record, running_worker, thought

OPEN = ("active", "completed")
EVERY = (*OPEN, "paused", "abandoned")


@pytest.fixture
def found(database):
    """What a question finds, once all that is recorded is in the read models."""

    def ask(query, position=0, *, tenant="default", statuses=OPEN, **wanted):
        assert catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX) == []
        return asyncio.run(related(database, query, position, tenant, statuses, wanted))

    return ask


async def related(
    database,
    query,
    position=0,
    tenant="default",
    statuses=OPEN,
    wanted=None,
    *,
    by="related",
    **limits,
):
    connections = LiveConnections(lambda: database.connector(Role.READER))
    try:
        wanted = RecallFilter(statuses=statuses, **(wanted or {}))
        recall = Recall(connections, QuestionEmbedder(connections), **limits)
        return await getattr(recall, by)(tenant, query, wanted, position=position)
    finally:
        await connections.close()


def chain_of(*texts, title="", session_id=None):
    chain = ThoughtChain.start(uuid4(), title=title, session_id=session_id)
    for number, text in enumerate(texts, 1):
        chain.add_thought(uuid4(), thought(text, number))
    return chain


def ids(answer):
    return [chain.id for chain in answer.chains]


def test_a_chain_is_one_row_with_its_best_thought(writer, found):
    cache = chain_of("The cache is cold.", "A cold cache, after a restart, is why.", session_id="s")
    other = chain_of("The index is missing.")
    position = record(writer, cache, other)

    answer = found("why is a cache cold after a restart?", position)

    assert ids(answer) == [cache.id, other.id]
    best = answer.chains[0]
    assert best.snippet == "A cold cache, after a restart, is why."
    assert (best.session_id, best.status, best.thought_count) == ("s", "active", 2)
    assert 1 > best.score > answer.chains[1].score > 0
    assert (answer.position, answer.stale) == (position, False)


def test_nothing_is_found_by_what_nobody_said(writer, found):
    record(writer, chain_of("The cache is cold."))

    assert found("zanzibar").chains == []
    assert found("?!").chains == []


def test_a_chain_is_found_by_its_title(writer, found):
    chain = chain_of("It is cold.", title="Why does the export time out?")
    record(writer, chain, chain_of("something else"))

    answer = found("export timeouts: time out")

    assert ids(answer) == [chain.id]
    assert answer.chains[0].snippet == "Why does the export time out?"


@pytest.mark.parametrize("query", ["parse_header", "header", "src/http/parse_header.py", "src"])
def test_a_name_is_found_whole_and_by_its_parts(writer, found, query):
    chain = chain_of("see src/http/parse_header.py for how")
    record(writer, chain, chain_of("nothing to see"))

    assert ids(found(query)) == [chain.id]


def test_paused_and_abandoned_chains_are_found_when_asked_for(writer, found):
    chains = {status: chain_of("the cache") for status in EVERY}
    chains["paused"].pause()
    chains["completed"].complete()
    chains["abandoned"].abandon()
    record(writer, *chains.values())

    def statuses(*asked):
        answer = found("cache", statuses=asked)
        assert all(chains[chain.status].id == chain.id for chain in answer.chains)
        return {chain.status for chain in answer.chains}

    assert statuses(*OPEN) == set(OPEN)
    assert statuses(*OPEN, "paused") == {*OPEN, "paused"}
    assert statuses(*EVERY) == set(EVERY)


def test_a_chain_that_moves_is_found_as_it_is_now(writer, found):
    chain = chain_of("the cache")
    chain.abandon()
    record(writer, chain)
    assert found("cache").chains == []

    chain.resume()
    chain.add_thought(uuid4(), thought("the index", 2))
    record(writer, chain)

    (row,) = found("cache").chains
    assert (row.id, row.status, row.thought_count) == (chain.id, "active", 2)


def test_filters_narrow_before_the_best_are_taken(writer, found):
    many = [chain_of("the cache " * 3, session_id="many") for _ in range(60)]
    few = [chain_of("a cache, said in very many other words", session_id="few") for _ in range(3)]
    record(writer, *many, *few)

    assert set(ids(found("the cache", session_id="few", limit=5))) == {c.id for c in few}
    assert len(ids(found("the cache", limit=50))) == 50
    assert len(ids(found("the cache", agent="ada", limit=7))) == 7
    assert ids(found("the cache", agent="bob")) == []


def test_a_chain_with_very_many_texts_hides_no_other(writer, found):
    talkative = chain_of(*["the cache"] * 300)
    others = [chain_of("about other things, and also the cache") for _ in range(9)]
    record(writer, talkative, *others)

    answer = found("the cache", limit=10)

    assert ids(answer)[0] == talkative.id
    assert set(ids(answer)[1:]) == {chain.id for chain in others}


def test_tenants_do_not_see_each_other(writer, found):
    ours, theirs = chain_of("the cache"), chain_of("the cache is theirs")
    record(writer, ours)
    repository(writer, Context(actor="ada", tenant="other")).event_store.put(theirs.collect())

    assert ids(found("the cache is theirs")) == [ours.id]
    assert ids(found("the cache is theirs", tenant="other")) == [theirs.id]


def test_a_dead_end_is_marked_and_comes_after_what_is_as_good(writer, found):
    dead = chain_of("the cache is cold", "so warm it up by hand")
    live = chain_of("the cache is cold for a reason that is not known yet")
    exact = chain_of("the cache is cold")
    dead.abandon_thought(dead.steps.recorded[0].thought_id)
    record(writer, exact, live, dead)

    answer = found("cache is cold")
    same = found("The cache is cold")

    assert ids(answer) == [exact.id, live.id, dead.id]
    assert [chain.dead_end for chain in answer.chains] == [False, False, True]
    assert ids(same) == [exact.id, dead.id, live.id], "the exact text is worth all, live or not"


def test_a_branch_that_was_given_up_is_a_dead_end_too(writer, found):
    chain = chain_of("look")
    chain.add_thought(uuid4(), thought("drop the table", 2, branch_id="left"))
    chain.add_thought(uuid4(), thought("add an index", 2, branch_id="right"))
    chain.close_branch("left", Outcome.ABANDONED)
    chain.close_branch("right", Outcome.KEPT)
    record(writer, chain)

    dead_ends = [found(query).chains[0].dead_end for query in ("drop the table", "add an index")]

    assert dead_ends == [True, False]


def test_what_was_revised_comes_after_its_revision_and_names_it(database, writer, found):
    chain = chain_of("warm the cache by hand")
    first = chain.steps.recorded[0].thought_id
    chain.add_checked_thought(
        uuid4(),
        thought("warm the cache by a job", 2, is_revision=True, revises_thought_number=1),
    )
    chain.judge(Judgement.CORRECTED, source="ada", thought_id=first)
    record(writer, chain)
    found("cache")

    answer = asyncio.run(related(database, "warm the cache", by="memories"))

    revision, revised = answer.memories
    assert (revised.thought_id, revised.superseded_by) == (first, revision.thought_id)
    assert (revised.contradicted, revision.contradicted) == (True, False)
    assert revision.score > revised.score


def archived(*texts, title=""):
    chain = chain_of(*texts, title=title)
    for step in chain.steps.recorded:
        for _ in range(3):
            chain.judge(Judgement.CORRECTED, source="ada", thought_id=step.thought_id)
    return chain


@pytest.mark.parametrize("by", ["related", "memories"])
def test_what_is_archived_takes_no_place_of_what_is_not(database, writer, found, by):
    good = [chain_of(f"a cold cache, said in many other words {n}") for n in range(3)]
    record(writer, *good, *[archived("cold cache", title="cold cache") for _ in range(250)])
    found("cache")

    def rows(**wanted):
        answer = asyncio.run(related(database, "cold cache", wanted=wanted, by=by, statuses=OPEN))
        return answer.chains if by == "related" else answer.memories

    ours = {chain.id for chain in good}
    assert {getattr(row, "chain_id", row.id) for row in rows()} == ours
    assert len(rows(trust_min=0.0)) == 50


def test_a_chain_with_an_archived_thought_is_found_by_its_others(database, writer, found):
    chain = chain_of("the cache is a flute", "the cache is cold")
    first = chain.steps.recorded[0].thought_id
    for _ in range(3):
        chain.judge(Judgement.CORRECTED, source="ada", thought_id=first)
    record(writer, chain)

    assert ids(found("cache")) == [chain.id]
    (row,) = asyncio.run(related(database, "cache", by="memories")).memories
    assert row.snippet == "the cache is cold"


def test_titles_take_no_place_of_thoughts(database, writer, found):
    titled = [chain_of("something else", title="cold cache") for _ in range(210)]
    good = [chain_of(f"a cold cache, said in many other words {n}") for n in range(3)]
    record(writer, *good, *titled)
    found("cache")

    memories = asyncio.run(related(database, "cold cache", by="memories")).memories

    assert {row.chain_id for row in memories} == {chain.id for chain in good}


def test_a_title_does_not_stand_for_a_first_thought_that_was_given_up(writer, found):
    chain = chain_of("the cache is cold", "so warm it up", title="the cache is cold")
    chain.abandon_thought(chain.steps.recorded[0].thought_id)
    record(writer, chain)

    (row,) = found("cold cache").chains

    assert row.dead_end


def test_the_exact_text_comes_first_whatever_else_is_said_more_often(writer, found):
    text = "the cache is cold because the cache was never warm"
    exact, longer = chain_of(text), chain_of(" ".join([text] * 20))
    record(writer, exact, longer)

    answer = found(text.upper())

    assert ids(answer) == [exact.id, longer.id]
    assert answer.chains[0].score == 1 > answer.chains[1].score


def test_of_texts_alike_but_for_case_and_white_space_the_very_one_comes_first(writer, found):
    texts = ["the cache  is cold", "The cache is cold", "the cache is\ncold"]
    chains = [chain_of(text) for text in texts]
    record(writer, *chains)

    for text, chain in zip(texts, chains, strict=True):
        assert ids(found(text))[0] == chain.id


def test_any_stored_text_finds_a_chain_that_holds_it_first(writer, found):
    chance = random.Random(3)
    words = [f"w{number}" for number in range(40)]
    signs = [
        "-" * 50,
        "🧠 " * 30,
        "索引" * 30,
        "a\0b " * 15,
        "x" * TEXT_CHARACTERS_MAX + " late" * 9,
    ]
    texts = [" ".join(chance.choices(words, k=chance.randint(15, 90))) for _ in range(600)] + signs
    chains = [chain_of(*texts[number::100]) for number in range(100)]
    record(writer, *chains)
    holders = {text: chain.id for n, chain in enumerate(chains) for text in texts[n::100]}

    for text in [*chance.sample(texts, 60), *signs]:
        assert ids(found(text, limit=3))[0] == holders[text], text[:60]


def test_one_reads_ones_own_writes(database, writer):
    asked = [projection for projection in ALL if projection.name != "entities"]
    with ExitStack() as stack:
        for projection in asked:
            stack.enter_context(running_worker(database, projection)).hear("leads")
        chain = chain_of("the cache")
        position = record(writer, chain)

        answer = asyncio.run(related(database, "cache", position))

    assert ids(answer) == [chain.id]
    assert (answer.position, answer.stale) == (position, False)


def test_without_a_worker_what_is_missing_is_told(database, writer, found):
    first = chain_of("the cache")
    position = record(writer, first)
    assert ids(found("cache")) == [first.id]
    later = record(writer, chain_of("the cache too"))

    answer = asyncio.run(related(database, "cache", later))

    assert ids(answer) == [first.id]
    assert (answer.position, answer.stale) == (position, True)


def test_before_anything_is_built_the_answer_is_empty_and_stale(database):
    answer = asyncio.run(related(database, "cache"))

    assert (answer.chains, answer.position, answer.stale) == ([], 0, True)


def test_who_asks_for_trust_waits_for_it_and_is_told_when_it_is_missing(database, writer):
    position = record(writer, chain_of("the cache"))
    connector = database.connector(Role.PROJECTOR)
    without = [projection for projection in ALL if projection.name != "trust"]
    assert catch_up_all(connector, without, SECONDS_MAX) == []

    trusting = {"trust_min": 0.1}
    early = asyncio.run(related(database, "cache", position, wanted=trusting))
    assert catch_up_all(connector, ALL, SECONDS_MAX) == []
    later = asyncio.run(related(database, "cache", position, wanted=trusting))

    assert (early.chains, early.stale) == ([], True)
    assert "no worker has built" in early.because
    assert (len(later.chains), later.stale) == (1, False)


def test_commoner_terms_are_gone_through_as_long_as_there_are_too_few_chains(
    database, writer, found
):
    rare = chain_of("the zanzibar cache")
    common = [chain_of(f"the cache number {number}") for number in range(5)]
    record(writer, rare, *common)
    every = [rare, *common]
    assert set(ids(found("the zanzibar cache"))) == {chain.id for chain in every}

    def by_little(limit):
        return asyncio.run(
            related(database, "zanzibar cache", wanted={"limit": limit}, entries_max=4)
        )

    assert ids(by_little(1)) == [rare.id]
    assert ids(by_little(9))[0] == rare.id
    assert sorted(ids(by_little(9))) == sorted(chain.id for chain in every)


def test_what_is_narrowed_down_to_is_found_by_the_commonest_term_however_old_it_is(
    database, writer, found
):
    old = chain_of("the cache", session_id="old")
    record(writer, old, *[chain_of("the cache") for _ in range(300)])
    assert len(ids(found("cache"))) == 50

    answer = asyncio.run(
        related(database, "cache", wanted={"session_id": "old", "limit": 9}, entries_max=1)
    )

    assert ids(answer) == [old.id]


def test_texts_are_not_gone_through_by_the_thread_that_answers_all(writer, found, monkeypatch):
    record(writer, chain_of("the cache " * 100))
    threads = []

    def noting(read):
        def read_and_note(*arguments):
            threads.append(threading.current_thread())
            return read(*arguments)

        return read_and_note

    names = {"ask": words, "snippet_of": answers}
    for name, module in names.items():
        monkeypatch.setattr(module, name, noting(getattr(module, name)))

    assert len(ids(found("cache"))) == 1
    assert len(threads) == len(names)
    assert threading.main_thread() not in threads
