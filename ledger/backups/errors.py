"""What backup and restore can refuse or fail at."""

from collections.abc import Sequence
from pathlib import Path

from ledger.errors import LedgerError


class BackupError(LedgerError):
    """Base of the errors of backup and restore."""


class BackupExistsError(BackupError):
    """There is a file of that name already."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} is there already; choose another name, or replace it with --overwrite"
        )
        self.file = file


class NotReplaceableError(BackupError):
    """What has that name is a directory, a device or a link, and no file may take its place."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} is no regular file and is not replaced; choose another name")
        self.file = file


class NothingToBackUpError(BackupError):
    """The database has no ledger in it; most likely it is not the one that was meant."""

    def __init__(self) -> None:
        super().__init__(
            "there is no ledger to back up; check --data-dir and --database-url, and "
            "THOUGHT_LEDGER_DATA_DIR and THOUGHT_LEDGER_DATABASE_URL"
        )


class BackupFailedError(BackupError):
    """pg_dump did not come to its end; no file was left."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the backup failed and left no file ({reason}); correct that, try again")
        self.reason = reason


class BackupNotRememberedError(BackupError):
    """The file is whole, and the database does not know of it."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"the backup in {file} is whole, but the database could not remember it ({reason}); "
            "take another one when it can, or `thought-ledger doctor` tells the wrong age"
        )
        self.file = file
        self.reason = reason


class BackupUnreadableError(BackupError):
    """The file cannot be opened."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} cannot be read ({reason}); check the name and the permissions")
        self.file = file
        self.reason = reason


class NotABackupError(BackupError):
    """The file was made by something else."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} is no backup of a ledger; name a file that `thought-ledger backup` made"
        )
        self.file = file


class DamagedBackupError(BackupError):
    """The file began as a backup and is not whole."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"the backup {file} is damaged ({reason}); nothing was restored: copy it again from "
            "where it came, or take an older one"
        )
        self.file = file
        self.reason = reason


class NewerBackupError(BackupError):
    """A newer thought-ledger made the file."""

    def __init__(self, file: Path, found: Sequence[str]) -> None:
        super().__init__(
            f"the backup {file} was made by a newer thought-ledger ({', '.join(found)}); "
            "upgrade this one, then restore it"
        )
        self.file = file
        self.found = found


class LedgerExistsError(BackupError):
    """There is a ledger where one should be restored."""

    def __init__(self) -> None:
        super().__init__(
            "the database has a ledger already, and a restore replaces nothing; restore into "
            "another --data-dir or into an empty database"
        )


class RestoreRefusedError(BackupError):
    """The login may not make what a ledger consists of."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this login may not restore a ledger ({reason}); restore as a superuser, or as the "
            "owner of the database who may create roles, once a superuser has run "
            "`CREATE EXTENSION vector`"
        )
        self.reason = reason


class RestoreFailedError(BackupError):
    """The database did not take the backup; it is as it was."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"nothing was restored ({reason}); correct that, or restore into an empty database"
        )
        self.reason = reason


class UnsupportedUrlError(BackupError):
    """The URL holds a secret that can be handed to no program in private."""

    def __init__(self) -> None:
        super().__init__(
            "a backup cannot use a database URL with sslpassword; use a key without a password"
        )
