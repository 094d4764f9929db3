"""Which generations of a projection a worker keeps up, and which kept ones are too many."""

from typing import NamedTuple

from ledger.database import Connector
from projections import generations
from projections.errors import ProjectionVersionError
from projections.generations import Generation
from projections.projection import Projection
from projections.session import session


class Followed(NamedTuple):
    """The generations of a projection to keep up, and the kept ones that are too many."""

    generations: list[Generation]
    left: list[Generation]


def find_followed(connector: Connector, projection: Projection) -> Followed:
    """The generations to keep up; the first one is built when there is none.

    Raises ProjectionVersionError when all there are were built by another version, and
    GrantMissingError.
    """
    with session(connector) as connection:
        try:
            generations.ensure_live(connection, projection)
        except ProjectionVersionError:
            # One of this version may be kept to go back to.
            if not generations.followed(connection, projection):
                raise
        found = generations.followed(connection, projection)
        left = [
            kept
            for kept in generations.listed(connection, projection.name)
            if kept.state == "kept"
            and kept.projection_version == projection.version
            and kept not in found
        ]
        return Followed(found, left)
