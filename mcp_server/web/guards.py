"""What stands before every route: which names this server answers to, and who may come in.

A page in a browser can send requests to any address, also to one of this machine under a name of
its own (DNS rebinding): so Host and Origin must be names that are ours.
"""

from collections.abc import Callable, Iterable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.door import ANYBODY, READ, WRITE, Caller
from mcp_server.web.tokens import Tokens

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
CALLER_KEY = "thought_ledger.caller"
REALM = 'Bearer realm="thought-ledger"'

# Told of each request that is turned away: its status.
OnRefused = Callable[[int], None]


class NamesGuard:
    """Lets requests in whose Host, and whose Origin if they have one, is one of *names*.

    A name without a port stands for all ports.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str], on_refused: OnRefused) -> None:
        self._app = app
        self._names = frozenset(map(_normal, names))
        self._on_refused = on_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        self._on_refused(refusal.status_code)
        await refusal(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return _sentence(
                421, "this server does not answer to this Host; --allowed-host adds a name"
            )
        for origin in headers.getlist("origin"):
            scheme, separator, host = origin.partition("://")
            if not separator or scheme not in ("http", "https") or not self._is_ours(host):
                return _sentence(
                    403, "this server takes no requests from this Origin; --allowed-host adds one"
                )
        return None

    def _is_ours(self, host: str) -> bool:
        host = _normal(host)
        return host in self._names or _without_port(host) in self._names


class TokensGuard:
    """Asks for a bearer token on every path but the open ones, and says in the scope whose it is.

    *needed*: the scopes of which a path needs one; a path that is not named needs read or write.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        *,
        open_paths: Iterable[str],
        needed: dict[str, tuple[str, ...]],
        on_refused: OnRefused,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._open_paths = frozenset(open_paths)
        self._needed = needed
        self._on_refused = on_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None
        if scope["type"] == "http" and self._tokens and scope["path"] not in self._open_paths:
            refusal = self._admit(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        self._on_refused(refusal.status_code)
        await refusal(scope, receive, send)

    def _admit(self, scope: Scope) -> Response | None:
        """Note in the scope whose token it is, or say why it is not let in."""
        given = Headers(scope=scope).getlist("authorization")
        scheme, _, token = given[0].strip().partition(" ") if given else ("", "", "")
        if len(given) != 1 or scheme.lower() != "bearer":
            return _sentence(401, "send a token: Authorization: Bearer TOKEN", REALM)
        # The header came as Latin-1, whatever its bytes were.
        caller = self._tokens.caller(token.strip().encode("latin-1"))
        if caller is None:
            return _sentence(401, "this token is not known here", f'{REALM}, error="invalid_token"')
        needed = self._needed.get(scope["path"], (READ, WRITE))
        if not any(map(caller.may, needed)):
            return _sentence(
                403,
                f"this token lacks the scope {' or '.join(needed)}",
                f'{REALM}, error="insufficient_scope", scope="{needed[0]}"',
            )
        scope[CALLER_KEY] = caller
        return None


def caller_of(scope: Scope) -> Caller:
    """Who sent the request of this scope; anybody, when no tokens are asked for."""
    return scope.get(CALLER_KEY, ANYBODY)


def _normal(host: str) -> str:
    return host.strip().lower()


def _without_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    # An IPv6 address has colons of its own, inside its brackets.
    return name if separator and port.isdecimal() and not host.endswith("]") else host


def _sentence(status: int, text: str, challenge: str | None = None) -> Response:
    headers = {"WWW-Authenticate": challenge} if challenge else None
    return PlainTextResponse(f"{text}\n", status, headers)
