"""A model that needs no weights: hashed words and parts of words, for tests and small machines.

Texts that share words have similar vectors.  It knows nothing of meaning.
"""

import hashlib
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ledger.settings import DIMENSIONS_MAX
from projections.embeddings.errors import ModelUnknownError
from projections.embeddings.model import Identity, Vector
from projections.normal import nfkc

PREFIX = "hashing:"
# Of what follows; another number is another space.
VERSION = 1
WORDS = re.compile(r"\w+")
PART_CHARACTERS = 3
PART_WEIGHT = 0.3
# The longest text takes some tens of milliseconds so.
TEXT_CHARACTERS_MAX = 16_384
FEATURES_CACHED_MAX = 50_000


class HashingModel:
    """Deterministic, on every machine and in every process."""

    def __init__(self, dimensions: int) -> None:
        self.source = f"{PREFIX}{dimensions}"
        self.identity = Identity(
            model=self.source,
            revision=hashlib.sha256(f"hashing {VERSION}".encode()).hexdigest(),
            dimensions=dimensions,
            normalised=True,
        )

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> Vector:
        dimensions = self.identity.dimensions
        sums = [0.0] * dimensions
        for feature, weight in _features(text).items():
            number = _number(feature)
            sums[(number >> 1) % dimensions] += weight if number & 1 else -weight
        length = math.sqrt(sum(value * value for value in sums))
        if length == 0.0:
            # Two features took each other away.
            sums[0] = length = 1.0
        return array("f", [value / length for value in sums])


def hashing_model(source: str) -> HashingModel:
    """The model that ``hashing:D`` names.  Raises ModelUnknownError."""
    text = source.removeprefix(PREFIX)
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= DIMENSIONS_MAX:
        raise ModelUnknownError(
            source, f"after {PREFIX} comes the number of dimensions, from 1 to {DIMENSIONS_MAX}"
        )
    return HashingModel(number)


def _features(text: str) -> Counter[str]:
    plain = nfkc(text[:TEXT_CHARACTERS_MAX]).lower()
    features: Counter[str] = Counter()
    for word in WORDS.findall(plain):
        features[word] += 1
        for part in _parts(word):
            features[part] += PART_WEIGHT  # pyright: ignore[reportArgumentType] whole in typeshed
    # A text of signs alone has a direction too.
    return features or Counter(plain)


def _parts(word: str) -> Iterator[str]:
    # A word's end is told from its middle, and a part from a word.
    marked = f"<{word}>"
    for start in range(len(marked) - PART_CHARACTERS + 1):
        yield f"/{marked[start : start + PART_CHARACTERS]}"


@lru_cache(FEATURES_CACHED_MAX)
def _number(feature: str) -> int:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
