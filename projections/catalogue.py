"""All projections there are, in the order they are listed; a worker follows each of them."""

from collections.abc import Sequence

from projections.entities import Entities
from projections.errors import ProjectionNotFoundError
from projections.projection import Projection
from projections.terms import Terms
from projections.thoughts import Thoughts
from projections.trust.projection import Trust

ALL: Sequence[Projection] = (Thoughts(), Terms(), Trust(), Entities())


def projection_of(name: str) -> Projection:
    """The projection of a read model.  Raises ProjectionNotFoundError."""
    for projection in ALL:
        if projection.name == name:
            return projection
    raise ProjectionNotFoundError(name, [projection.name for projection in ALL])
