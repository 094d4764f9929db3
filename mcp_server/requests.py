"""What requests have in common that are no tool calls: who asks, and what an error becomes."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, PaginatedRequestParams

from ledger.errors import LedgerError
from ledger.header import Context
from ledger.limits import recordable_name
from ledger.said import Said
from mcp_server.door import READ, Caller, Door
from mcp_server.inputs import InputError
from mcp_server.source import LedgerSource

Request = ServerRequestContext[Any]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Requests:
    """Where requests come in and what they ask about.

    *actor* is who asks where the door knows no name; by default the client's.
    """

    source: LedgerSource
    door: Door
    actor: str | None = None

    @contextmanager
    def reading(self, request: Request) -> Generator[Context]:
        """Answer a request that reads: everything that goes wrong in it becomes an MCPError.

        The SDK would send a client whatever an exception says.
        """
        caller = self.door.caller(request.request)
        if not caller.may(READ):
            raise MCPError(
                INVALID_PARAMS,
                f"the token {caller.name} may not read, which needs the scope {READ}; "
                "use a token that has it",
            )
        try:
            yield context_of(request, caller, self.actor)
        except MCPError:
            raise
        except InputError as refusal:
            raise MCPError(INVALID_PARAMS, str(refusal)) from None
        except LedgerError as refusal:
            raise MCPError(INTERNAL_ERROR, str(self.door.told(refusal))) from None
        except Exception:
            error_id = uuid4().hex[:8]
            logger.exception(
                Said(
                    f"error {error_id} in {request.method}",
                    event="call_failed",
                    error_id=error_id,
                    method=request.method,
                )
            )
            raise MCPError(
                INTERNAL_ERROR, f"this server failed (error {error_id}, see its stderr)"
            ) from None


def context_of(
    request: Request, caller: Caller, actor: str | None, request_id: str | None = None
) -> Context:
    """Who asks, and with which client; *actor* where the door knows no name."""
    said = request.session.client_params
    client = recordable_name(said.client_info.name) if said else None
    client_version = recordable_name(said.client_info.version) if said else None
    return Context(
        actor=caller.name or actor or client or "agent",
        principal=caller.name,
        client=client,
        client_version=client_version,
        request_id=request_id,
    )


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Refuse a cursor where there is one page.  Raises MCPError."""
    if params is not None and params.cursor is not None:
        raise CursorError


class CursorError(MCPError):
    """A cursor that no answer of ours has named."""

    def __init__(self) -> None:
        super().__init__(
            INVALID_PARAMS,
            "the cursor is none of ours; leave it out, or send the nextCursor of an answer",
        )
