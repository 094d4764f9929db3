"""The toolset ``chains`` over stdio: its tools, its rules, and two servers on one ledger."""

from uuid import uuid4

import pytest

from tests.acceptance.client import Server, thought
from tests.acceptance.product import (
    eventually,
    is_one_clear_sentence,
    replay,
    temporary_data_dir,
    topics,
)

TOOLSETS = ("--toolsets", "compat,chains")
LONG_CHAIN_THOUGHTS = 1_000
LONG_SECONDS_MAX = 60


@pytest.fixture(scope="module")
def server():
    """One server for all tests of the module, which start chains of their own."""
    with temporary_data_dir() as data_dir, Server(data_dir, *TOOLSETS) as server:
        server.data_dir = data_dir
        # Its worker builds the read models a moment after the first answers.
        eventually(lambda: "stale" not in server.call("list_thought_chains", {}).structured)
        yield server


@pytest.fixture
def chain(server):
    """A chain of three thoughts."""
    chain_id = server.call("start_thought_chain", {"title": "which index?"})["chain_id"]
    for number in (1, 2, 3):
        added = add(server, chain_id, f"thought {number}", number)
        assert added.outcome == "answered"
    return chain_id


def add(server, chain_id, text="t", number=1, **others):
    return server.call("add_thought", thought(text, number, chain_id=chain_id, **others))


def read(server, chain_id, **wanted):
    return server.call("get_thought_chain", {"chain_id": chain_id, **wanted})


def assert_refused(answer, *words):
    assert answer.outcome == "isError"
    assert answer.structured is None
    assert is_one_clear_sentence(answer.text), answer.text
    for word in words:
        assert word in answer.text


# One test a row


def test_add_thought(server):
    first = server.call(
        "add_thought",
        thought(
            "one",
            1,
            session_id="a session",
            confidence=0.8,
            assumptions=["a", "b"],
            critique="c",
            counterArgument="ca",
            nextStepRationale="n",
        ),
    )

    assert list(first.structured) == [
        "thoughtNumber",
        "totalThoughts",
        "nextThoughtNeeded",
        "chain_id",
        "branches",
        "thoughtHistoryLength",
        "thought_id",
        "version",
        "position",
    ]
    assert (first["thoughtHistoryLength"], first["version"], first["branches"]) == (1, 2, [])
    page = read(server, first["chain_id"])
    (said,) = page["thoughts"]
    assert page["session_id"] == "a session"
    assert said["thought_id"] == first["thought_id"]
    assert (said["confidence"], said["assumptions"]) == (0.8, ["a", "b"])
    assert (said["critique"], said["counter_argument"]) == ("c", "ca")
    assert (said["next_step_rationale"], said["agent"]) == ("n", "acceptance")


def test_start_thought_chain(server, chain):
    started = server.call(
        "start_thought_chain", {"session_id": "s", "parent_chain_id": chain, "title": "child"}
    )

    assert list(started.structured) == ["chain_id", "session_id", "status", "created_at"]
    assert (started["session_id"], started["status"]) == ("s", "active")
    page = read(server, started["chain_id"])
    assert (page["parent_chain_id"], page["title"], page["thoughts"]) == (chain, "child", [])


def test_get_thought_chain(server, chain):
    page = read(server, chain)

    assert (page["chain_id"], page["status"], page["title"]) == (chain, "active", "which index?")
    assert page["thought_count"] == 3
    assert page["branchMap"] == {}
    assert page["created_at"] < page["updated_at"]
    assert [t["thought"] for t in page["thoughts"]] == ["thought 1", "thought 2", "thought 3"]
    assert [t["sequence"] for t in page["thoughts"]] == [1, 2, 3]
    assert [t.get("parent") for t in page["thoughts"]] == [None, 1, 2]
    assert "next" not in page.structured


