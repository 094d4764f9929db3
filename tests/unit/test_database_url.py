"""A database URL that is not what its writer thought must not give its password away."""

import pytest

from ledger.database import Database, DatabaseUnfitError
from ledger.settings import Settings


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:half@s3cret@localhost/name",
        "postgresql://localhost:s3cret/half@localhost/name",
        "postgresql://user:s3cret@localhost:port/name",
        "postgresql://user:s3cret\udcff@localhost/name",
        "postgresql://user:s3%zzcret@localhost/name",
    ],
)
def test_a_url_with_a_raw_sign_in_its_password_is_refused_without_quoting_it(url):
    with pytest.raises(DatabaseUnfitError) as refusal:
        Database(Settings(database_url=url))

    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:a%40b%2Fc@localhost:5432/name",
        "postgresql://user@one:5432,two:5433/name",
        "host=@abstract user=postgres",
        "host=/tmp/a@b user=postgres",
        "dbname=name",
    ],
)
def test_an_unusual_url_is_taken(url):
    Database(Settings(database_url=url))
