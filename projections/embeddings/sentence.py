"""Models of sentence-transformers: the only module that imports it, and torch."""

import hashlib
import logging
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

import huggingface_hub
from huggingface_hub.errors import LocalEntryNotFoundError
from sentence_transformers import SentenceTransformer
from transformers.utils import logging as transformers_logging

from projections.embeddings.choice import name_of, packaged
from projections.embeddings.errors import ModelMissingError
from projections.embeddings.model import Identity, Vector

WEIGHTS = ("*.safetensors", "*.bin")
# What decides, besides the weights, what a text becomes.  Notes on a model do not.
SETTINGS = (
    "modules.json",
    "config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "*/config.json",
)
NOWHERE = "it is no directory and in no cache, and the hub that has models cannot be reached"
CHUNK_BYTES = 2**20
# No model here reads more of a text; taking a longer one apart takes long.
TEXT_CHARACTERS_MAX = 16_384


class SentenceModel:
    """Loaded on the processor; its vectors have length 1."""

    def __init__(self, source: str) -> None:
        """Raises ModelMissingError."""
        _be_quiet()
        self.source = source
        try:
            directory = _directory(source)
            self._model = SentenceTransformer(str(directory), device="cpu", local_files_only=True)
            dimensions = self._model.get_embedding_dimension()
        except ModelMissingError:
            raise
        except LocalEntryNotFoundError as error:
            raise ModelMissingError(source, NOWHERE) from error
        # The libraries raise what they please when files are missing or not what they should be.
        except Exception as error:
            raise ModelMissingError(source, _first_line(error)) from error
        if dimensions is None:
            raise ModelMissingError(source, "it does not say how many dimensions it has")
        self.identity = Identity(
            model=name_of(source),
            revision=_digest(directory),
            dimensions=dimensions,
            normalised=True,
        )

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        # Normalised whatever its modules do: some packages leave that one out.
        found = cast("Callable[..., Sequence[_Row]]", self._model.encode)(
            [text.strip()[:TEXT_CHARACTERS_MAX] for text in texts],
            batch_size=len(texts),
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return [array("f", row.astype("float32").tobytes()) for row in found]


class _Row(Protocol):
    """What we ask of numpy."""

    def astype(self, kind: str, /) -> "_Row": ...

    def tobytes(self) -> bytes: ...


def _directory(source: str) -> Path:
    """Where the files are; those of a name come from a package, the hub's cache or the network."""
    path = packaged(source) or Path(source).expanduser()
    if path.is_dir():
        return path
    if source.startswith(("/", ".", "~")):
        raise ModelMissingError(source, "there is no such directory")
    patterns = [*SETTINGS, "*.txt", "*.model", WEIGHTS[0]]
    directory = _download(source, patterns)
    if not any(directory.glob(WEIGHTS[0])):
        directory = _download(source, [*patterns, WEIGHTS[1]])
    return directory


def _download(name: str, patterns: list[str]) -> Path:
    download = cast("Callable[..., str]", huggingface_hub.snapshot_download)
    return Path(download(name, allow_patterns=patterns))


def _digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in _deciding(directory):
        digest.update(f"{path.relative_to(directory).as_posix()}\0".encode())
        digest.update(f"{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _deciding(directory: Path) -> Iterator[Path]:
    weights = sorted(directory.glob(WEIGHTS[0])) or sorted(directory.glob(WEIGHTS[1]))
    settings = {path for pattern in SETTINGS for path in directory.glob(pattern)}
    yield from sorted({*weights, *settings})


def _be_quiet() -> None:
    """Keep libraries from writing notes and progress bars where operators read."""
    warnings.simplefilter("ignore")
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    for name in ("sentence_transformers", "huggingface_hub", "transformers", "httpx", "httpx2"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:300]}" if text else type(error).__name__
