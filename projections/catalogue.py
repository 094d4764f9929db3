"""All projections there are, in the order they are listed; a worker follows each of them."""

from collections.abc import Sequence

from projections.errors import ReadModelNotFoundError
from projections.projection import Projection
from projections.terms import Terms
from projections.thoughts import Thoughts

ALL: Sequence[Projection] = (Thoughts(), Terms())


def find(name: str) -> Projection:
    """The projection of this name.  Raises ReadModelNotFoundError."""
    for projection in ALL:
        if projection.name == name:
            return projection
    raise ReadModelNotFoundError(name, [projection.name for projection in ALL])
