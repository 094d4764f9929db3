"""Backup and restore as an operator does them, beside a server that goes on."""

import json

from tests.acceptance.client import Server
from tests.acceptance.product import (
    assert_cannot_answer,
    chains,
    replay,
    run,
    run_well,
    temporary_data_dir,
    texts,
)


def test_what_was_backed_up_is_there_again_and_goes_on(data_dir, tmp_path):
    file = tmp_path / "ledger.backup"
    with Server(data_dir) as server:
        chain = server.think("before", number=1)["chain_id"]
        taken = json.loads(run_well("backup", file, "--json", data_dir=data_dir))
        server.think("after", number=2)

    with temporary_data_dir() as elsewhere:
        restored = json.loads(run_well("restore", file, "--json", data_dir=elsewhere))

        assert taken["head_position"] == restored["head_position"] == 2
        assert taken["bytes"] == file.stat().st_size
        assert replay(chain, data_dir=elsewhere) == replay(chain, data_dir=data_dir)[:2]
        assert chains(elsewhere)[chain]["thoughts"] == 1
        with Server(elsewhere) as server:
            server.think("another after", number=2, chain_id=chain)
        assert texts(replay(chain, data_dir=elsewhere)) == ["before", "another after"]

        again = run("restore", file, data_dir=elsewhere)
        assert_cannot_answer(again)
        assert len(replay(chain, data_dir=elsewhere)) == 3


def test_people_are_told_what_is_in_it_and_what_is_next(data_dir, tmp_path):
    run_well("migrate", data_dir=data_dir)

    taken = run_well("backup", tmp_path / "file", "--log-only", data_dir=data_dir)
    with temporary_data_dir() as elsewhere:
        restored = run_well("restore", tmp_path / "file", data_dir=elsewhere)

    assert "0 events" in taken
    assert "without read models" in taken
    assert "0 events" in restored
    assert "thought-ledger projections run" in restored


def test_what_is_no_backup_is_one_sentence_and_makes_nothing(tmp_path):
    (tmp_path / "file").write_text("Dear diary")

    done = run("restore", tmp_path / "file", data_dir=tmp_path / "ledger")

    assert_cannot_answer(done)
    assert not (tmp_path / "ledger").exists()


def test_a_file_is_not_written_over(data_dir, tmp_path):
    run_well("migrate", data_dir=data_dir)
    (tmp_path / "file").write_text("Dear diary")

    assert_cannot_answer(run("backup", tmp_path / "file", data_dir=data_dir))
    assert (tmp_path / "file").read_text() == "Dear diary"

    run_well("backup", tmp_path / "file", "--overwrite", data_dir=data_dir)
    assert (tmp_path / "file").read_bytes().startswith(b"PGDMP")


def test_a_place_without_a_ledger_is_not_backed_up(data_dir, tmp_path):
    assert_cannot_answer(run("backup", tmp_path / "file", data_dir=data_dir))

    assert list(tmp_path.iterdir()) == []