def test_list_thought_chains(server):
    session = f"session {uuid4()}"
    chains = [
        server.call("start_thought_chain", {"session_id": session, "title": f"chain {n}"})
        for n in range(3)
    ]
    ids = [chain["chain_id"] for chain in chains]
    server.call("pause_thought_chain", {"chain_id": ids[0]})
    child = server.call("start_thought_chain", {"parent_chain_id": ids[1]})["chain_id"]

    def listed(**wanted):
        answer = server.call("list_thought_chains", wanted)
        assert "stale" not in answer.structured
        assert answer["count"] == len(answer["chains"])
        return [chain["chain_id"] for chain in answer["chains"]]

    assert listed(session_id=session) == [ids[0], ids[2], ids[1]], "the latest moved first"
    assert listed(session_id=session, status="paused") == [ids[0]]
    assert listed(parent_chain_id=ids[1]) == [child]
    assert listed(session_id=session, agent="acceptance") == [ids[0], ids[2], ids[1]]
    assert listed(session_id=session, agent="somebody else") == []


def test_list_thought_chains_page_by_page(server):
    session = f"session {uuid4()}"
    started = [
        server.call("start_thought_chain", {"session_id": session})["chain_id"] for _ in range(5)
    ]

    seen, more = [], {}
    while True:
        page = server.call("list_thought_chains", {"session_id": session, "limit": 2, **more})
        seen += [chain["chain_id"] for chain in page["chains"]]
        if "next" not in page.structured:
            break
        more = {"cursor": page["next"]}

    assert seen == started[::-1]


def test_revise_thought(server, chain):
    revised = server.call(
        "revise_thought",
        {"chain_id": chain, "thought_number": 2, "revised_thought": "better", "reason": "why not"},
    )

    assert revised.structured == {
        "success": True,
        "thought_id": revised["thought_id"],
        "chain_id": chain,
        "thought_number": 2,
    }
    thoughts = read(server, chain)["thoughts"]
    assert thoughts[1]["thought"] == "thought 2"
    assert thoughts[1]["revised_by"] == 4
    assert (thoughts[3]["thought"], thoughts[3]["revises"]) == ("better", 2)
    assert thoughts[3]["reason"] == "why not"


def test_branch_thought(server, chain):
    branched = server.call(
        "branch_thought",
        {"chain_id": chain, "from_thought_number": 1, "branch_id": "b", "thought": "instead"},
    )
    again = server.call(
        "branch_thought",
        {"chain_id": chain, "from_thought_number": 1, "branch_id": "b", "thought": "then"},
    )

    assert branched.structured == {
        "success": True,
        "thought_id": branched["thought_id"],
        "chain_id": chain,
        "branch_id": "b",
        "thought_number": 2,
    }
    assert again["thought_number"] == 3
    page = read(server, chain, branch_id="b")
    assert [t["thought"] for t in page["thoughts"]] == ["instead", "then"]
    assert [t["parent"] for t in page["thoughts"]] == [1, 4]
    assert page["branchMap"] == {"b": [4, 5]}


def test_a_branch_that_is_there_is_gone_on_with_without_saying_where_it_leaves(server, chain):
    where = {"chain_id": chain, "branch_id": "b"}
    nowhere = server.call("branch_thought", {**where, "thought": "from where?"})
    server.call("branch_thought", {**where, "from_thought_number": 1, "thought": "instead"})

    again = server.call("branch_thought", {**where, "thought": "then"})

    assert_refused(nowhere, "from_thought_number")
    assert again["thought_number"] == 3
    assert [t["parent"] for t in read(server, chain, branch_id="b")["thoughts"]] == [1, 4]


def test_an_argument_nobody_knows_is_warned_of(server, chain):
    answer = add(server, chain, "t", 4, expectVersion=1, thoughtColour="red")

    assert answer["warnings"] == ["not known here and not used: 'expectVersion', 'thoughtColour'"]


