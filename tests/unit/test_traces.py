"""What each operation of a file of traces asks of a chain."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from ledger.aggregate import ThoughtChain
from ledger.chain_state import Status
from ledger.errors import ChainNotActiveError, LimitExceededError, ThoughtExistsError
from ledger.events import (
    ChainAbandoned,
    ChainCompleted,
    ChainStarted,
    ThoughtAbandoned,
    ThoughtAdded,
    ThoughtBranched,
    ThoughtRevised,
)
from ledger.imports import check_traces
from ledger.limits import THOUGHT_BYTES_MAX
from ledger.traces import (
    Operation,
    TraceError,
    apply_operation,
    chain_id_of,
    read_operations,
    start_chain,
    thought_id_of,
)

START = {"chain": "c", "op": "start", "content": "the task", "src": "s"}


def operation(op: str, line: int = 7, **said: Any) -> Operation:
    return Operation(line, "c", op, {"chain": "c", "op": op} | said)


def chain_of(*operations: Operation) -> ThoughtChain:
    chain = start_chain(Operation(1, "c", "start", START))
    for each in operations:
        apply_operation(chain, each)
    return chain


def last(chain: ThoughtChain) -> Any:
    return chain.pending_events[-1]


def id_of(chain: ThoughtChain, number: int) -> UUID:
    return thought_id_of(chain.id, operation("append", n=number))


def write(path: Path, *lines: Any) -> Path:
    """A file with these lines; what is no text is written as JSON."""
    written = [line if isinstance(line, bytes) else orjson.dumps(line) for line in lines]
    path.write_bytes(b"\n".join(written) + b"\n")
    return path


# What operations become


def test_a_start_becomes_a_chain_with_the_task_as_its_title():
    chain = start_chain(Operation(1, "c", "start", START | {"meta": {"k": 1}}))

    event = last(chain)
    assert isinstance(event, ChainStarted)
    assert (event.title, event.source, event.session_id) == ("the task", "s", None)
    assert orjson.loads(event.metadata) == {"chain": "c", "meta": {"k": 1}}
    assert event.originator_id == chain_id_of(Operation(1, "c", "start", START))


def test_a_chain_gets_the_same_id_at_every_import_and_another_per_source():
    ids = {
        chain_id_of(Operation(line, chain, "start", {"src": source}))
        for chain in ("a", "b")
        for source in ("x", "y")
        for line in (1, 2)
    }

    assert len(ids) == 4


def test_appended_thoughts_follow_each_other_on_the_trunk():
    chain = chain_of(operation("append", n=1, content="one"), operation("append", n=2))

    event = last(chain)
    assert isinstance(event, ThoughtAdded)
    assert (event.thought_id, event.parent_thought_id) == (id_of(chain, 2), id_of(chain, 1))
    assert (event.thought_number, event.branch_id, event.text) == (2, None, "")


def test_a_thought_under_the_end_of_its_branch_goes_on_that_branch():
    chain = chain_of(
        operation("append", n=1),
        operation("branch", n=2, parent=1),
        operation("append", n=3, parent=2),
    )

    event = last(chain)
    assert isinstance(event, ThoughtAdded)
    assert (event.branch_id, event.parent_thought_id) == ("n2", id_of(chain, 2))


def test_a_thought_under_an_earlier_one_opens_a_branch_of_its_own():
    chain = chain_of(
        operation("append", n=1), operation("append", n=2), operation("append", n=3, parent=1)
    )

    event = last(chain)
    assert isinstance(event, ThoughtBranched)
    assert (event.branch_id, event.parent_thought_id) == ("n3", id_of(chain, 1))
    assert (event.branch_from_thought_number, event.branch_from_thought_id) == (1, id_of(chain, 1))


def test_a_branch_opens_a_branch_even_at_the_end_of_the_trunk():
    chain = chain_of(operation("append", n=1), operation("branch", n=2, parent=1))

    assert isinstance(last(chain), ThoughtBranched)
    assert (last(chain).branch_id, last(chain).parent_thought_id) == ("n2", id_of(chain, 1))


@pytest.mark.parametrize("op", ["append", "branch"])
def test_a_thought_under_the_root_beside_the_trunk_opens_a_branch_without_a_parent(op):
    chain = chain_of(operation("append", n=1), operation(op, n=2, parent=0))

    event = last(chain)
    assert isinstance(event, ThoughtBranched)
    assert (event.branch_id, event.parent_thought_id) == ("n2", None)
    assert event.branch_from_thought_number is None


def test_the_first_thought_under_the_root_is_the_trunk():
    chain = chain_of(operation("append", n=1, parent=0))

    assert isinstance(last(chain), ThoughtAdded)
    assert (last(chain).branch_id, last(chain).parent_thought_id) == (None, None)


def test_a_revision_names_what_it_revises_and_hangs_where_it_says():
    chain = chain_of(
        operation("append", n=1),
        operation("append", n=2),
        operation("revise", n=3, parent=2, revises=1),
    )

    event = last(chain)
    assert isinstance(event, ThoughtRevised)
    assert (event.revises_thought_number, event.revises_thought_id) == (1, id_of(chain, 1))
    assert event.parent_thought_id == id_of(chain, 2)


def test_a_revision_under_an_earlier_thought_is_a_branch_that_revises():
    chain = chain_of(
        operation("append", n=1),
        operation("append", n=2),
        operation("revise", n=3, parent=1, revises=2),
    )

    assert isinstance(last(chain), ThoughtBranched)
    assert last(chain).is_revision
    assert last(chain).revises_thought_id == id_of(chain, 2)


def test_giving_up_with_a_number_is_about_a_thought_and_without_about_the_chain():
    chain = chain_of(operation("append", n=1), operation("abandon", n=1))
    assert isinstance(last(chain), ThoughtAbandoned)
    assert last(chain).thought_id == id_of(chain, 1)
    assert chain.status is Status.ACTIVE

    apply_operation(chain, operation("abandon", meta=[1]))
    assert isinstance(last(chain), ChainAbandoned)
    assert last(chain).metadata == "[1]"


def test_complete_completes_the_chain():
    chain = chain_of(operation("complete", meta={"ok": True}))

    assert isinstance(last(chain), ChainCompleted)
    assert last(chain).metadata == '{"ok":true}'


@pytest.mark.parametrize(
    ("at", "moment"),
    [
        (None, None),
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01T10:00:00+02:00", datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ("2024-05-01T10:00:00", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
    ],
)
def test_the_moment_an_operation_claims_is_kept(at, moment):
    chain = chain_of(operation("append", n=1, at=at))

    assert last(chain).claimed_at == moment


def test_source_and_meta_are_kept_with_the_thought():
    chain = chain_of(operation("append", n=1, src="bbm", meta={"b": 1, "a": None}))

    assert last(chain).source == "bbm"
    assert orjson.loads(last(chain).metadata) == {"b": 1, "a": None}


@pytest.mark.parametrize("text", ["", " ", "a\x00b", "\U0001f9e0", "two\nlines", "\ufffd"])
def test_any_text_is_kept_as_it_is(text):
    chain = chain_of(operation("append", n=1, content=text))

    assert last(chain).text == text


# What makes no sense


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("append", {}),
        ("append", {"n": 0}),
        ("append", {"n": -1}),
        ("append", {"n": "1"}),
        ("append", {"n": 1.0}),
        ("append", {"n": True}),
        ("append", {"n": 2**53}),
        ("append", {"n": 2, "content": 7}),
        ("append", {"n": 2, "parent": "1"}),
        ("append", {"n": 2, "parent": 9}),
        ("append", {"n": 2, "parent": -1}),
        ("append", {"n": 2, "at": "yesterday"}),
        ("append", {"n": 2, "at": 7}),
        ("append", {"n": 2, "at": "0001-01-01T00:00:00+14:00"}),
        ("append", {"n": 2, "at": "9999-12-31T23:59:59-12:00"}),
        ("append", {"n": 2, "src": ["s"]}),
        ("branch", {"n": 2, "parent": 9}),
        ("revise", {"n": 2, "revises": "1"}),
        ("revise", {"n": 2, "revises": 2**53}),
        ("revise", {"n": 2, "revises": -(2**53)}),
        ("abandon", {"n": None}),
        ("abandon", {"n": "1"}),
        ("start", {}),
    ],
)
def test_an_operation_that_makes_no_sense_names_its_line(op, said):
    chain = chain_of(operation("append", n=1))
    before = chain.version

    with pytest.raises(TraceError) as refusal:
        apply_operation(chain, operation(op, line=42, **said))

    assert refusal.value.line == 42
    assert chain.version == before


def test_a_thought_given_up_twice_makes_no_sense_since_an_operation_is_one_event():
    chain = chain_of(operation("append", n=1), operation("abandon", n=1))

    with pytest.raises(TraceError) as refusal:
        apply_operation(chain, operation("abandon", line=9, n=1))

    assert refusal.value.line == 9


def test_a_chain_that_does_not_begin_with_a_start_is_refused():
    with pytest.raises(TraceError) as refusal:
        start_chain(operation("append", line=3, n=1))

    assert refusal.value.line == 3


# The file


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read_plain_or_packed_line_by_line(tmp_path, packed):
    path = write(tmp_path / "traces", START, b"", START | {"chain": "d"}, b"  ")
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))

    operations = list(read_operations(path))

    assert [(each.line, each.chain, each.op) for each in operations] == [
        (1, "c", "start"),
        (3, "d", "start"),
    ]
    assert operations[0].said == START


def test_an_empty_file_has_no_operations(tmp_path):
    path = tmp_path / "empty"
    path.touch()

    assert list(read_operations(path)) == []
    assert check_traces(path) == 0


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"not json",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b'{"chain":"c"}',
        b'{"op":"start"}',
        b'{"chain":1,"op":"start"}',
        b'{"chain":"c","op":null}',
        b'{"chain":"c","op":"explode"}',
        b'{"chain":"c","op":"Start"}',
        b"\xff\xfe",
        b'{"chain":"c","op":"start","content":NaN}',
    ],
)
def test_a_line_that_is_no_operation_is_named(tmp_path, line):
    path = write(tmp_path / "traces", START, line)

    with pytest.raises(TraceError) as refusal:
        list(read_operations(path))

    assert refusal.value.line == 2


def test_a_file_that_is_not_there_is_a_trace_error(tmp_path):
    with pytest.raises(TraceError):
        list(read_operations(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "spoil", [lambda packed: packed[:-12], lambda packed: packed[:30] + b"?" * 9 + packed[39:]]
)
def test_a_packed_file_that_is_cut_or_spoilt_is_a_trace_error(tmp_path, spoil):
    path = write(tmp_path / "traces", *[START | {"chain": str(each)} for each in range(200)])
    path.write_bytes(spoil(gzip.compress(path.read_bytes())))

    with pytest.raises(TraceError):
        list(read_operations(path))


# The whole file is checked before anything is recorded


def test_a_file_that_makes_sense_is_counted(tmp_path):
    path = write(
        tmp_path / "traces",
        START,
        {"chain": "c", "op": "append", "n": 1},
        START | {"chain": "d"},
        {"chain": "c", "op": "complete"},
    )

    assert check_traces(path) == 4


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"op": "append", "n": 1}, ThoughtExistsError),
        ({"op": "append", "n": 2, "content": "x" * (THOUGHT_BYTES_MAX + 1)}, LimitExceededError),
    ],
)
def test_what_a_chain_would_refuse_is_named_by_its_line(tmp_path, line, reason):
    path = write(
        tmp_path / "traces",
        START,
        {"chain": "c", "op": "append", "n": 1},
        {"chain": "c"} | line,
    )

    with pytest.raises(TraceError) as refusal:
        check_traces(path)

    assert refusal.value.line == 3
    assert isinstance(refusal.value.__cause__, reason)


def test_a_thought_after_the_end_of_its_chain_is_named_by_its_line(tmp_path):
    path = write(
        tmp_path / "traces",
        START,
        {"chain": "c", "op": "complete"},
        START | {"chain": "d"},
        {"chain": "c", "op": "append", "n": 1},
    )

    with pytest.raises(TraceError) as refusal:
        check_traces(path)

    assert refusal.value.line == 4
    assert isinstance(refusal.value.__cause__, ChainNotActiveError)


@pytest.mark.parametrize(
    "start",
    [
        {"chain": "c", "op": "append", "n": 1},
        START | {"content": "x" * THOUGHT_BYTES_MAX},
        START | {"src": "s" * 256},
        START | {"src": 7},
    ],
)
def test_a_start_that_makes_no_sense_is_named_by_its_line(tmp_path, start):
    path = write(tmp_path / "traces", START | {"chain": "b"}, start)

    with pytest.raises(TraceError) as refusal:
        check_traces(path)

    assert refusal.value.line == 2


def test_a_moment_to_the_microsecond_is_kept():
    moment = datetime(2024, 5, 1, tzinfo=UTC) + timedelta(microseconds=1)

    assert last(chain_of(operation("append", n=1, at=moment.isoformat()))).claimed_at == moment


def test_a_meta_nested_deeper_than_it_can_be_written_is_refused(tmp_path: Path):
    path = tmp_path / "deep.jsonl"
    deep = "[" * 300 + "]" * 300
    path.write_text(f'{{"chain":"c","op":"start","content":"t","meta":{deep}}}\n')

    with pytest.raises(TraceError) as refusal:
        check_traces(path)

    assert refusal.value.line == 1
