"""The name and version of what is installed."""

from importlib.metadata import PackageNotFoundError, version

NAME = "thought-ledger"


def package_version() -> str:
    """The installed version; of a source tree that was never installed, 0."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "0"
