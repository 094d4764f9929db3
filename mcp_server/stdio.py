"""The stdio transport: one client on this process's stdin and stdout, served on the event loop.

The SDK's own transport hops to a thread three times a message, hangs on Ctrl-C, drops a line it
cannot read without a word, and lives on when the client has stopped reading.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from ledger.said import Said
from mcp_server.frames import Refusal, encode_message, read_frame
from mcp_server.pipes import InputPipe, OutputPipe
from mcp_server.wire import Wire, claim_stdout

__all__ = ["StdioConnection", "Wire", "claim_stdout", "end_stuck_process", "serve_stdio"]

IN_FLIGHT_MAX = 1_000

# How long calls in flight may go on after the end of input, and how long their answers may take to
# be read.  A client that closes a pipe soon loses patience; a file says nothing about its reader.
PIPE_GRACE_SECONDS = 0.5
FILE_GRACE_SECONDS = 30.0

# What is being recorded when the end comes is waited for; but a database that hangs must not keep
# a process for ever that nobody talks to any more.  A first start takes seconds on a busy machine.
STUCK_SECONDS_MAX = 10.0
STUCK_EXIT_CODE = 2

logger = logging.getLogger("thought-ledger")


async def serve_stdio(server: Server[Any], wire: Wire | None = None) -> None:
    """Serve one client until it closes its end or SIGINT, SIGTERM or SIGHUP arrives.

    What is shielded from cancellation is finished and answered first.  Without *wire*, stdin and
    stdout are claimed here.
    """
    connection = StdioConnection(wire or claim_stdout())
    options = server.create_initialization_options(NotificationOptions())
    with _signals_ending(connection):
        try:
            await server.run(connection, connection, options)
        finally:
            await connection.finish()


class StdioConnection:
    """Both streams of the SDK's session over the wire.

    It stays open for answers when the session closes the reading side; ``finish`` ends it.
    """

    def __init__(self, wire: Wire) -> None:
        self._grace_seconds = PIPE_GRACE_SECONDS
        self._hurried = False
        self._in_flight = 0
        self._settled = asyncio.Event()
        self._output = OutputPipe(wire.output_fd, wire.input_fd, on_closed=self.end)
        self._input = InputPipe(wire.input_fd, on_end=self._hurry_soon)
        if self._input.is_file:
            self._grace_seconds = FILE_GRACE_SECONDS
        # Tells of requests that end without an answer, which a client's cancellation causes.
        self._metadata = ServerMessageMetadata(on_request_unanswered=self._settle_unanswered)

    async def receive(self) -> SessionMessage:
        """The client's next message; lines that are none are answered on the way."""
        while True:
            await self._wait_until_in_flight(IN_FLIGHT_MAX - 1)
            # A client that does not read its answers is not asked for more questions.
            await self._output.wait_for_room()
            line = await self._input.next_line()
            if line is None:
                await self._wait_until_in_flight(0)
                raise anyio.EndOfStream
            frame = read_frame(line)
            if isinstance(frame, JSONRPCRequest):
                self._in_flight += 1
                return SessionMessage(frame, self._metadata)
            if isinstance(frame, Refusal):
                with suppress(anyio.BrokenResourceError):
                    await self._output.write(frame.encode())
            elif frame is not None:
                return SessionMessage(frame)

    async def send(self, item: SessionMessage, /) -> None:
        line = encode_message(item.message)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._settle()
        await self._output.write(line)

    def end(self) -> None:
        """End the connection as if the client had closed it, without grace for calls in flight."""
        self._grace_seconds = PIPE_GRACE_SECONDS
        self._input.end()
        self._hurry()

    async def finish(self) -> None:
        """Let go of the wire, when the client has taken what was written or takes too long."""
        self._input.end()
        with anyio.move_on_after(self._grace_seconds, shield=True):
            await self._output.flush()
        self._output.close()

    async def aclose(self) -> None:
        """Nothing: answers may still be due when the session is done with reading."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def _wait_until_in_flight(self, at_most: int) -> None:
        while self._in_flight > at_most and not self._hurried:
            self._settled.clear()
            await self._settled.wait()

    def _hurry_soon(self) -> None:
        asyncio.get_running_loop().call_later(self._grace_seconds, self._hurry)

    def _hurry(self) -> None:
        if not self._hurried:
            asyncio.get_running_loop().call_later(STUCK_SECONDS_MAX, end_stuck_process)
        self._hurried = True
        self._output.hurry()
        self._settled.set()

    def _settle(self) -> None:
        self._in_flight -= 1
        self._settled.set()

    async def _settle_unanswered(self) -> None:
        self._settle()


def end_stuck_process() -> None:
    """End this process now, with what is in flight."""
    logger.error(
        Said(
            "the database does not answer: ended, and what was in flight may be recorded",
            event="stuck",
        )
    )
    os._exit(STUCK_EXIT_CODE)


@contextmanager
def _signals_ending(connection: StdioConnection) -> Generator[None]:
    if sys.platform == "win32":
        yield  # Ctrl-C cancels the main task there, which ends the connection just as well
        return
    loop = asyncio.get_running_loop()
    caught = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks us to stay
        caught.append(signal.SIGHUP)
    for number in caught:
        loop.add_signal_handler(number, connection.end)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
