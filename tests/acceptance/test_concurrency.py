"""Many writers through two server processes: nothing lost, nothing doubled, order kept."""

import contextlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.client import Server, thought
from tests.acceptance.product import THOUGHTS, database, read_log

WRITERS_COUNT = 32
THOUGHTS_EACH = 15
CHAINS_COUNT = 256
ROUNDS_COUNT = 3
ANSWERS_SECONDS_MAX = 90
FOLLOW_SECONDS = 0.002

pytestmark = pytest.mark.timeout(3 * ANSWERS_SECONDS_MAX)


@pytest.fixture(scope="module")
def servers(shared_data_dir):
    """Two server processes on one data directory."""
    with Server(shared_data_dir) as one, Server(shared_data_dir) as other:
        one.think("makes the tables, which a follower reads")["chain_id"]
        yield one, other


def test_32_writers_on_one_chain_lose_and_double_nothing(servers, shared_data_dir):
    chain = servers[0].think("the first", number=1)["chain_id"]
    written = {
        writer: [f"writer {writer}, thought {n}" for n in range(THOUGHTS_EACH)]
        for writer in range(WRITERS_COUNT)
    }
    batches = [interleaved(chain, written, half) for half in (0, 1)]

    with followed(shared_data_dir) as follower:
        answers = at_once(servers, batches)

    log = [event for event in follower.log if event.chain == chain]
    thoughts = [event.payload for event in log if event.topic in THOUGHTS]
    assert Counter(answer.outcome for answer in answers) == {"answered": len(answers)}
    assert Counter(fact["text"] for fact in thoughts) == Counter(
        ["the first", *(text for texts in written.values() for text in texts)]
    )
    assert [event.version for event in log] == list(range(1, len(log) + 1))
    assert [fact["sequence"] for fact in thoughts] == list(range(1, len(thoughts) + 1))
    assert len({fact["thought_id"] for fact in thoughts}) == len(thoughts)
    for texts in written.values():
        assert [fact["text"] for fact in thoughts if fact["text"] in texts] == texts
    lengths = sorted(answer["thoughtHistoryLength"] for answer in answers)
    assert lengths == list(range(2, len(thoughts) + 1)), "each answer counts its own thought"
    assert follower.seen == follower.there, "a follower by position missed or reordered something"


def test_256_chains_written_from_two_processes_keep_their_own_order(servers, shared_data_dir):
    half = CHAINS_COUNT // 2
    starts = [
        [("sequentialthinking", thought(f"start {i}", number=1)) for i in group]
        for group in (range(half), range(half, CHAINS_COUNT))
    ]

    with followed(shared_data_dir) as follower:
        chains = [answer["chain_id"] for answer in at_once(servers, starts)]
        answers = at_once(servers, [everywhere(chains, process) for process in (0, 1)])

    log = [event for event in follower.log if event.chain in set(chains)]
    assert len(set(chains)) == CHAINS_COUNT
    assert Counter(answer.outcome for answer in answers) == {"answered": len(answers)}
    for index, chain in enumerate(chains):
        events = [event for event in log if event.chain == chain]
        thoughts = [event.payload for event in events if event.topic in THOUGHTS]
        texts = [fact["text"] for fact in thoughts]
        assert [event.version for event in events] == list(range(1, len(events) + 1))
        assert [fact["sequence"] for fact in thoughts] == list(range(1, len(thoughts) + 1))
        assert texts[0] == f"start {index}"
        for process in (0, 1):
            own = [text for text in texts if text.startswith(f"process {process},")]
            assert own == [f"process {process}, round {n}" for n in range(ROUNDS_COUNT)]
        assert len(texts) == 1 + 2 * ROUNDS_COUNT
    assert follower.seen == follower.there, "a follower by position missed or reordered something"


def interleaved(chain, written, half):
    """The calls of every second writer, in turns: the first thought of each, then the next ones."""
    writers = [texts for writer, texts in written.items() if writer % 2 == half]
    return [
        ("sequentialthinking", thought(texts[n], number=n + 2, chain_id=chain))
        for n in range(THOUGHTS_EACH)
        for texts in writers
    ]


def everywhere(chains, process):
    """A process's calls on all chains, round after round."""
    return [
        (
            "sequentialthinking",
            thought(f"process {process}, round {n}", number=n + 2, chain_id=chain),
        )
        for n in range(ROUNDS_COUNT)
        for chain in chains
    ]


def at_once(servers, batches):
    """Sends a batch of calls to each server at the same time and returns all answers in order."""
    with ThreadPoolExecutor(len(servers)) as threads:
        sending = [
            threads.submit(server.call_pipelined, batch, ANSWERS_SECONDS_MAX)
            for server, batch in zip(servers, batches, strict=True)
        ]
        return [answer for each in sending for answer in each.result(2 * ANSWERS_SECONDS_MAX)]


class Follower:
    """Reads the log by position while others write, as a projection does."""

    def __init__(self, data_dir):
        self._data_dir = data_dir
        self._enough = threading.Event()
        self.reading = threading.Event()
        self.log = []

    def read_on(self):
        with database(self._data_dir) as connection:
            while True:
                last_turn = self._enough.is_set()
                after = self.log[-1].position if self.log else 0
                self.log += read_log(connection, after)
                self.reading.set()
                if last_turn:
                    break
                self._enough.wait(FOLLOW_SECONDS)
            self.seen = [(e.position, e.chain, e.version) for e in self.log]
            self.there = [(e.position, e.chain, e.version) for e in read_log(connection)]

    def stop(self):
        self._enough.set()


@contextlib.contextmanager
def followed(data_dir):
    """A follower that has begun before the body runs and has read everything when it is left."""
    follower = Follower(data_dir)
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(follower.read_on)
        try:
            assert follower.reading.wait(ANSWERS_SECONDS_MAX)
            yield follower
        finally:
            follower.stop()
            reading.result(ANSWERS_SECONDS_MAX)