def test_after_a_dead_end_the_refusal_says_how_to_go_on(server, chain):
    server.call("abandon_thought_chain", {"chain_id": chain, "thought_number": 3})
    after_some = add(server, chain, "next", 4)
    server.call("abandon_thought_chain", {"chain_id": chain, "thought_number": 1})
    after_all = add(server, chain, "next", 4)

    assert_refused(after_some, "revise thought 2")
    assert_refused(after_all, "start another with thought 1")


@pytest.mark.parametrize("outcome", ["kept", "merged", "abandoned"])
def test_close_branch(server, chain, outcome):
    where = {"chain_id": chain, "branch_id": "b"}
    server.call("branch_thought", {**where, "from_thought_number": 1, "thought": "instead"})

    closed = server.call("close_branch", {**where, "outcome": outcome, "conclusion": "enough"})

    assert closed.structured == {"success": True, **where, "outcome": outcome}
    late = {"branchId": "b", "branchFromThought": 1}
    assert_refused(add(server, chain, "late", 2, **late), "closed")
    assert_refused(
        server.call("branch_thought", {**where, "from_thought_number": 1, "thought": "late"})
    )
    assert_refused(server.call("close_branch", {**where, "outcome": outcome}), "closed")
    assert read(server, chain)["closed_branches"] == {"b": outcome}


def test_pause_and_resume_thought_chain(server, chain):
    paused = server.call("pause_thought_chain", {"chain_id": chain, "reason": "lunch"})
    refused = add(server, chain, "too early", 4)
    resumed = server.call("resume_thought_chain", {"chain_id": chain})

    moved = {"success": True, "chain_id": chain}
    assert paused.structured == {**moved, "previous_status": "active", "new_status": "paused"}
    assert_refused(refused, "resume_thought_chain")
    assert resumed.structured == {
        **moved,
        "previous_status": "paused",
        "new_status": "active",
        "thought_count": 3,
        "last_thought": "thought 3",
    }
    assert add(server, chain, "in time", 4).outcome == "answered"


def test_complete_thought_chain(server, chain):
    completed = server.call("complete_thought_chain", {"chain_id": chain, "conclusion": "b-tree"})

    assert (completed["previous_status"], completed["new_status"]) == ("active", "completed")
    assert_refused(add(server, chain, "too late", 4), "resume")
    revision = {"chain_id": chain, "thought_number": 1, "revised_thought": "yet"}
    assert server.call("revise_thought", revision).outcome == "answered"
    assert read(server, chain)["status"] == "completed"
    assert replay(chain, data_dir=server.data_dir)[4]["conclusion"] == "b-tree"


def test_abandon_thought_chain(server, chain):
    abandoned = server.call("abandon_thought_chain", {"chain_id": chain, "reason": "no use"})

    assert (abandoned["previous_status"], abandoned["new_status"]) == ("active", "abandoned")
    for tool, said in (
        ("revise_thought", {"thought_number": 1, "revised_thought": "r"}),
        ("branch_thought", {"from_thought_number": 1, "branch_id": "b", "thought": "t"}),
        ("pause_thought_chain", {}),
        ("complete_thought_chain", {}),
    ):
        assert_refused(server.call(tool, {"chain_id": chain, **said}), "resume")


def test_a_last_thought_that_is_given_up_takes_no_other_with_it(server, chain):
    given_up = server.call("abandon_thought_chain", {"chain_id": chain, "thought_number": 3})

    assert not {"warnings", "also_given_up"} & given_up.structured.keys()


def test_abandon_one_thought(server, chain):
    given_up = server.call("abandon_thought_chain", {"chain_id": chain, "thought_number": 2})

    assert (given_up["previous_status"], given_up["new_status"]) == ("active", "active")
    assert [t["abandoned"] for t in read(server, chain)["thoughts"]] == [False, True, True]
    assert given_up["also_given_up"] == 1
    assert "hangs under it: 3;" in given_up["warnings"][0]
    assert_refused(add(server, chain, "under it", 4), "dead end")
    beside = {"branchId": "b", "branchFromThought": 1}
    assert add(server, chain, "beside it", 2, **beside).outcome == "answered"


