"""The worker and those who wait for it, when the whole server dies under them."""

import os
import shutil
import signal
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from ledger.database import Database, Role
from ledger.settings import Settings
from projections.wait import wait_for
from tests.postgres.projecting import SECONDS_MAX, record_chain, running_worker


@pytest.fixture
def own_database():
    """A server of this test's own, to be killed."""
    data_dir = Path(tempfile.mkdtemp(prefix="tl-"))
    try:
        with Database(Settings(data_dir=data_dir)) as database:
            yield database
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


def test_a_killed_postmaster_is_revived_and_read_models_go_on(own_database):
    with running_worker(own_database) as worker:
        worker.hear("leads")
        with closing(own_database.connector(Role.WRITER).connect()) as writer:
            record_chain(writer, "before")

        os.kill(_postmaster(own_database), signal.SIGKILL)

        worker.hear("leads")
        with closing(own_database.connector(Role.WRITER).connect()) as writer:
            record_chain(writer, "after")
        with closing(own_database.connector(Role.READER).connect()) as reader:
            assert wait_for(reader, "thoughts", 4, SECONDS_MAX)
            count = reader.execute("SELECT count(*) FROM live.thoughts").fetchone()
    assert count == (2,)


def _postmaster(database):
    with psycopg.connect(database.embedded.conninfo()) as admin:
        (first_line,) = admin.execute(
            "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)"
        ).fetchone()
    return int(first_line)
