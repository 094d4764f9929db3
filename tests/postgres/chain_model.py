"""Chains as the agents' contract tells of them: plain facts in a list, and what follows from them.

It uses nothing of the product and is as naive as it can be: every question is asked of all facts
again.  A place is a sequence, 1 for a chain's first thought.
"""

from dataclasses import dataclass, field


class RefusedError(Exception):
    """What the contract refuses."""


@dataclass
class View:
    """A chain as its facts up to some version make it."""

    thoughts: list = field(default_factory=list)
    given_up: set = field(default_factory=set)
    closed: dict = field(default_factory=dict)
    status: str = "active"
    conclusion: str | None = None

    def on(self, branch):
        return [one for one in self.thoughts if one["branch_id"] == branch]

    def branches(self):
        return list(dict.fromkeys(t["branch_id"] for t in self.thoughts if t["branch_id"]))

    def abandoned(self, place):
        while place is not None:
            if place in self.given_up:
                return True
            place = self.thoughts[place - 1]["parent"]
        return False

    def given_up_since(self, before, *, but):
        """The numbers of the thoughts given up since then, but for that at one place."""
        return [
            thought["thought_number"]
            for place, thought in enumerate(self.thoughts, 1)
            if self.abandoned(place) and not before.abandoned(place) and place != but
        ]

    def find(self, number):
        """The latest live one on the trunk, else the latest anywhere."""
        all_of_it = [t["sequence"] for t in self.thoughts if t["thought_number"] == number]
        trunk = [one["sequence"] for one in self.on(None)]
        live = [place for place in all_of_it if place in trunk and not self.abandoned(place)]
        return (live or all_of_it or [None])[-1]

    def meant(self, reference):
        """The place of what a reference names: ``("number", n)`` or ``("id", uuid)``."""
        kind, value = reference
        place = self.find(value)
        if kind == "id":
            ids = {one["thought_id"]: one["sequence"] for one in self.thoughts}
            place = ids.get(value)
        if place is None:
            raise RefusedError("no such thought")
        return place

    def parent(self, branch, left_from):
        there = self.on(branch)
        if there:
            return there[-1]["sequence"]
        return None if branch is None else left_from


class Chain:
    """One chain: its facts, one a version."""

    def __init__(self, chain_id, *, title, session_id, parent_chain_id=None):
        self.id = chain_id
        self.title = title
        self.session_id = session_id
        self.parent_chain_id = parent_chain_id
        self.facts = [("started",)]

    @property
    def version(self):
        return len(self.facts)

    def view(self, version=None):
        view = View()
        for kind, *what in self.facts[:version]:
            if kind == "thought":
                view.thoughts.append(what[0])
            elif kind == "gave up":
                view.given_up.add(what[0])
            elif kind == "closed":
                view.closed[what[0]] = what[1]
            elif kind == "moved":
                view.status = what[0]
                view.conclusion = what[1] if what[0] == "completed" else view.conclusion
        return view

    # Commands: each adds its facts, or refuses and adds none

    def think(self, said):
        """A thought of the drop-in tool: its references are taken as they come."""
        view = self.view()
        if view.status in ("paused", "abandoned"):
            raise RefusedError("not active")
        branch, revises, left_from = self._references(view, said)
        self._refuse_closed(view, branch)
        if view.status == "completed":
            self.facts.append(("moved", "active", None))
        self._record(view, said, branch, revises, view.parent(branch, left_from))
        self._complete_after(said, branch)

    def add(self, said, expected_version=None):
        """A thought whose references are checked."""
        if expected_version not in (None, self.version):
            raise RefusedError(f"version {self.version}")
        view = self.view()
        branch, revises, left_from = self._references(view, said)
        if said.get("revisesThought") and revises is None:
            raise RefusedError("what it revises is not there")
        if branch and left_from is None:
            raise RefusedError("where it branches is not there")
        was_active = self._take(view, said, branch, revises, view.parent(branch, left_from))
        if was_active:
            self._complete_after(said, branch)

    def revise(self, reference, text, reason):
        view = self.view()
        revises = view.meant(reference)
        old = view.thoughts[revises - 1]
        number, branch = old["thought_number"], old["branch_id"]
        said = {
            "thought": text,
            "thoughtNumber": number,
            "totalThoughts": view.thoughts[-1]["total_thoughts"],
            "nextThoughtNeeded": view.status == "active",
            "revisesThought": number,
            "reason": reason,
        }
        self._take(view, said, branch, revises, view.parent(branch, None))
        return self.view().thoughts[-1]

    def branch(self, reference, said):
        view = self.view()
        left_from = view.meant(reference)
        branch = said["branch_id"]
        before = view.parent(branch, left_from)
        origin = view.thoughts[left_from - 1]
        following = view.thoughts[before - 1]["thought_number"] + 1
        said = {
            **said,
            "thoughtNumber": said.get("thoughtNumber", following),
            "totalThoughts": said.get("totalThoughts", view.thoughts[-1]["total_thoughts"]),
            "nextThoughtNeeded": said.get("nextThoughtNeeded", True),
            "branchFromThought": origin["thought_number"],
        }
        self._take(view, said, branch, None, before)
        return self.view().thoughts[-1]

    def close(self, branch, outcome):
        view = self.view()
        if view.status != "active" or branch not in view.branches() or branch in view.closed:
            raise RefusedError("not active, not there or closed")
        self.facts.append(("closed", branch, outcome))

    def move(self, verb, conclusion=None):
        before = self.view().status
        allowed, after = {
            "pause": (("active",), "paused"),
            "resume": (("paused", "completed", "abandoned"), "active"),
            "complete": (("active",), "completed"),
            "abandon": (("active", "paused"), "abandoned"),
        }[verb]
        if before not in allowed:
            raise RefusedError(before)
        self.facts.append(("moved", after, conclusion))
        return before, after

    def give_up(self, reference):
        view = self.view()
        place = view.meant(reference)
        if view.status != "active":
            raise RefusedError(view.status)
        if place not in view.given_up:
            self.facts.append(("gave up", place))

    # What they have in common

    def _references(self, view, said):
        on_branch = said.get("branchFromThought") and said.get("branchId")
        branch = said["branchId"] if on_branch else None
        revised = said.get("revisesThought")
        revises = None if revised is None else view.find(revised)
        return branch, revises, view.find(said["branchFromThought"]) if on_branch else None

    def _take(self, view, said, branch, revises, parent):
        """Record what is checked, under a thought that is alive; whether the chain was active."""
        if view.status != "active" and not (view.status == "completed" and revises is not None):
            raise RefusedError(view.status)
        self._refuse_closed(view, branch)
        if view.abandoned(parent):
            if revises is None or view.abandoned(revises):
                raise RefusedError("a dead end")
            parent = revises
        self._record(view, said, branch, revises, parent)
        return view.status == "active"

    def _refuse_closed(self, view, branch):
        if branch in view.closed:
            raise RefusedError("closed")

    def _complete_after(self, said, branch):
        if not said["nextThoughtNeeded"] and branch is None:
            self.facts.append(("moved", "completed", None))

    def _record(self, view, said, branch, revises, parent):
        number = said["thoughtNumber"]
        thought = {
            "thought_id": None,
            "sequence": len(view.thoughts) + 1,
            "thought_number": number,
            "total_thoughts": max(said["totalThoughts"], number),
            "branch_id": branch,
            "parent": parent,
            "revises": revises,
            "version": self.version + 1,
            "thought": said["thought"],
            "next_thought_needed": said["nextThoughtNeeded"],
            "needs_more_thoughts": said.get("needsMoreThoughts"),
            "revises_thought_number": said.get("revisesThought"),
            "branch_from_thought_number": branch and said.get("branchFromThought"),
            "reason": said.get("reason"),
            "confidence": said.get("confidence"),
            "assumptions": said.get("assumptions"),
        }
        self.facts.append(("thought", thought))

    # What agents are shown

    def page(self, *, version=None, structure_only=False, places=None):
        """The answer of ``get_thought_chain`` without its times and ``next``."""
        view = self.view(version)
        shown = [t for t in view.thoughts if places is None or t["sequence"] in places]
        return without_none(
            chain_id=self.id,
            session_id=self.session_id,
            parent_chain_id=self.parent_chain_id,
            status=view.status,
            title=self.title,
            thoughts=[self._shown(view, one, structure_only) for one in shown],
            branchMap={b: [t["sequence"] for t in view.on(b)] for b in view.branches()},
            closed_branches=view.closed or None,
            thought_count=len(view.thoughts),
            version=self.version if version is None else version,
        )

    def _shown(self, view, thought, structure_only):
        place = thought["sequence"]
        revisions = [t["sequence"] for t in view.thoughts if t["revises"] == place]
        fields = {
            **thought,
            "revised_by": revisions[-1] if revisions else None,
            "abandoned": view.abandoned(place),
        }
        if structure_only:
            fields = {name: fields[name] for name in STRUCTURE}
        return without_none(**fields)