# Which chain


def test_a_started_chain_is_the_current_one_for_either_tool(server):
    chain_id = server.call("start_thought_chain", {})["chain_id"]

    by_drop_in = server.think("one", number=1)
    checked = server.call("add_thought", thought("two", 2))
    anew = server.call("add_thought", thought("one again", 1))

    assert by_drop_in["chain_id"] == checked["chain_id"] == chain_id
    assert checked["thoughtHistoryLength"] == 2, "always that chain's"
    assert anew["chain_id"] != chain_id


def test_each_session_that_is_named_has_a_current_chain_of_its_own(server):
    one, two = (f"session {uuid4()}" for _ in range(2))
    first = server.call("add_thought", thought("one", 1, session_id=one))["chain_id"]
    other = server.call("add_thought", thought("one", 1, session_id=two))["chain_id"]

    again = server.call("add_thought", thought("two", 2, session_id=one))["chain_id"]

    assert again == first != other


def test_a_started_chain_waits_for_its_first_thought_also_behind_a_later_one(server):
    session = f"session {uuid4()}"
    started = server.call("start_thought_chain", {"session_id": session})["chain_id"]
    server.call("start_thought_chain", {})

    first = server.call("add_thought", thought("one", 1, session_id=session))

    assert first["chain_id"] == started


def test_a_started_chain_waits_for_its_first_thought_also_for_the_next_process(server):
    session = ("--session", f"session {uuid4()}")
    with Server(server.data_dir, *TOOLSETS, *session) as first:
        started = first.call("start_thought_chain", {})["chain_id"]

    with Server(server.data_dir, *TOOLSETS, *session) as second:
        assert second.think("one", number=1)["chain_id"] == started


@pytest.mark.parametrize("tool", ["sequentialthinking", "add_thought"])
def test_a_retry_does_not_go_back_to_an_earlier_chain(server, tool):
    request = thought("one", 1, requestId=str(uuid4()))
    server.call(tool, request)
    current = server.call(tool, thought("another one", 1))["chain_id"]

    server.call(tool, request)

    assert server.call(tool, thought("two", 2))["chain_id"] == current


def test_the_last_thought_completes_the_chain(server, chain):
    add(server, chain, "done", 4, more=False)

    assert read(server, chain)["status"] == "completed"


# References


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("add_thought", thought("t", 4, isRevision=True, revisesThought=99)),
        ("add_thought", thought("t", 4, branchFromThought=99, branchId="b")),
        ("revise_thought", {"thought_number": 99, "revised_thought": "r"}),
        ("revise_thought", {"thought_id": str(uuid4()), "revised_thought": "r"}),
        ("branch_thought", {"from_thought_number": 99, "branch_id": "b", "thought": "t"}),
        ("abandon_thought_chain", {"thought_number": 99}),
        ("close_branch", {"branch_id": "none", "outcome": "kept"}),
        ("get_thought_chain", {"branch_id": "none"}),
        ("get_thought_chain", {"at_version": 99}),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_recorded(server, chain, tool, said):
    before = read(server, chain)["version"]

    assert_refused(server.call(tool, {"chain_id": chain, **said}))

    assert read(server, chain)["version"] == before


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("add_thought", thought("t", 1)),
        ("get_thought_chain", {}),
        ("revise_thought", {"thought_number": 1, "revised_thought": "r"}),
        ("branch_thought", {"from_thought_number": 1, "branch_id": "b", "thought": "t"}),
        ("close_branch", {"branch_id": "b", "outcome": "kept"}),
        ("pause_thought_chain", {}),
        ("resume_thought_chain", {}),
        ("complete_thought_chain", {}),
        ("abandon_thought_chain", {}),
    ],
)
@pytest.mark.parametrize("chain_id", [str(uuid4()), "none"], ids=["unknown", "malformed"])
def test_a_chain_that_is_not_there_is_refused(server, tool, said, chain_id):
    assert_refused(server.call(tool, {**said, "chain_id": chain_id}))


