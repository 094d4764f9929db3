"""Bearer tokens: who may come in over HTTP, from a file or the environment.

One token a line: its name, its scopes joined by commas, and the token itself or the SHA-256 of it.

    alice  read,write  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"""

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ledger.errors import LedgerError
from mcp_server.door import SCOPES, Caller

TOKENS_VARIABLE = "THOUGHT_LEDGER_TOKENS"
FILE_BYTES_MAX = 2**20
TOKEN_CHARACTERS_MIN = 12
# Ids of up to 255 characters are made of it.
NAME_CHARACTERS_MAX = 200
# Anything for others, and writing for the group.
MODE_FORBIDDEN = stat.S_IRWXO | stat.S_IWGRP
HASHED = re.compile(r"sha256:([0-9a-fA-F]{64})")


class TokensError(LedgerError):
    """The tokens cannot be read or trusted."""


@dataclass(frozen=True)
class Tokens:
    """The tokens that are let in, by the SHA-256 of each; none of them is kept itself."""

    callers: tuple[tuple[bytes, Caller], ...] = ()

    @classmethod
    def read(cls, text: str, where: str) -> Self:
        """Read lines of tokens; *where* is what an error calls them.  Raises TokensError."""
        lines = enumerate((line.split() for line in text.splitlines()), start=1)
        callers = [
            _token(words, f"line {number} of {where}")
            for number, words in lines
            if words and not words[0].startswith("#")
        ]
        if not callers:
            raise TokensError(f"{where} has no token; write one a line: NAME SCOPES TOKEN")
        if len({digest for digest, _ in callers}) < len(callers):
            raise TokensError(f"{where} has the same token twice; give every name its own")
        return cls(tuple(callers))

    def __bool__(self) -> bool:
        return bool(self.callers)

    def caller(self, token: bytes) -> Caller | None:
        """Whose token this is.  It takes as long whichever it is, and if it is none."""
        presented = hashlib.sha256(token).digest()
        found = None
        for digest, caller in self.callers:
            if hmac.compare_digest(digest, presented):
                found = caller
        return found


def tokens_of_file(path: Path) -> Tokens:
    """The tokens of a file that is for its owner alone to read.  Raises TokensError."""
    try:
        with path.open(encoding="utf-8") as file:
            # Of what was opened, not of what may have taken its name since.
            mode = os.fstat(file.fileno()).st_mode
            if mode & MODE_FORBIDDEN:
                raise TokensError(
                    f"others may read or change {path} (mode {stat.S_IMODE(mode):o}); "
                    f"run `chmod 600 {path}`"
                )
            return Tokens.read(file.read(FILE_BYTES_MAX), str(path))
    except OSError as error:
        raise TokensError(f"cannot read the tokens of {path} ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise TokensError(f"{path} is not a text file of tokens") from error


def _token(words: list[str], where: str) -> tuple[bytes, Caller]:
    # Never the words themselves: one of them is a secret, and which one is not sure here.
    if len(words) != 3:
        raise TokensError(f"{where} is not NAME SCOPES TOKEN; scopes are joined by commas alone")
    name, scopes, token = words
    if len(name) > NAME_CHARACTERS_MAX:
        raise TokensError(f"{where}: a name has at most {NAME_CHARACTERS_MAX} characters")
    return _digest(token, where), Caller(name, _scopes(scopes.split(","), where))


def _scopes(names: Iterable[str], where: str) -> frozenset[str]:
    scopes = frozenset(names)
    if not scopes <= SCOPES:
        raise TokensError(f"{where}: the scopes are read, write and admin, joined by commas")
    return scopes


def _digest(token: str, where: str) -> bytes:
    if not token.startswith("sha256:"):
        if len(token) < TOKEN_CHARACTERS_MIN:
            raise TokensError(
                f"{where}: a token has at least {TOKEN_CHARACTERS_MIN} characters; "
                "`openssl rand -hex 32` makes one"
            )
        return hashlib.sha256(token.encode()).digest()
    hashed = HASHED.fullmatch(token)
    if hashed is None:
        raise TokensError(f"{where}: sha256: is followed by 64 hexadecimal digits")
    return bytes.fromhex(hashed[1])
