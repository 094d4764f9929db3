"""All projections there are, in the order they are listed; a worker follows each of them."""

from collections.abc import Sequence

from projections.projection import Projection
from projections.terms import Terms
from projections.thoughts import Thoughts

ALL: Sequence[Projection] = (Thoughts(), Terms())