def test_a_parent_that_is_not_there_is_refused(server):
    assert_refused(server.call("start_thought_chain", {"parent_chain_id": str(uuid4())}))


def test_an_id_is_exact_where_a_number_is_the_latest(server, chain):
    older = read(server, chain)["thoughts"][1]["thought_id"]
    add(server, chain, "another two", 2)

    said = {"chain_id": chain, "revised_thought": "r"}
    server.call("revise_thought", {**said, "thought_number": 2})
    server.call("revise_thought", {**said, "thought_id": older})

    thoughts = read(server, chain)["thoughts"]
    assert [t["revises"] for t in thoughts[4:]] == [4, 2]


# Two writers


def test_a_stale_writer_of_another_server_is_refused_with_the_current_version(server, chain):
    version = read(server, chain)["version"]
    with Server(server.data_dir, *TOOLSETS) as other:
        theirs = add(other, chain, "theirs", 4, expectedVersion=version)

        stale = add(server, chain, "ours", 4, expectedVersion=version)
        seen = [t["thought"] for t in read(server, chain)["thoughts"]]
        ours = add(server, chain, "ours", 5, expectedVersion=theirs["version"])

        assert_refused(stale, f"version {theirs['version']}")
        assert seen[-1] == "theirs"
        assert ours["version"] == theirs["version"] + 1
        assert read(other, chain)["thoughts"][-1]["thought"] == "ours"


# Retries


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("add_thought", thought("t", 4)),
        ("revise_thought", {"thought_number": 1, "revised_thought": "r"}),
        ("branch_thought", {"from_thought_number": 1, "branch_id": "b", "thought": "t"}),
        ("close_branch", {"branch_id": "open", "outcome": "kept"}),
        ("abandon_thought_chain", {"thought_number": 2}),
        ("complete_thought_chain", {"conclusion": "c"}),
        ("abandon_thought_chain", {}),
        ("pause_thought_chain", {}),
    ],
)
def test_a_retry_gets_the_first_answer_also_after_a_change_of_status(server, chain, tool, said):
    opened = {"from_thought_number": 1, "branch_id": "open", "thought": "t"}
    server.call("branch_thought", {"chain_id": chain, **opened})
    request = {"chain_id": chain, **said, "requestId": str(uuid4())}
    first = server.call(tool, request)
    server.call("pause_thought_chain", {"chain_id": chain})
    before = topics(replay(chain, data_dir=server.data_dir))

    again = server.call(tool, request)

    assert again.structured == first.structured
    assert topics(replay(chain, data_dir=server.data_dir)) == before
    assert first.outcome == "answered"


def test_a_retried_resume_or_start_gets_the_first_answer(server, chain):
    server.call("pause_thought_chain", {"chain_id": chain})
    for tool, said in (
        ("resume_thought_chain", {"chain_id": chain}),
        ("start_thought_chain", {"title": "t"}),
        ("add_thought", thought("first of a chain", 1)),
    ):
        request = {**said, "requestId": str(uuid4())}
        first = server.call(tool, request)
        add(server, chain, "between", 4)

        assert server.call(tool, request).structured == first.structured


def test_a_request_id_with_another_command_is_refused(server, chain):
    request = {"chain_id": chain, "requestId": str(uuid4())}
    server.call("revise_thought", {**request, "thought_number": 1, "revised_thought": "r"})

    for tool, said in (
        ("revise_thought", {"thought_number": 1, "revised_thought": "another"}),
        ("add_thought", thought("t", 4)),
        ("pause_thought_chain", {}),
    ):
        assert_refused(server.call(tool, {**request, **said}), "request id")


# Reading


