"""``related_entities``: who reasoned about a file, a symbol, a package, a URL or a name."""

from uuid import uuid4

import pytest

from tests.acceptance.in_memory import a_chain, call, talk
from tests.acceptance.product import chains, is_one_clear_sentence

TOOLSETS = ("chains", "memory")
HEADER = "src/http/parse_header.py"
THOUGHTS = {
    "parser": [
        f"The bug is in {HEADER}, where split_lines() is called.",
        f"So {HEADER} and split_lines() have to change.",
    ],
    "client": [f"The client needs ./{HEADER}; see https://example.com/rfc."],
    "other": ["We pip install numpy for the numbers.", "It is slow in docs/parse_header.py."],
    "plain": ["The header is parsed before every request, and it failed."],
    "paused": ["split_lines() may wait"],
}


@pytest.fixture(scope="module")
def ids(ledger):
    """The chains by what they are about; the read models have all of them."""

    async def think(client):
        found = {name: await a_chain(client, *texts) for name, texts in THOUGHTS.items()}
        await call(client, "pause_thought_chain", chain_id=found["paused"])
        return found

    found = talk(ledger, think)
    chains(ledger)
    return found


@pytest.fixture
def ask(ledger, ids):
    names = {chain_id: name for name, chain_id in ids.items()}

    def related(**said):
        answer = talk(ledger, lambda c: call(c, "related_entities", **said), toolsets=TOOLSETS)
        assert answer["count"] == len(answer["chains"])
        assert "stale" not in answer
        for chain in answer["chains"]:
            chain["name"] = names[chain["chain_id"]]
        return answer

    return related


def named(answer, field="entities"):
    return [entity["name"] for entity in answer[field]]


def found(answer):
    return [chain["name"] for chain in answer["chains"]]


def test_the_chains_that_mention_a_file_most_first_and_what_is_mentioned_with_it(ask):
    answer = ask(entity=HEADER)

    assert answer["entities"] == [{"kind": "file", "name": HEADER, "thoughts": 3, "chains": 2}]
    assert found(answer) == ["parser", "client"]
    assert (answer["entities_total"], answer["chains_total"]) == (1, 2)
    parser = answer["chains"][0]
    assert (parser["status"], parser["title"]) == ("active", "which index?")
    assert (parser["mentions"], parser["entities"]) == (2, 1)
    assert parser["snippet"] == THOUGHTS["parser"][1]
    assert 0 < parser["position"] <= answer["position"]
    assert answer["together"] == [
        {"kind": "symbol", "name": "split_lines", "thoughts": 2},
        {"kind": "url", "name": "example.com/rfc", "thoughts": 1},
    ]


@pytest.mark.parametrize(
    "written",
    [f"./{HEADER}", f"`{HEADER}`", f"{HEADER}:42", HEADER.upper(), "src\\http\\parse_header.py"],
)
def test_a_name_is_found_however_it_is_written(ask, written):
    assert named(ask(entity=written)) == [HEADER]


def test_a_part_is_found_where_nothing_is_called_just_so(ask):
    assert sorted(named(ask(entity="parse_header.py"))) == ["docs/parse_header.py", HEADER]
    assert named(ask(entity="example.com")) == ["example.com/rfc"]


def test_a_text_asks_for_all_it_names(ask):
    answer = ask(query=f"why does {HEADER} need numpy, and was it slow before?")

    assert sorted(named(answer)) == ["numpy", HEADER]
    assert found(answer) == ["parser", "other", "client"]


def test_ordinary_words_ask_for_nothing(ask):
    answer = ask(query="the header is parsed before every request, and it failed")

    assert (named(answer), found(answer), answer["together"]) == ([], [], [])


def test_a_chain_asks_for_what_it_mentions_and_for_the_other_chains_that_do(ask, ids):
    answer = ask(chain_id=ids["parser"])

    assert sorted(named(answer)) == ["split_lines", HEADER]
    assert found(answer) == ["paused", "client"], "as many each; the latest first"
    assert [chain["status"] for chain in answer["chains"]] == ["paused", "active"]
    assert found(ask(chain_id=ids["plain"])) == []


def test_kind_and_limit_narrow(ask):
    assert named(ask(query=f"{HEADER} numpy", kind="package")) == ["numpy"]
    assert named(ask(entity=HEADER, kind="symbol")) == []
    answer = ask(entity=HEADER, limit="1")
    assert (found(answer), answer["chains_total"]) == (["parser"], 2)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"query": "a", "entity": "b"},
        {"query": " "},
        {"entity": "x" * 300},
        {"entity": "a", "kind": "person"},
        {"entity": "a", "limit": 0},
        {"chain_id": "nonsense"},
        {"chain_id": str(uuid4())},
    ],
)
def test_what_cannot_be_answered_is_refused_and_says_why(ledger, ids, said):
    result = talk(ledger, lambda c: c.call_tool("related_entities", said), toolsets=TOOLSETS)

    assert result.is_error
    assert result.structured_content is None
    assert is_one_clear_sentence(result.content[0].text)


def test_what_was_just_thought_and_is_not_there_yet_is_told(ledger, ids):
    async def conversation(client):
        await a_chain(client, "numpy==2.1 it is")
        return await call(client, "related_entities", entity="numpy")

    answer = talk(ledger, conversation, toolsets=TOOLSETS)

    assert (found_ids(answer), answer["stale"]) == ([ids["other"]], True)


def test_before_anything_is_built_the_answer_is_empty_and_stale(data_dir):
    answer = talk(data_dir, lambda c: call(c, "related_entities", entity="a.py"), toolsets=TOOLSETS)

    assert (answer["chains"], answer["position"], answer["stale"]) == ([], 0, True)


def found_ids(answer):
    return [chain["chain_id"] for chain in answer["chains"]]
