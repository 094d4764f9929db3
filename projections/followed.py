"""Which generations of a projection a worker keeps up, and which kept ones are too many."""

from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.database import Connector
from projections import generations
from projections.errors import ProjectionVersionError
from projections.generations import Generation
from projections.projection import Projection
from projections.session import session

# Kept generations of a projection that go on following the log, each on a connection of its own.
KEPT_UP_MAX = 5


class Followed(NamedTuple):
    """The generations of a projection to keep up, and the kept ones that are too many."""

    generations: list[Generation]
    left: list[Generation]


def followed(connection: Connection[TupleRow], projection: Projection) -> Followed:
    """Those a worker with this version of the projection keeps up, built by it.

    The live one, and of the kept ones the KEPT_UP_MAX that were promoted last.
    """
    own = [
        found
        for found in generations.listed(connection, projection.name)
        if found.projection_version == projection.version
    ]
    live = [found for found in own if found.state == "live"]
    kept = [found for found in own if found.state == "kept"]
    return Followed(live + kept[:KEPT_UP_MAX], kept[KEPT_UP_MAX:])


def find_followed(connector: Connector, projection: Projection) -> Followed:
    """The same; the first generation is built when there is none.

    Raises ProjectionVersionError when all there are were built by another version, and
    GrantMissingError.
    """
    with session(connector) as connection:
        try:
            generations.ensure_live(connection, projection)
        except ProjectionVersionError:
            found = followed(connection, projection)
            # One of this version may be kept to go back to.
            if not found.generations:
                raise
            return found
        return followed(connection, projection)
