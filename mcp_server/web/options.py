"""How the server is asked to listen, read and checked before anything is imported or started."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from ledger.errors import LedgerError
from mcp_server.web.tokens import TOKENS_VARIABLE, Tokens, tokens_of_file

HOST, PORT, PATH = "127.0.0.1", 8765, "/mcp"
HEALTHZ, READYZ, METRICS = "/healthz", "/readyz", "/metrics"


class HttpOptionError(LedgerError):
    """An option of ``serve --transport http`` makes no sense."""


@dataclass(frozen=True)
class HttpOptions:
    """How ``serve`` listens."""

    host: str = HOST
    port: int = PORT
    path: str = PATH
    allowed_hosts: tuple[str, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    # Sessions of the older protocol, in which a server may ask its client.  No tool of ours does,
    # so no command line sets it: the conformance tests do.
    sessions: bool = False

    @classmethod
    def read(
        cls,
        environ: MutableMapping[str, str],
        *,
        host: str,
        port: int,
        path: str,
        allowed_hosts: Sequence[str],
        tokens_file: Path | None,
    ) -> Self:
        """The options of a command line, and the tokens of its file or else of *environ*.

        The tokens are taken out of *environ*, which other processes are started with.  Raises
        HttpOptionError and TokensError.
        """
        if (
            not path.startswith("/")
            or path in (HEALTHZ, READYZ, METRICS)
            or set(path) & set("{}?#")
        ):
            raise HttpOptionError(f"--path {path!r} cannot be served; it looks like /mcp")
        for name in allowed_hosts:
            if not _is_host(name):
                raise HttpOptionError(
                    f"--allowed-host {name!r} is no host; it looks like example.com or "
                    "example.com:8443"
                )
        return cls(host, port, path, tuple(allowed_hosts), _tokens(environ, tokens_file))


def _tokens(environ: MutableMapping[str, str], file: Path | None) -> Tokens:
    # Empty is not absent: who sets it means to have tokens, and must not end up without.
    given = environ.pop(TOKENS_VARIABLE, None)
    if file is not None:
        return tokens_of_file(file)
    return Tokens() if given is None else Tokens.read(given, f"${TOKENS_VARIABLE}")


def _is_host(text: str) -> bool:
    try:
        split = urlsplit(f"//{text}")
        return split.netloc == text and bool(split.hostname) and split.port != 0 and "@" not in text
    except ValueError:
        return False
