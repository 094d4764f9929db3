"""What is said of an embedding process that cannot say it itself."""

import sys

import pytest

from ledger.database import Role
from ledger.settings import Settings
from projections.embeddings import launcher, status
from projections.embeddings.launcher import Launcher, running
from projections.stopping import Stop
from tests.acceptance.product import eventually
from tests.postgres.embedding import MODEL
from tests.postgres.projecting import SECONDS_MAX, record_chain


@pytest.mark.parametrize(
    ("code", "reason"),
    [("import os; os.kill(os.getpid(), 9)", "SIGKILL"), ("raise SystemExit(7)", "exit code 7")],
)
def test_a_process_that_is_ended_again_and_again_is_told_of(
    database, database_url, writer, reader, monkeypatch, code, reason
):
    monkeypatch.setattr(launcher, "COMMAND", (sys.executable, "-c", code))
    record_chain(writer, "a thought")
    settings = Settings(database_url=database_url, embedding_model=MODEL)
    said = []
    with Stop() as stop:
        child = Launcher(database.connector(Role.PROJECTOR), settings, stop, say=said.append)
        with running(child.run, stop):
            eventually(lambda: status.look(reader).state == "failed", SECONDS_MAX, "a word of it")
            found = status.look(reader)

    assert reason in found.reason
    assert "started again in" in found.reason
    assert reason in said[0]
