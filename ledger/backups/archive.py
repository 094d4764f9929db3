"""The file of a backup: what pg_dump wrote, and a last line that says what it must hold.

``pg_restore`` does not read past its own end of the file, so it takes the file as it is.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ledger.backups.errors import (
    BackupUnreadableError,
    DamagedBackupError,
    NewerBackupError,
    NotABackupError,
)
from ledger.embedded.binaries import POSTGRES_MAJOR
from ledger.migrations import bundled

FORMAT = 1
ARCHIVE_BEGINS = b"PGDMP"
LINE_BEGINS = b'\n{"thought_ledger_backup":'
LINE_BYTES_MAX = 64 * 1024
CHUNK_BYTES = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What is in a backup: the state of the database at one moment.

    ``migrations`` are the names of those the log's tables were made by.
    """

    taken_at: str
    head_position: int
    events: int
    log_only: bool
    migrations: list[str]


def seal(file: Path, contents: Contents) -> int:
    """Add the last line to what pg_dump wrote, bring all to the disk; return the file's bytes."""
    with file.open("r+b") as archive:
        digest = hashlib.file_digest(archive, "sha256").hexdigest()
        line: dict[str, Any] = {
            "thought_ledger_backup": FORMAT,
            "pg_dump": POSTGRES_MAJOR,
            "archive_bytes": archive.tell(),
            "sha256": digest,
        }
        archive.write(b"\n" + orjson.dumps(line | _facts(contents)) + b"\n")
        archive.flush()
        os.fsync(archive.fileno())
        return archive.tell()


def read_contents(file: Path) -> Contents:
    """What a backup holds, once every byte of it has been checked.

    Raises BackupUnreadableError, NotABackupError, DamagedBackupError, NewerBackupError.
    """
    try:
        line = _last_line(file)
        if line["thought_ledger_backup"] > FORMAT:
            raise NewerBackupError(file, [f"format {line['thought_ledger_backup']}"])
        contents = Contents(**{name: line[name] for name in Contents.__dataclass_fields__})
        newer = sorted(set(contents.migrations) - {migration.name for migration in bundled()})
        if newer or int(line["pg_dump"]) > int(POSTGRES_MAJOR):
            raise NewerBackupError(file, newer or [f"pg_dump {line['pg_dump']}"])
        if _digest(file, line["archive_bytes"]) != line["sha256"]:
            raise DamagedBackupError(file, "its bytes are not those that were written")
    except OSError as error:
        raise BackupUnreadableError(file, error.strerror or str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedBackupError(file, "its last line makes no sense") from error
    return contents


def _facts(contents: Contents) -> dict[str, Any]:
    return {name: getattr(contents, name) for name in Contents.__dataclass_fields__}


def _last_line(file: Path) -> dict[str, Any]:
    with file.open("rb") as archive:
        if archive.read(len(ARCHIVE_BEGINS)) != ARCHIVE_BEGINS:
            raise NotABackupError(file)
        size = archive.seek(0, os.SEEK_END)
        archive.seek(max(0, size - LINE_BYTES_MAX))
        _, begins, line = archive.read().rpartition(LINE_BEGINS)
    if not begins or not line.endswith(b"\n"):
        raise DamagedBackupError(file, "its end is missing, or pg_dump made it by itself")
    return orjson.loads(LINE_BEGINS + line)


def _digest(file: Path, length: int) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as archive:
        while length > 0 and (chunk := archive.read(min(length, CHUNK_BYTES))):
            digest.update(chunk)
            length -= len(chunk)
    return digest.hexdigest()
