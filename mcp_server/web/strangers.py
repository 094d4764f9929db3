"""What those who are not on this machine are told when something on it is wrong."""

import logging

from ledger.embedded import EmbeddedPostgresError
from ledger.errors import LedgerError
from ledger.said import Said

logger = logging.getLogger("thought-ledger")


class DatabaseDownError(LedgerError):
    """The database cannot be used; why is for its operator, and may name places."""

    def __init__(self) -> None:
        super().__init__(
            "the database cannot be started, its operator finds why on the server's stderr; "
            "try again later"
        )


def for_strangers(error: LedgerError) -> LedgerError:
    """The error without the places of this machine; those go to stderr."""
    if not isinstance(error, EmbeddedPostgresError):
        return error
    logger.error(Said(str(error), event="database_unavailable"))
    return DatabaseDownError()
