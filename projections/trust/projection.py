"""The read model ``trust``: the fold of policy 1, kept in tables."""

from collections.abc import Sequence
from types import MappingProxyType

from ledger.serialization import Recorded
from projections.projection import Deciding
from projections.trust.fold import TrustFold
from projections.trust.reads import Touched
from projections.trust.rows import changes_of


class Trust:
    """Values and clocks of every thought; what they are worth now is computed by the views.

    The fold goes on with the rows that the events of a batch touch: an append to a long chain reads
    one row, its completion all of them.
    """

    name = "trust"
    version = 1
    tables = ("trust_chains", "trust_confirmations", "trust_memories", "trust_recalls")
    chain_columns = MappingProxyType(
        {
            "trust_chains": "chain_id",
            "trust_confirmations": "chain_id",
            "trust_memories": "chain_id",
            "trust_recalls": "stream_id",
        }
    )
    rest_seconds = 0.02

    def changes(self, batch: Sequence[Recorded]) -> Deciding:
        fold = TrustFold()
        touched = Touched(batch)
        yield from touched.load(fold)
        known_chains, known = set(fold.chains), set(fold.memories)
        for recorded in batch:
            fold.apply(recorded)
        yield from changes_of(fold, known_chains, known, touched.confirmed_by)
