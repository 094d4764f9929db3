"""What the read models have to show, folded from the log or asked of the database."""

from psycopg.rows import dict_row

from tests.acceptance.product import THOUGHTS

STATUS_AFTER = {
    "chain.started": "active",
    "chain.paused": "paused",
    "chain.resumed": "active",
    "chain.completed": "completed",
    "chain.reopened": "active",
    "chain.abandoned": "abandoned",
}
SELECT_CHAINS = """
    SELECT id::text, title, status, thought_count, version
    FROM live.thought_chains
"""
SELECT_THOUGHTS = """
    SELECT id::text, chain_id::text, sequence, thought, thought_number, total_thoughts,
        is_revision, revises_thought_id::text, revised_by_thought_id::text, branch_id,
        abandoned, parent_thought_id::text, position
    FROM live.thoughts
"""

SELECT_UNLINKED = """
    SELECT count(*)
    FROM live.memories AS memory
    FULL JOIN live.thoughts AS thought
      ON thought.id = memory.thought_id AND thought.memory_id = memory.id
     AND thought.content_hash = memory.content_hash AND thought.thought = memory.text
    WHERE memory.id IS NULL OR thought.id IS NULL
"""


def live_chains(connection):
    return _rows(connection, SELECT_CHAINS)


def live_thoughts(connection):
    return _rows(connection, SELECT_THOUGHTS)


def memories_without_thoughts(connection):
    """How many rows of ``live.memories`` and ``live.thoughts`` do not belong to one another."""
    return connection.execute(SELECT_UNLINKED).fetchone()[0]


def _rows(connection, query):
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query).fetchall()
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows), "an id is in the read model twice"
    return by_id


def folded_chains(log):
    """``live.thought_chains`` as the log tells it."""
    rows = {}
    for event in log:
        if event.topic == "chain.recalled":
            continue
        if event.topic == "chain.started":
            title = shown(event.payload["title"])
            rows[event.chain] = {"id": event.chain, "title": title, "thought_count": 0}
        row = rows[event.chain]
        row["status"] = STATUS_AFTER.get(event.topic, row.get("status"))
        row["thought_count"] += event.topic in THOUGHTS
        row["version"] = event.version
    return rows


def folded_thoughts(log):
    """``live.thoughts`` as the log tells it."""
    rows = {}
    for event in log:
        if event.topic == "thought.abandoned":
            rows[event.payload["thought_id"]]["abandoned"] = True
        if event.topic not in THOUGHTS:
            continue
        row = rows[event.payload["thought_id"]] = _thought(event)
        if row["revises_thought_id"] in rows:
            rows[row["revises_thought_id"]]["revised_by_thought_id"] = row["id"]
    # What hangs under a dead end is one too, whenever it came; parents come first in the log.
    for row in rows.values():
        parent = rows.get(row["parent_thought_id"])
        row["abandoned"] = row["abandoned"] or (parent is not None and parent["abandoned"])
    return rows


def _thought(event):
    fact = event.payload
    return {
        "id": fact["thought_id"],
        "chain_id": event.chain,
        "sequence": fact["sequence"],
        "thought": shown(fact["text"]),
        "thought_number": fact["thought_number"],
        "total_thoughts": fact["total_thoughts"],
        # The first thought of a branch may revise an earlier one as well, and says so.
        "is_revision": event.topic == "thought.revised" or fact.get("is_revision", False),
        "revises_thought_id": fact.get("revises_thought_id"),
        "revised_by_thought_id": None,
        "branch_id": shown(fact.get("branch_id")),
        "abandoned": False,
        "parent_thought_id": fact["parent_thought_id"],
        "position": event.position,
    }


def shown(text):
    """PostgreSQL text cannot hold U+0000, so read models show U+FFFD for it."""
    return None if text is None else text.replace("\0", "\ufffd")
