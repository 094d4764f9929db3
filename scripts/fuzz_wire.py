"""The server that ``scripts/fuzz`` shoots at, and the way to it over stdio."""

import asyncio
import json
import re
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any, Protocol

from fuzz_calls import Maker, Shot
from fuzz_judge import Recorded, ViolationError, Volley, shown
from fuzz_values import MIB

LEGACY = "2025-11-25"
ANSWER_SECONDS_MAX = 60
END_SECONDS_MAX = 20
LINE_BYTES_MAX = 64 * MIB
CLIENT = {"name": "fuzz", "version": "1"}
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}


class Target(Protocol):
    """A server that is being shot at."""

    stderr: list[str]

    @property
    def process(self) -> Process: ...

    async def start(self, command: list[str]) -> None:
        """Start the server.  Raises ViolationError."""
        ...

    async def kill(self) -> None:
        """Leave nothing of it behind."""
        ...

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a good request.  Raises ViolationError."""
        ...

    async def fire(
        self, shots: list[Shot], maker: Maker, recorded: Recorded, *, fair: bool = False
    ) -> None:
        """Send shots and wait for all answers that have to come.  Raises ViolationError.

        *fair*: the transport is used as it should be.
        """
        ...

    async def end(self) -> int:
        """End the server; its exit code."""
        ...


class ServerProcess:
    """The process, and what it says on stderr."""

    def __init__(self) -> None:
        self.stderr: list[str] = []
        self._process: Process | None = None
        self._asked = 0
        self.listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def started(self, process: Process) -> None:
        self._process = process
        self._reading = asyncio.create_task(self._read_stderr())

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.stderr.append(line.decode(errors="replace"))
            found = re.search(r"listening on http://[^/]*:(\d+)", self.stderr[-1])
            if found and not self.listening.done():
                self.listening.set_result(found[1])
        if not self.listening.done():
            self.listening.set_exception(ViolationError("it ended before it listened"))
            self.listening.exception()  # read, as nobody may ask

    async def ended(self) -> int:
        code = await asyncio.wait_for(self.process.wait(), END_SECONDS_MAX)
        if self._reading is not None:
            await self._reading
        return code

    def good(self, method: str, params: dict[str, Any]) -> Shot:
        self._asked += 1
        request_id = f"good-{self._asked}"
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return Shot("good", json.dumps(message).encode(), "one", request_id, method=method)


class StdioTarget(ServerProcess):
    """A server on pipes."""

    def __init__(self) -> None:
        super().__init__()
        self._late = 0
        self._strays: list[dict[str, Any]] = []

    async def start(self, command: list[str]) -> None:
        self.started(
            await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=LINE_BYTES_MAX
            )
        )
        await self.ask("initialize", HELLO)
        await self._send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        shot = self.good(method, params)
        await self._send(shot.content)
        message = await self._receive([shot])
        while self._late and message.get("id") != shot.request_id:
            self._late -= 1
            self._strays.append(message)
            message = await self._receive([shot])
        if message.get("id") != shot.request_id or "result" not in message:
            raise ViolationError(f"no answer to a good call: {shown(message)}")
        return message["result"]

    async def fire(
        self,
        shots: list[Shot],
        maker: Maker,
        recorded: Recorded,
        *,
        fair: bool = False,  # noqa: ARG002 - a line is a line
    ) -> None:
        while self._strays:
            maker.learn(recorded.take(None, self._strays.pop()))
        volley = Volley(shots, self._late)
        sending = asyncio.create_task(self._send_all(shots))
        try:
            while volley.waiting:
                message = await self._receive(shots, volley)
                shot = volley.take(message)
                maker.learn(recorded.take(shot, message))
            await sending
            self._late = volley.maybe
        finally:
            sending.cancel()

    async def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.ended()

    async def _send_all(self, shots: list[Shot]) -> None:
        for shot in shots:
            await self._send(shot.content)

    async def _send(self, content: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(content.replace(b"\n", b" ") + b"\n")
        await self.process.stdin.drain()

    async def _receive(self, shots: list[Shot], volley: Volley | None = None) -> dict[str, Any]:
        assert self.process.stdout is not None
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), ANSWER_SECONDS_MAX)
        except TimeoutError:
            waiting = shots if volley is None else volley.unanswered()
            raise ViolationError(f"no answer to {len(waiting)} of {shown(waiting)}") from None
        if not line:
            raise ViolationError(f"the server is gone, among {shown(shots)}")
        try:
            return json.loads(line)
        except ValueError:
            raise ViolationError(f"a line that is no JSON: {shown(line)}") from None


def resident_mib(process: Process) -> float:
    """The memory a process has now."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
