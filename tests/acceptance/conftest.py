import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import database, temporary_data_dir


@pytest.fixture
def data_dir():
    """An empty data directory for one test."""
    with temporary_data_dir() as path:
        yield path


@pytest.fixture(scope="module")
def shared_data_dir():
    """One data directory for the tests of a module, which then must not count what is in it."""
    with temporary_data_dir() as path:
        yield path


@pytest.fixture(scope="module")
def ledger():
    """A data directory whose PostgreSQL runs for all tests of the module."""
    with temporary_data_dir() as data_dir, database(data_dir):
        yield data_dir


@pytest.fixture
def server(shared_data_dir):
    """A fresh server process on the module's data directory."""
    with Server(shared_data_dir) as server:
        yield server
