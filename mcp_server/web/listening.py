"""The socket the server listens on, and who may be able to reach it."""

import ipaddress
import socket
from collections.abc import Sequence

from ledger.errors import LedgerError
from mcp_server.web.guards import LOOPBACK_NAMES
from mcp_server.web.tokens import Tokens

BACKLOG = 1_024


class ListenError(LedgerError):
    """The address cannot be listened on."""


class UnguardedError(LedgerError):
    """Others could reach the server, and it would ask nobody who they are."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"others can reach {host}, so it needs tokens: name a file with --tokens-file, "
            "or listen on 127.0.0.1"
        )
        self.host = host


def listen(host: str, port: int, tokens: Tokens) -> socket.socket:
    """A listening socket.  Raises ListenError, and UnguardedError without tokens off loopback."""
    family, address = _resolve(host, port)
    if not tokens and not ipaddress.ip_address(address[0]).is_loopback:
        raise UnguardedError(host)
    # With the protocol named asyncio sets TCP_NODELAY, or each answer in two parts takes 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ListenError(
            f"cannot listen on {host} port {port} ({error.strerror}); "
            "choose another with --host and --port"
        ) from error
    return listening


def url_of(listening: socket.socket, path: str) -> str:
    """Where a client finds it."""
    address, port = listening.getsockname()[:2]
    return f"http://{_bracketed(address)}:{port}{path}"


def names_of(listening: socket.socket, allowed: Sequence[str]) -> list[str]:
    """The names it answers to: its own address, loopback's where that leads here, and *allowed*."""
    address = listening.getsockname()[0]
    read = ipaddress.ip_address(address)
    loopback = LOOPBACK_NAMES if read.is_loopback or read.is_unspecified else ()
    return [_bracketed(address), *loopback, *allowed]


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not host:
        raise ListenError("--host is empty; 127.0.0.1 is for this machine alone")
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ListenError(
            f"there is no address for {host!r} ({getattr(error, 'strerror', None) or 'unknown'}); "
            "choose another with --host"
        ) from error
    # localhost is both ::1 and 127.0.0.1, and most clients mean the second.
    found.sort(key=lambda entry: entry[0] is not socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, (str(address[0]), port)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
