"""The product's other doors as the tests use them: commands, the database, processes."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psycopg

from tests.acceptance.client import COMMAND, REPOSITORY, clean_environment

COMMAND_SECONDS_MAX = 60
CATCH_UP_SECONDS_MAX = 60
POLL_SECONDS = 0.1
READ_MODELS = {"thoughts", "terms", "trust", "entities"}


def run(*arguments, data_dir=None, env=None, timeout=COMMAND_SECONDS_MAX, stdin=""):
    """Runs ``thought-ledger`` with these arguments and returns the finished process."""
    return subprocess.run(
        command_line(*arguments, data_dir=data_dir),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=REPOSITORY,
        env=clean_environment({"COLUMNS": "200", **(env or {})}),
        timeout=timeout,
        check=False,
    )


def command_line(*arguments, data_dir=None):
    where = [] if data_dir is None else ["--data-dir", str(data_dir)]
    return [*COMMAND, *map(str, arguments), *where]


def run_well(*arguments, **how):
    """Runs a command that has to end with 0 and returns what it printed."""
    done = run(*arguments, **how)
    assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def replay(chain, *options, data_dir):
    """``replay --json`` as a list of events."""
    printed = run_well("replay", chain, "--json", *options, data_dir=data_dir)
    return [json.loads(line) for line in lines_of(printed)]


def lines_of(printed):
    # Not splitlines(): U+2028 and its like may stand unescaped inside a JSON string.
    return [line for line in printed.split("\n") if line]


def texts(events):
    """The texts of the thoughts among replayed events, in order."""
    return [e["text"] for e in events if e["type"] in THOUGHTS]


def topics(events):
    return [event["type"] for event in events]


THOUGHTS = ("thought.added", "thought.revised", "thought.branched")


def chains(data_dir, *options):
    """``chains --json`` by chain id."""
    printed = run_well("chains", "--json", *options, data_dir=data_dir)
    rows = [json.loads(line) for line in lines_of(printed)]
    if len(rows) == 1 and isinstance(rows[0], list):
        rows = rows[0]
    return {row["id"]: row for row in rows}


# Waiting


def eventually(condition, timeout=CATCH_UP_SECONDS_MAX, what="the condition"):
    """Waits until ``condition()`` is true and returns its value."""
    never = threading.Event()
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true in {timeout} s"
        never.wait(POLL_SECONDS)
    return value


def projected_position(data_dir):
    """The position that every read model has reached, or -1 while there is no answer."""
    done = run("projections", "status", "--json", data_dir=data_dir)
    if done.returncode != 0:
        return -1
    rows = [json.loads(line) for line in lines_of(done.stdout)]
    if len(rows) == 1 and isinstance(rows[0], list):
        rows = rows[0]
    elif len(rows) == 1 and "projections" in rows[0]:
        rows = rows[0]["projections"]
    rows = [row for row in rows if row["name"] in READ_MODELS]
    if {row["name"] for row in rows} < READ_MODELS:
        return -1
    return min(row["position"] for row in rows)


def wait_until_projected(data_dir, head, timeout=CATCH_UP_SECONDS_MAX):
    eventually(
        lambda: projected_position(data_dir) >= head,
        timeout,
        f"a read model at position {head}",
    )


# Places and processes


@contextlib.contextmanager
def temporary_data_dir():
    """An empty directory with a short path; a PostgreSQL left behind in it is ended."""
    path = Path(tempfile.mkdtemp(prefix="tl-"))
    try:
        yield path
    finally:
        end_postmaster(path)
        shutil.rmtree(path, ignore_errors=True)


def postmaster(data_dir):
    """The pid of the PostgreSQL of this data directory, or None when it does not run."""
    try:
        pid = int((data_dir / "pg" / "postmaster.pid").read_text().split("\n")[0])
        home = Path(f"/proc/{pid}/cwd").readlink()
    except (OSError, ValueError):
        return None
    return pid if home == (data_dir / "pg").resolve() else None


def end_postmaster(data_dir):
    """Ends it; who still uses it may have started another by now."""
    pid = postmaster(data_dir)
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGQUIT)
        eventually(lambda: postmaster(data_dir) != pid, 20, "the end of PostgreSQL")


def children(pid):
    """The pids of a process's living children."""
    found = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listing.read_text().split())
    return found


@contextlib.contextmanager
def runner(data_dir):
    """``projections run`` in the background; yields its process."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command_line("projections", "run", data_dir=data_dir),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=REPOSITORY,
            env=clean_environment(),
        )
        try:
            yield process
            process.terminate()
            process.wait(COMMAND_SECONDS_MAX)
        except BaseException as error:
            log.seek(0)
            error.add_note(f"projections run printed:\n{log.read().decode(errors='replace')}")
            raise
        finally:
            process.kill()
            process.wait(COMMAND_SECONDS_MAX)


# The database


@contextlib.contextmanager
def database(data_dir):
    """A superuser's connection to the embedded PostgreSQL, which runs at least as long."""
    from ledger.embedded import EmbeddedPostgres

    postgres = EmbeddedPostgres(data_dir)
    postgres.start()
    try:
        where = postgres.conninfo(user="postgres", dbname="thought_ledger")
        with psycopg.connect(where, autocommit=True) as connection:
            yield connection
    finally:
        postgres.stop()


SELECT_EVENTS = """
    SELECT notification_id, originator_id, originator_version, topic, state
    FROM ledger.events
    WHERE notification_id > %s
    ORDER BY notification_id
"""


class Payload(dict):
    """What an event says; what it does not say is not stored, and is None."""

    def __missing__(self, name):
        return None


def read_log(connection, after=0):
    """Every stored event after a position, decoded with nothing but ``json``."""
    for position, chain, version, topic, state in connection.execute(SELECT_EVENTS, [after]):
        header, payload = bytes(state).split(b"\n", 1)
        yield SimpleNamespace(
            position=position,
            chain=str(chain),
            version=version,
            topic=topic,
            header=json.loads(header),
            payload=Payload(json.loads(payload)),
        )


def count_events(connection):
    return connection.execute("SELECT count(*) FROM ledger.events").fetchone()[0]


def is_one_clear_sentence(text):
    """What a person or a model may be shown: short, one line, no internals."""
    internals = ("Traceback", 'File "', "psycopg", "Exception", "SELECT ", "INSERT ", "errno")
    text = text.strip()
    return 10 < len(text) < 600 and "\n" not in text and not any(i in text for i in internals)


def assert_cannot_answer(done):
    """Exit code 2 and one clear sentence, on stderr only."""
    said = " ".join(done.stderr.split())
    assert done.returncode == 2, f"{done.returncode}: {done.stderr}"
    assert is_one_clear_sentence(said), done.stderr
    assert done.stdout == ""
    return said
