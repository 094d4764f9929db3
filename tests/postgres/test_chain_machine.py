"""Any calls of two connections, in any order, against a model of the agents' contract.

By hand, for longer: THOUGHT_LEDGER_MACHINE_EXAMPLES=500 scripts/test -k chain_machine
"""

import itertools
import json
import os
import time
from contextlib import ExitStack
from uuid import uuid4

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.acceptance.product import is_one_clear_sentence
from tests.postgres.chain_model import Chain, RefusedError, Talk, without_none
from tests.postgres.desk import CLIENT, open_desk
from tests.postgres.projecting import running_worker

EXAMPLES_COUNT = int(os.environ.get("THOUGHT_LEDGER_MACHINE_EXAMPLES", "60"))
STEPS_COUNT = 40
LISTED_SECONDS_MAX = 20
EXAMPLE_NUMBERS = itertools.count(1)
TIMES = ("created_at", "updated_at")

pytestmark = pytest.mark.timeout(max(120, 20 * EXAMPLES_COUNT))

# Few values, so that calls have to do with each other.
connections = st.integers(0, 1)
chains = st.integers(0, 7)
maybe_chains = st.sampled_from([None, None, None, None, 0, 1, 2])
numbers = st.integers(1, 5)
maybe_numbers = st.none() | numbers
texts = st.sampled_from(
    ["because", "two\nlines", " \u2028 ", "\U0001f9e0 é", "", '{"a": "\\u0000"}']
)
branches = st.sampled_from(["a", "b", "__proto__"])
maybe_branches = st.none() | branches
sessions = st.sampled_from([None, None, "one", "one", "two"])
reasons = st.sampled_from([None, None, "why not"])
mostly = st.sampled_from([True, True, True, False])
seldom = st.sampled_from([False, False, True])
versions = st.sampled_from([None, None, None, "current", "stale"])
references = st.tuples(st.just("number"), st.integers(1, 6)) | st.tuples(
    st.just("place"), st.integers(0, 9)
)
verbs = st.sampled_from(["pause", "resume", "resume", "complete", "abandon"])
thoughts = st.builds(
    without_none,
    thought=texts,
    thoughtNumber=st.sampled_from([1, 1, 1, 1, 2, 3, 4, 5]),
    totalThoughts=numbers,
    nextThoughtNeeded=mostly,
    isRevision=st.sampled_from([None, None, None, False, True]),
    revisesThought=st.sampled_from([None, None, None, None, 1, 2, 3, 6]),
    branchFromThought=maybe_numbers,
    branchId=maybe_branches,
    needsMoreThoughts=st.none() | st.booleans(),
)


FIRST = {"thought": "one", "thoughtNumber": 1, "totalThoughts": 3, "nextThoughtNeeded": True}
NEXT = {**FIRST, "thought": "two", "thoughtNumber": 2}
# A failing example of long steps takes minutes to be made smaller: only when run by hand.
BY_HAND = "THOUGHT_LEDGER_MACHINE_EXAMPLES" in os.environ
PHASES = [Phase.generate, *([Phase.shrink] if BY_HAND else [])]