def test_a_chain_is_read_as_it_was(server, chain):
    server.call("revise_thought", {"chain_id": chain, "thought_number": 1, "revised_thought": "r"})
    server.call("complete_thought_chain", {"chain_id": chain})

    then, now = read(server, chain, at_version=3), read(server, chain)

    assert (then["status"], then["thought_count"], then["version"]) == ("active", 2, 3)
    assert [t["sequence"] for t in then["thoughts"]] == [1, 2]
    assert "revised_by" not in then["thoughts"][0]
    assert (now["status"], now["thoughts"][0]["revised_by"]) == ("completed", 4)


def test_the_structure_alone_has_no_texts(server, chain):
    thoughts = read(server, chain, structure_only=True, last=2)["thoughts"]

    assert [t["sequence"] for t in thoughts] == [2, 3]
    assert all("thought" not in t for t in thoughts)


def test_a_long_chain_is_read_in_pages(server):
    chain_id = server.call("start_thought_chain", {})["chain_id"]
    calls = [
        ("add_thought", thought(f"thought {n}", n, total=LONG_CHAIN_THOUGHTS, chain_id=chain_id))
        for n in range(1, LONG_CHAIN_THOUGHTS + 1)
    ]
    server.call_pipelined(calls, LONG_SECONDS_MAX)

    sequences, start = [], 1
    while start is not None:
        page = read(server, chain_id, **{"from": start})
        assert len(page["thoughts"]) <= 100
        sequences += [t["sequence"] for t in page["thoughts"]]
        start = page.structured.get("next")

    assert sequences == list(range(1, LONG_CHAIN_THOUGHTS + 1))
    assert [t["sequence"] for t in read(server, chain_id, last=3)["thoughts"]] == [998, 999, 1000]
    asked = read(server, chain_id, **{"from": 500, "limit": 2})
    assert [t["sequence"] for t in asked["thoughts"]] == [500, 501]
    assert asked["next"] == 502
    numbers = {t["thought"] for t in read(server, chain_id, limit=5)["thoughts"]}
    assert len(numbers) == 5


def test_a_page_of_large_thoughts_ends_early(server):
    chain_id = server.call("start_thought_chain", {})["chain_id"]
    for number in range(1, 6):
        add(server, chain_id, "x" * 2**20, number)

    sequences, start = [], 1
    while start is not None:
        page = read(server, chain_id, **{"from": start})
        sequences += [t["sequence"] for t in page["thoughts"]]
        assert len(page["thoughts"]) < 5
        start = page.structured.get("next")

    assert sequences == [1, 2, 3, 4, 5]


# The list, and which tools


def test_without_a_worker_a_list_says_that_it_is_stale(data_dir):
    with Server(data_dir, "--no-worker", "--toolsets", "chains") as server:
        server.call("start_thought_chain", {})

        answer = server.call("list_thought_chains", {})

    assert answer.structured == {"count": 0, "chains": [], "stale": True}


def test_a_page_of_a_chain_with_many_branches_has_the_branches_of_its_own_thoughts(server):
    chain = server.call("add_thought", thought("root", 1))["chain_id"]
    server.call_pipelined(
        ("branch_thought", branched(chain, f"branch {number}")) for number in range(1_001)
    )
    close = {"chain_id": chain, "branch_id": "branch 0", "outcome": "kept"}
    server.call("close_branch", close)

    first = server.call("get_thought_chain", {"chain_id": chain, "limit": 3})
    last = server.call("get_thought_chain", {"chain_id": chain, "last": 1})

    assert first["branchMap"] == {"branch 0": [2], "branch 1": [3]}
    assert first["closed_branches"] == {"branch 0": "kept"}
    assert first["branchMap_is_of_this_page"] is True
    assert last["branchMap"] == {"branch 1000": [1_002]}
    assert "closed_branches" not in last.structured


def branched(chain, branch):
    return {"chain_id": chain, "from_thought_number": 1, "branch_id": branch, "thought": "t"}
