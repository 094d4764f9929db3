"""What those who are not on this machine are told."""

from pathlib import Path

import psycopg

from ledger.appender import AppendRefusedError
from ledger.embedded.errors import PostgresStartError
from ledger.errors import ChainNotActiveError
from mcp_server.web.strangers import for_strangers


def test_no_place_of_this_machine_is_told_to_strangers_but_to_stderr(caplog):
    error = PostgresStartError(Path("/secret/place/postgres.log"), "/secret/place/pg is broken")

    told = for_strangers(error)

    assert "/secret" not in str(told)
    assert "/secret/place/postgres.log" in caplog.text


def test_a_refusal_is_told_as_it_is(caplog):
    refusal = ChainNotActiveError("some-chain", "paused")

    assert for_strangers(refusal) is refusal
    assert not caplog.records


def test_a_full_disk_is_named_without_its_files():
    refused = AppendRefusedError(psycopg.errors.DiskFull('could not extend file "base/1/2"'))

    assert "base/" not in str(refused)
    assert "full" in str(refused)