class ChainMachine(RuleBasedStateMachine):
    """The connections, and the model of what they have recorded."""

    def __init__(self, desk):
        super().__init__()
        self.desk = desk
        self.example = next(EXAMPLE_NUMBERS)
        self.stack = ExitStack()
        self.clients = self.stack.enter_context(desk.connections())
        self.talks = [Talk(), Talk()]
        self.own_sessions = {}
        self.chains = []
        self.moved = {}
        self.order = itertools.count(1)
        self.request_numbers = itertools.count(1)
        self.requests = []
        self.position = 0
        self.touched = set()

    # Thoughts

    @rule(who=connections, said=thoughts, where=maybe_chains, request=seldom)
    def sequentialthinking(self, who, said, where, request):
        chain = self.chosen(where)
        named = {} if chain is None else {"chain_id": chain.id}
        target = chain or self.talks[who].chain_for(said)
        arguments = {**said, **named, **self.request(request)}
        answer = self.attempt(
            who, "sequentialthinking", arguments, target, lambda one: one.think(said), said
        )
        if answer is None:
            return
        chain = target or self.chains[-1]
        branch = chain.view().thoughts[-1]["branch_id"]
        self.talks[who].took(chain, branch, named=bool(named))
        talk, view = self.talks[who], chain.view()
        count, known = len(view.thoughts), view.branches()
        if not named:
            talk.settle(answer["thoughtHistoryLength"])
            count, known = talk.count, list(talk.branches)
        assert answer == {
            "thoughtNumber": said["thoughtNumber"],
            "totalThoughts": max(said["totalThoughts"], said["thoughtNumber"]),
            "nextThoughtNeeded": said["nextThoughtNeeded"],
            "branches": known,
            "thoughtHistoryLength": count,
            "chain_id": chain.id,
        }

    @rule(
        who=connections,
        said=thoughts,
        where=maybe_chains,
        session=sessions,
        expected=versions,
        confidence=st.sampled_from([None, 0.25]),
        assumptions=st.sampled_from([None, ["so it is", ""]]),
        request=seldom,
    )
    def add_thought(self, who, said, where, session, expected, confidence, assumptions, request):
        chain = self.chosen(where)
        named = {} if chain is None else {"chain_id": chain.id}
        session = self.named(session)
        said = without_none(**said, confidence=confidence, assumptions=assumptions)
        target = chain or self.talks[who].chain_for(said, session)
        version = self.expected(target, expected)
        arguments = without_none(
            **said, **named, **self.request(request), session_id=session, expectedVersion=version
        )
        answer = self.attempt(
            who, "add_thought", arguments, target, lambda one: one.add(said, version), said
        )
        if answer is None:
            return
        chain = target or self.chains[-1]
        thought = chain.view().thoughts[-1]
        self.talks[who].took(chain, thought["branch_id"], named=bool(named), session=session)
        warned = warnings(said, session not in (None, chain.session_id) and target is not None)
        thought["thought_id"] = answer["thought_id"]
        assert len(answer.pop("warnings", [])) == warned
        assert answer.pop("position") == self.position
        assert answer == {
            "thoughtNumber": said["thoughtNumber"],
            "totalThoughts": thought["total_thoughts"],
            "nextThoughtNeeded": said["nextThoughtNeeded"],
            "chain_id": chain.id,
            "branches": chain.view().branches(),
            "thoughtHistoryLength": len(chain.view().thoughts),
            "thought_id": thought["thought_id"],
            "version": chain.version,
        }

    @rule(who=connections, session=sessions, request=st.booleans())
    def first_thought(self, who, session, request):
        self.add_thought(who, FIRST, None, session, None, None, None, request)

    @precondition(lambda self: self.chains)
    @rule(who=connections, where=chains, of=references, text=texts, reason=reasons, request=seldom)
    def revise_thought(self, who, where, of, text, reason, request):
        chain = self.chosen(where)
        meant, name = self.reference(chain, of, "thought_number")
        arguments = without_none(
            chain_id=chain.id, revised_thought=text, reason=reason, **name, **self.request(request)
        )
        answer = self.attempt(
            who, "revise_thought", arguments, chain, lambda one: one.revise(meant, text, reason)
        )
        if answer is not None:
            thought = self.noted(who, chain, answer, None)
            assert answer == {
                "success": True,
                "thought_id": thought["thought_id"],
                "chain_id": chain.id,
                "thought_number": thought["thought_number"],
            }

    @precondition(lambda self: self.chains)
    @rule(
        who=connections,
        where=chains,
        of=references,
        branch=branches,
        text=texts,
        number=maybe_numbers,
        total=maybe_numbers,
        more=st.none() | st.booleans(),
        request=seldom,
    )
    def branch_thought(self, who, where, of, branch, text, number, total, more, request):
        chain = self.chosen(where)
        meant, name = self.reference(chain, of, "from_thought_number")
        said = without_none(
            branch_id=branch,
            thought=text,
            thoughtNumber=number,
            totalThoughts=total,
            nextThoughtNeeded=more,
        )
        arguments = {"chain_id": chain.id, **said, **name, **self.request(request)}
        answer = self.attempt(
            who, "branch_thought", arguments, chain, lambda one: one.branch(meant, said)
        )
        if answer is not None:
            thought = self.noted(who, chain, answer, branch)
            assert answer == {
                "success": True,
                "thought_id": thought["thought_id"],
                "chain_id": chain.id,
                "branch_id": branch,
                "thought_number": thought["thought_number"],
            }

    # Chains and branches

    @rule(
        who=connections,
        session=sessions,
        parent=maybe_chains,
        title=st.sampled_from([None, "which index?"]),
        request=seldom,
    )
    def start_thought_chain(self, who, session, parent, title, request):
        parent = self.chosen(parent)
        session = self.named(session)
        arguments = without_none(
            session_id=session,
            parent_chain_id=parent and parent.id,
            title=title,
            **self.request(request),
        )
        answer = self.answered(who, "start_thought_chain", arguments)
        chain = Chain(
            answer["chain_id"],
            title=title or "untitled",
            session_id=session or self.own_session(who, answer["session_id"]),
            parent_chain_id=parent and parent.id,
        )
        assert answer.pop("created_at")
        expected = {"chain_id": chain.id, "session_id": chain.session_id, "status": "active"}
        assert answer == expected
        self.started(chain)
        self.remember("start_thought_chain", arguments, answer, chain)
        talk = self.talks[who]
        talk.adopt(chain)
        talk.current = chain
        if session is not None:
            talk.sessions[session] = chain

    @precondition(lambda self: self.chains)
    @rule(who=connections, where=chains, verb=verbs, reason=reasons, request=seldom)
    def move_chain(self, who, where, verb, reason, request):
        chain = self.chosen(where)
        tool = f"{verb}_thought_chain"
        concluded = {"conclusion": "b-tree"} if verb == "complete" and reason else {}
        arguments = without_none(
            chain_id=chain.id, reason=reason, **concluded, **self.request(request)
        )
        before = chain.view()
        answer = self.attempt(
            who, tool, arguments, chain, lambda one: one.move(verb, *concluded.values())
        )
        if answer is None:
            return
        resumed = {}
        if verb == "resume":
            resumed = {"thought_count": len(before.thoughts)}
            if before.thoughts:
                resumed["last_thought"] = before.thoughts[-1]["thought"]
        assert answer == {
            "success": True,
            "chain_id": chain.id,
            "previous_status": before.status,
            "new_status": chain.view().status,
            **resumed,
        }

    @precondition(lambda self: self.chains)
    @rule(who=connections, where=chains, of=references, reason=reasons, request=seldom)
    def abandon_thought(self, who, where, of, reason, request):
        chain = self.chosen(where)
        meant, name = self.reference(chain, of, "thought_number")
        arguments = without_none(chain_id=chain.id, reason=reason, **name, **self.request(request))
        before = chain.view()
        answer = self.attempt(
            who, "abandon_thought_chain", arguments, chain, lambda one: one.give_up(meant)
        )
        if answer is not None:
            answer.pop("thought_id", None)
            under = chain.view().given_up_since(before, but=before.meant(meant))
            assert all(str(number) in answer.pop("warnings")[0] for number in under[:1])
            status = {"previous_status": "active", "new_status": "active"}
            also = without_none(also_given_up=len(under) or None)
            assert answer == {"success": True, "chain_id": chain.id, **status, **also}

    @precondition(lambda self: self.chains)
    @rule(
        who=connections,
        where=chains,
        branch=branches,
        outcome=st.sampled_from(["kept", "merged", "abandoned"]),
        request=seldom,
    )
    def close_branch(self, who, where, branch, outcome, request):
        chain = self.chosen(where)
        said = {"chain_id": chain.id, "branch_id": branch, "outcome": outcome}
        answer = self.attempt(
            who,
            "close_branch",
            {**said, **self.request(request)},
            chain,
            lambda one: one.close(branch, outcome),
        )
        if answer is not None:
            assert answer == {"success": True, **said}

    # Reads

    @precondition(lambda self: self.chains)
    @rule(
        who=connections,
        where=chains,
        branch=maybe_branches,
        last=maybe_numbers,
        start=maybe_numbers,
        limit=maybe_numbers,
        version=st.none() | st.integers(1, 30),
        structure_only=st.booleans(),
    )
    def read_in_pages(self, who, where, branch, last, start, limit, version, structure_only):
        chain = self.chosen(where)
        wanted = without_none(
            chain_id=chain.id,
            branch_id=branch,
            last=last,
            limit=limit,
            at_version=version,
            structure_only=structure_only,
        )
        there = version is None or version <= chain.version
        view = chain.view(version)
        if not there or (branch is not None and branch not in view.branches()):
            self.refused(who, "get_thought_chain", {**wanted, **without_none(**{"from": start})})
            return
        places = [t["sequence"] for t in (view.thoughts if branch is None else view.on(branch))]
        places = [one for one in places[-(last or 99) :] if one >= (start or 1)]
        while True:
            page = self.page(who, {**wanted, **without_none(**{"from": start})})
            following = page.pop("next", None)
            these, places = places[: limit or 100], places[limit or 100 :]
            how = {"version": version, "structure_only": structure_only, "places": these}
            assert page == chain.page(**how)
            assert following == (places[0] if places else None)
            if following is None:
                return
            start = following

    @precondition(lambda self: self.chains)
    @rule(
        who=connections,
        where=chains,
        status=st.sampled_from([None, None, "active", "completed"]),
        limit=st.sampled_from([None, 1, 2]),
    )
    def list_thought_chains(self, who, where, status, limit):
        session = self.chosen(where).session_id
        wanted = without_none(session_id=session, status=status, limit=limit)
        expected = [
            without_none(
                chain_id=one.id,
                title=one.title,
                status=one.view().status,
                session_id=session,
                parent_chain_id=one.parent_chain_id,
                agent=CLIENT.name,
                client=CLIENT.name,
                thought_count=len(one.view().thoughts),
                version=one.version,
                conclusion=one.view().conclusion,
            )
            for one in sorted(self.chains, key=lambda one: -self.moved[one.id])
            if one.session_id == session and status in (None, one.view().status)
        ]
        # What the other connection wrote is in the read model a moment later.
        deadline = time.monotonic() + LISTED_SECONDS_MAX
        while (listed := self.listed(who, wanted)) != expected:
            assert time.monotonic() < deadline, (listed, expected)

    # Retries, races and strangers

    @precondition(lambda self: self.requests)
    @rule(who=connections, which=st.integers(0, 5), other=seldom)
    def retry(self, who, which, other):
        tool, arguments, first, chain = self.requests[-1 - which % len(self.requests)]
        self.touched.add(chain)
        if other:
            word = "thought" if "thought" in arguments else "revised_thought"
            word = word if word in arguments else "reason"
            word = "title" if tool == "start_thought_chain" else word
            word = "conclusion" if tool == "close_branch" else word
            self.refused(who, tool, {**arguments, word: "something else"})
            return
        answer = self.answered(who, tool, arguments)
        answer.pop("created_at", None)
        assert answer == first
        talk = self.talks[who]
        if tool == "start_thought_chain" and chain.id not in talk.chains:
            talk.adopt(chain)
            talk.current = chain
            if "session_id" in arguments:
                talk.sessions[arguments["session_id"]] = chain
        if tool in ("sequentialthinking", "add_thought"):
            talk.took(
                chain,
                None,
                named="chain_id" in arguments,
                session=arguments.get("session_id"),
                repeated=True,
            )
        self.sequentialthinking(who, NEXT, None, request=False)

    @precondition(lambda self: self.chains)
    @rule(where=chains, kind=st.sampled_from(["free", "same version", "same request"]))
    def race(self, where, kind):
        chain = self.chosen(where)
        self.touched.add(chain)
        common = {"thoughtNumber": 9, "totalThoughts": 9, "nextThoughtNeeded": True}
        said = [{"thought": f"race {who}", **common} for who in (0, 1)]
        others = {"chain_id": chain.id}
        if kind == "same version":
            others["expectedVersion"] = chain.version
        if kind == "same request":
            said[1] = said[0]
            others |= self.request(asked=True)
        results = self.desk.call_at_once(
            [
                (client, "add_thought", {**one, **others})
                for client, one in zip(self.clients, said, strict=True)
            ]
        )
        answers = [(r.structured_content, w) for w, r in enumerate(results) if not r.is_error]
        if kind == "same request" and len(answers) == 2:
            assert answers[0][0] == answers[1][0]
            answers = answers[:1]
        strangers = [talk for talk in self.talks if talk.current is None]
        for answer, who in sorted(answers, key=lambda one: one[0]["version"]):
            before = chain.version
            chain.add(said[who])
            self.moves(chain)
            chain.view().thoughts[-1]["thought_id"] = answer["thought_id"]
            assert answer["version"] == before + 1
            if kind == "same request":
                for talk in self.talks:
                    talk.perhaps_took(chain)
            else:
                self.talks[who].took(chain, None, named=True)
        for talk in strangers:
            talk.perhaps += 1  # it looked at the chain before the other one wrote, or after
        self.position = max([self.position, *(answer["position"] for answer, _ in answers)])
        if kind == "same version" and answers:
            assert len(answers) == 1
            (refused,) = (result for result in results if result.is_error)
            assert_refused(refused, f"version {chain.version}")
        elif not answers:
            for one in said:
                with pytest.raises(RefusedError):
                    chain.add(one)

    @rule(
        who=connections,
        tool=st.sampled_from(
            [
                ("sequentialthinking", {"thought": "t", "thoughtNumber": 1, "totalThoughts": 1}),
                ("add_thought", {"thought": "t", "thoughtNumber": 1, "totalThoughts": 1}),
                ("revise_thought", {"thought_number": 1, "revised_thought": "r"}),
                ("branch_thought", {"from_thought_number": 1, "branch_id": "a", "thought": "t"}),
                ("close_branch", {"branch_id": "a", "outcome": "kept"}),
                ("pause_thought_chain", {}),
                ("resume_thought_chain", {}),
                ("abandon_thought_chain", {"thought_number": 1}),
                ("get_thought_chain", {}),
            ]
        ),
    )
    def a_chain_that_is_not_there(self, who, tool):
        name, arguments = tool
        self.refused(who, name, {"nextThoughtNeeded": True, **arguments, "chain_id": str(uuid4())})

    # After each step, and at the end

    @invariant()
    def what_was_touched_is_as_the_model_says(self):
        for chain in self.touched:
            for who in (0, 1):
                self.check(who, chain)
        self.touched.clear()

    def teardown(self):
        try:
            # What a step has left unchecked, it has failed over.
            for chain in [] if self.touched else self.chains:
                for version in range(1, chain.version + 1):
                    page = self.page(0, {"chain_id": chain.id, "at_version": version})
                    assert page == chain.page(version=version)
        finally:
            self.stack.close()

    def check(self, who, chain):
        page = self.page(who, {"chain_id": chain.id})
        learned = [t["thought_id"] for t in page["thoughts"]]
        assert len(set(learned)) == len(learned)
        for thought, thought_id in zip(chain.view().thoughts, learned, strict=False):
            thought["thought_id"] = thought["thought_id"] or thought_id
        assert page == chain.page()

    # What the rules say of calls

    def attempt(self, who, tool, arguments, chain, command, said=None):
        """A call of which the model knows what becomes of it; the answer, None when refused.

        Without *chain* the call starts one with the thought that was *said*.
        """
        new = chain is None
        chain = chain or Chain(None, title=title_of(said["thought"]), session_id=None)
        before = list(chain.facts)
        self.touched |= set() if new else {chain}
        try:
            refused = None
            if new and "expectedVersion" in arguments:
                raise RefusedError("expectedVersion")
            command(chain)
        except RefusedError as refusal:
            assert chain.facts == before
            refused = str(refusal)
        if refused is not None:
            self.refused(who, tool, arguments, refused if "version" in refused else "")
            return None
        answer = self.answered(who, tool, arguments)
        if new:
            chain.id = answer["chain_id"]
            page = self.page(who, {"chain_id": chain.id})
            own = self.own_session(who, page["session_id"])
            chain.session_id = arguments.get("session_id") or own
            self.started(chain)
        if chain.facts != before:
            self.moves(chain)
            self.remember(tool, arguments, answer, chain)
        return answer

    def answered(self, who, tool, arguments):
        result = self.desk.call(self.clients[who], tool, arguments)
        assert not result.is_error, (tool, arguments, result.content[0].text)
        assert json.loads(result.content[0].text) == result.structured_content
        answer = dict(result.structured_content)
        self.position = max(self.position, answer.get("position", 0))
        return answer

    def refused(self, who, tool, arguments, words=""):
        result = self.desk.call(self.clients[who], tool, arguments)
        assert_refused(result, words)

    def page(self, who, wanted):
        page = self.answered(who, "get_thought_chain", wanted)
        assert page.pop("created_at") <= page.pop("updated_at")
        for thought in page["thoughts"]:
            if "thought" in thought:
                assert thought.pop("created_at")
                assert (thought.pop("agent"), thought.pop("client")) == (CLIENT.name,) * 2
        return page

    def listed(self, who, wanted):
        rows, more = [], {}
        while True:
            page = self.answered(who, "list_thought_chains", {**wanted, **more})
            assert page["count"] == len(page["chains"]) <= wanted.get("limit", 20)
            rows += page["chains"]
            if "next" not in page:
                return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]
            more = {"cursor": page["next"]}

    # What the rules draw

    def chosen(self, where):
        return self.chains[where % len(self.chains)] if self.chains and where is not None else None

    def reference(self, chain, of, number_field):
        """As the model takes it, and as the tool does."""
        kind, value = of
        known = chain.view().thoughts
        if kind == "place" and known:
            thought_id = known[value % len(known)]["thought_id"]
            return ("id", thought_id), {"thought_id": thought_id}
        return ("number", value), {number_field: value or 1}

    def request(self, asked):
        number = next(self.request_numbers)
        return {"requestId": f"{self.example}-{number}"} if asked else {}

    def named(self, session):
        return session and f"{session} {self.example}"

    def own_session(self, who, session_id):
        """A connection's chains have one session: its own."""
        if session_id.endswith(f" {self.example}"):
            return None
        return self.own_sessions.setdefault(who, session_id)

    def expected(self, chain, version):
        if version is None:
            return None
        current = 1 if chain is None else chain.version
        return current if version == "current" else current + 1

    # What the rules remember

    def started(self, chain):
        self.chains.append(chain)
        self.moves(chain)
        self.touched.add(chain)

    def moves(self, chain):
        self.moved[chain.id] = next(self.order)

    def remember(self, tool, arguments, answer, chain):
        if "requestId" in arguments:
            self.requests.append((tool, arguments, dict(answer), chain))

    def noted(self, who, chain, answer, branch):
        """The thought that was just recorded, counted and with its id."""
        self.talks[who].counted(chain, branch)
        thought = chain.view().thoughts[-1]
        thought["thought_id"] = answer["thought_id"]
        return thought


def warnings(said, of_another_session):
    """How many warnings an accepted thought gets."""
    half = ("branchId" in said) != ("branchFromThought" in said)
    of_nothing = said.get("isRevision", False) and "revisesThought" not in said
    return half + of_nothing + of_another_session


def title_of(text):
    return text.strip().partition("\n")[0].strip()


def assert_refused(result, words=""):
    text = result.content[0].text
    assert result.is_error, result.structured_content
    assert result.structured_content is None
    assert is_one_clear_sentence(text), text
    assert words in text


def test_any_calls_of_two_connections_go_as_the_contract_says(database_url, database):
    with running_worker(database), open_desk(database_url) as desk:
        run_state_machine_as_test(
            lambda: ChainMachine(desk),
            settings=settings(
                max_examples=EXAMPLES_COUNT, stateful_step_count=STEPS_COUNT, phases=PHASES
            ),
        )
