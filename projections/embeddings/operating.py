"""What an operator does with spaces: go back to a kept one, and drop one."""

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from projections.embeddings.errors import (
    NoEarlierSpaceError,
    SpaceBlockedError,
    SpaceLiveError,
)
from projections.embeddings.spaces import (
    LOCK_SPACES,
    Space,
    find_space,
    list_spaces,
    promote,
    table_of,
)

LOCK_SECONDS_MAX = 5

LIMIT_LOCKS = "SELECT set_config('lock_timeout', %(limit)s, true)"
DELETE_SPACE = "DELETE FROM vectors.spaces WHERE number = %(number)s AND state <> 'live'"


def switch(connection: Connection[TupleRow], number: int | None) -> Space:
    """Have readers search another space: of that number, else the one that was live last.

    Theirs is kept, and not promoted again by itself.  *connection* is of role PROJECTOR.
    Raises SpaceNotFoundError, SpaceLiveError, NoEarlierSpaceError.
    """
    with connection.transaction():
        connection.execute(LOCK_SPACES)
        space = _earlier(connection) if number is None else find_space(connection, number)
        if space.state == "live":
            raise SpaceLiveError(space.number, "there is nothing to do")
        promote(connection, space.number, withdrawn=True)
        return find_space(connection, space.number)


def drop(connection: Connection[TupleRow], number: int) -> Space:
    """Drop a space that readers do not search.

    Raises SpaceNotFoundError, SpaceLiveError, SpaceBlockedError.
    """
    try:
        with connection.transaction():
            connection.execute(LIMIT_LOCKS, {"limit": f"{LOCK_SECONDS_MAX}s"})
            connection.execute(LOCK_SPACES)
            space = find_space(connection, number)
            if space.state == "live":
                raise SpaceLiveError(number, "go back to another one first, or leave it")
            # First the row: the embedding process locks it before the table.
            connection.execute(DELETE_SPACE, {"number": number})
            connection.execute(SQL("DROP TABLE vectors.{}").format(Identifier(table_of(number))))
            return space
    except psycopg.errors.LockNotAvailable as error:
        raise SpaceBlockedError(number) from error


def _earlier(connection: Connection[TupleRow]) -> Space:
    kept = [
        (space.promoted_at, space)
        for space in list_spaces(connection)
        if space.state == "kept" and space.promoted_at is not None
    ]
    if not kept:
        raise NoEarlierSpaceError
    return max(kept, key=lambda each: each[0])[1]
