"""How texts are cut into batches for a model: alike in length, and each done in a moment."""

from collections.abc import Iterator, Sequence

# Measured with all-MiniLM-L6-v2 on two cores; see docs/operations-embeddings.md.
BATCH_TEXTS_MAX = 16
# A batch is padded to its longest text, of which a model reads so much.
TEXT_CHARACTERS_READ = 1_100
BATCH_CHARACTERS_MAX = 6_600
BATCH_CHARACTERS_MIN = 500
# Questions wait for the batch that runs, which takes half of this on a quiet machine.
BATCH_SECONDS_MAX = 0.4


def cut(texts: Sequence[str], characters_max: int) -> Iterator[list[str]]:
    """All *texts*, the shortest first; each batch of so many characters, or of one text."""
    batch: list[str] = []
    for text in sorted(texts, key=len):
        # The longest so far, which all are padded to.
        characters = min(len(text), TEXT_CHARACTERS_READ)
        if batch and (
            len(batch) == BATCH_TEXTS_MAX or (len(batch) + 1) * characters > characters_max
        ):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


class Pace:
    """How many characters go into a batch, so that it is done in BATCH_SECONDS_MAX here."""

    def __init__(self) -> None:
        self.characters_max = BATCH_CHARACTERS_MAX

    def took(self, seconds: float) -> None:
        """A batch was done in so long."""
        if seconds > BATCH_SECONDS_MAX:
            self.characters_max = max(self.characters_max // 2, BATCH_CHARACTERS_MIN)
        else:
            more = self.characters_max + self.characters_max // 4
            self.characters_max = min(more, BATCH_CHARACTERS_MAX)
