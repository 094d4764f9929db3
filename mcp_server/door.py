"""Who may come in: the callers of a server, what they may do, and what became of their calls."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ledger.errors import LedgerError

READ, WRITE, ADMIN = "read", "write", "admin"
SCOPES = frozenset({READ, WRITE, ADMIN})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the name of a token, None when nobody was asked for one."""

    name: str | None
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Whether the caller has the scope; who has ``admin`` has them all."""
        return scope in self.scopes or ADMIN in self.scopes


ANYBODY = Caller(None, SCOPES)


class Door(Protocol):
    """What the server asks a transport about a call, and tells it afterwards.

    ``keeps_connections``: a client stays on one connection, over which it can be told things.
    """

    keeps_connections: ClassVar[bool]

    def caller(self, request: Any) -> Caller:
        """Who made this call.  *request* is what the transport knows of it, None over stdio."""
        ...

    def took(self, tool: str, outcome: str, seconds: float) -> None:
        """A call was answered; *outcome* is answered, refused or failed."""
        ...

    def told(self, error: LedgerError) -> LedgerError:
        """What the caller is to know of an error, which may speak of this machine."""
        ...


class OpenDoor(Door):
    """The door of stdio: who started the process may do everything, and nobody counts."""

    keeps_connections = True

    def caller(self, request: Any) -> Caller:  # noqa: ARG002 - there is nothing to ask
        return ANYBODY

    def took(self, tool: str, outcome: str, seconds: float) -> None:
        pass

    def told(self, error: LedgerError) -> LedgerError:
        return error