STRUCTURE = (
    "thought_id",
    "sequence",
    "thought_number",
    "total_thoughts",
    "branch_id",
    "parent",
    "revises",
    "revised_by",
    "abandoned",
    "version",
)


class Talk:
    """What one connection's calls without a chain_id are about."""

    def __init__(self):
        self.current = None
        self.sessions = {}
        self.chains = set()
        self.count = 0
        self.perhaps = 0
        self.branches = {}

    def chain_for(self, said, session=None):
        """The chain a thought without a chain_id goes to, None for a new one."""
        current = self.current if session is None else self.sessions.get(session)
        plain = not said.get("isRevision") and said.get("revisesThought") is None
        on_branch = said.get("branchFromThought") and said.get("branchId")
        if current is None or not (said["thoughtNumber"] == 1 and plain and not on_branch):
            return current
        view = current.view()
        # Of an empty chain that takes nothing, the refusal would say: start a new one by thought 1.
        return current if view.status == "active" and not view.thoughts else None

    def took(self, chain, branch, *, named, session=None, repeated=False):
        """A thought went into a chain; *named*: the call named the chain."""
        known = chain.id in self.chains
        if not known and named and self.current is not None:
            return  # somebody else's chain
        if not known:
            self.adopt(chain)
        elif not repeated:
            self.counted(chain, branch)
        if not known or not (named or repeated):
            self.current = chain
        if session is not None and not named and not (known and repeated):
            self.sessions[session] = chain

    def adopt(self, chain):
        view = chain.view()
        self.chains.add(chain.id)
        self.count += len(view.thoughts)
        self.branches |= dict.fromkeys(view.branches())

    def perhaps_took(self, chain):
        """One of two connections recorded it and counts it; which one, is not said."""
        if chain.id in self.chains:
            self.perhaps += 1
        else:
            self.took(chain, None, named=True)

    def settle(self, count):
        """What is not known of the count is learned from an answer."""
        if 0 <= count - self.count <= self.perhaps:
            self.count, self.perhaps = count, 0

    def counted(self, chain, branch):
        if chain.id in self.chains:
            self.count += 1
            self.branches |= {branch: None} if branch else {}


def without_none(**fields):
    return {name: value for name, value in fields.items() if value is not None}
