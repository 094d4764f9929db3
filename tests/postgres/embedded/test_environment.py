"""What libpq reads from the environment must not lead away from the embedded server."""

from ledger.database import Database, Role
from ledger.settings import Settings

STRAY = {
    "PGCHANNELBINDING": "require",
    "PGCLIENTENCODING": "SQL_ASCII",
    "PGGSSENCMODE": "require",
    "PGHOSTADDR": "127.0.0.1",
    "PGOPTIONS": "-c statement_timeout=1 -c default_transaction_read_only=on",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGSSLMODE": "nonsense",
    "PGTARGETSESSIONATTRS": "standby",
}


def test_stray_variables_of_libpq_do_not_matter(used_dir, monkeypatch):
    for name, value in STRAY.items():
        monkeypatch.setenv(name, value)

    with Database(Settings(data_dir=used_dir)) as database:
        for role in Role:
            with database.connector(role).connect() as connection:
                timeout = connection.execute("SHOW statement_timeout").fetchone()
                assert timeout == ("0",)
                assert connection.info.user == role
                assert connection.info.encoding == "utf-8"
