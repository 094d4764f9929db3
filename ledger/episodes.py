"""Episodes: chains that are found by their names, in a session, instead of by an id."""

from dataclasses import dataclass
from uuid import UUID, uuid5

import orjson

from ledger.aggregate import ThoughtChain
from ledger.commands import title_of

EPISODE_NAMESPACE = UUID("c1b7a1f4-33f5-5d0c-8a8e-5c0e4a6f2d90")


@dataclass(frozen=True, slots=True)
class Episode:
    """One chain of a session, under the name its author gave it.

    Its id is made of its names, so whoever knows them finds it again, also after a restart, and of
    two processes that begin it at once one is refused and goes on with the chain of the other.
    ``source`` says whose names they are: two tools may use one name for two chains.
    """

    tenant: str
    session_id: str
    source: str
    name: str

    @property
    def chain_id(self) -> UUID:
        names = [self.tenant, self.session_id, self.source, self.name]
        return uuid5(EPISODE_NAMESPACE, orjson.dumps(names).decode())

    def start(self, first_text: str) -> ThoughtChain:
        """The chain at its beginning, titled by its first thought."""
        return ThoughtChain.start(
            self.chain_id,
            title=title_of(first_text),
            session_id=self.session_id,
            source=self.source,
            metadata=orjson.dumps({"episode": self.name}).decode(),
        )
