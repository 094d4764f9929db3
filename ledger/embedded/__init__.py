"""The embedded PostgreSQL: started on first use, shared by processes, stopped by the last."""

from ledger.embedded.errors import (
    AccountError,
    BinariesMissingError,
    BinariesUnusableError,
    ClusterCreationError,
    ClusterVersionError,
    DataDirectoryError,
    EmbeddedPostgresError,
    ForeignDataDirectoryError,
    PostgresBusyError,
    PostgresStartError,
    PostgresUnreachableError,
    PrivateDirectoryError,
    UnknownServerError,
    UnsupportedPlatformError,
)
from ledger.embedded.postgres import EmbeddedPostgres, default_data_dir

__all__ = [
    "AccountError",
    "BinariesMissingError",
    "BinariesUnusableError",
    "ClusterCreationError",
    "ClusterVersionError",
    "DataDirectoryError",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "ForeignDataDirectoryError",
    "PostgresBusyError",
    "PostgresStartError",
    "PostgresUnreachableError",
    "PrivateDirectoryError",
    "UnknownServerError",
    "UnsupportedPlatformError",
    "default_data_dir",
]
