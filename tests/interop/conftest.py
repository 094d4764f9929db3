import pytest

from tests.acceptance.product import database, temporary_data_dir


@pytest.fixture(scope="module")
def shared_data_dir():
    """One data directory for the tests of a module, whose PostgreSQL runs all the while."""
    with temporary_data_dir() as path, database(path):
        yield path
