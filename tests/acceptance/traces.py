"""The reasoning traces, folded by the rules of their README and by nothing of the product."""

import gzip
import json

import pytest

from tests.acceptance.client import REPOSITORY

TRACES = REPOSITORY.parent / "shared" / "data" / "reasoning_traces.jsonl.gz"


def read_operations():
    if not TRACES.exists():
        pytest.skip(f"the reasoning traces are not here: {TRACES}")
    with gzip.open(TRACES, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def trees_of(operations):
    """Each chain's tree: title, status and thoughts in order, every one under its parent's n."""
    trees, heads = {}, {}
    for operation in operations:
        key, kind, number = operation["chain"], operation["op"], operation.get("n")
        if kind == "start":
            trees[key] = {"title": operation["content"], "status": "active", "thoughts": {}}
            heads[key] = {}  # the last thought of each branch; the trunk is the branch None
            continue
        tree, last = trees[key], heads[key]
        if kind == "complete":
            tree["status"] = "completed"
        elif kind == "abandon" and number is None:
            tree["status"] = "abandoned"
        elif kind == "abandon":
            tree["thoughts"][number]["dead_end"] = True
        else:
            parent, branch = place(operation, tree["thoughts"], last)
            last[branch] = number
            tree["thoughts"][number] = {
                "text": operation["content"],
                "parent": parent,
                "branch": branch,
                "revises": operation["revises"] if kind == "revise" else None,
                "dead_end": False,
            }
    return trees


def place(operation, thoughts, last):
    """The parent's n (None at the root) and the branch of a new thought."""
    if operation["op"] == "branch":
        return operation.get("parent") or None, f"n{operation['n']}"
    if "parent" not in operation:
        return last.get(None), None
    parent = operation["parent"] or None
    branch = thoughts[parent]["branch"] if parent else None
    return parent, branch if last.get(branch) == parent else f"n{operation['n']}"


def with_descendants(thoughts):
    """The n of every dead end and of all that hangs under one."""
    dead = set()
    for number, thought in thoughts.items():
        if thought["dead_end"] or thought["parent"] in dead:
            dead.add(number)
    return dead
