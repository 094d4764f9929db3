"""Bytes from and to the client on the event loop: no thread hops, and nothing unbounded."""

import asyncio
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable

import anyio

from mcp_server.frames import LineSplitter, Oversized

READ_BYTES = 256 * 2**10
QUEUED_BYTES_MAX = 2**20
UNWRITTEN_BYTES_MAX = 2**20


class InputPipe:
    """The lines a client sends, in order; reading pauses while many of them wait."""

    def __init__(self, fd: int, on_end: Callable[[], object]) -> None:
        self._fd = fd
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._splitter = LineSplitter()
        self._lines: deque[bytes | Oversized] = deque()
        self._queued_bytes = 0
        self._paused = True
        self._ended = False
        self._arrived = asyncio.Event()
        self._go = threading.Event()
        self._threaded = False
        self._resume()

    @property
    def is_file(self) -> bool:
        """Whether the end of the input says nothing about the client still listening."""
        return stat.S_ISREG(os.fstat(self._fd).st_mode)

    async def next_line(self) -> bytes | Oversized | None:
        """The next line, or None when there will be none."""
        while not self._lines:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._lines.popleft()
        self._queued_bytes -= _queued_size(line)
        if self._paused and self._queued_bytes < QUEUED_BYTES_MAX and not self._ended:
            self._resume()
        return line

    def end(self) -> None:
        """Stop reading, and forget the lines nobody has asked for."""
        self._lines.clear()
        self._queued_bytes = 0
        if not self._ended:
            self._finish()

    def _finish(self) -> None:
        self._ended = True
        self._pause()
        self._arrived.set()
        self._on_end()

    def _resume(self) -> None:
        self._paused = False
        if not self._threaded:
            try:
                self._loop.add_reader(self._fd, self._on_readable)
            except (OSError, NotImplementedError):
                # Regular files, and every descriptor on Windows, cannot be polled.
                self._threaded = True
                threading.Thread(target=self._read_in_thread, daemon=True).start()
        self._go.set()

    def _pause(self) -> None:
        if not self._paused and not self._threaded:
            self._loop.remove_reader(self._fd)
        self._paused = True
        self._go.clear()

    def _read_in_thread(self) -> None:
        # A daemon: it may be blocked in a read for ever, and must not keep the process alive.
        while self._go.wait():
            self._go.clear()
            chunk = self._read()
            try:
                self._loop.call_soon_threadsafe(self._accept, chunk)
            except RuntimeError:  # the loop is closed
                return
            if not chunk:
                return

    def _on_readable(self) -> None:
        try:
            self._accept(self._read())
        except BlockingIOError:
            return

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            raise
        except OSError:
            return b""  # a reset connection or a vanished terminal is an end like any other

    def _accept(self, chunk: bytes) -> None:
        if self._ended:
            return
        lines = self._splitter.feed(chunk) if chunk else iter([self._splitter.finish()])
        for line in lines:
            self._lines.append(line)
            self._queued_bytes += _queued_size(line)
        if not chunk:
            self._finish()
        elif self._queued_bytes >= QUEUED_BYTES_MAX:
            self._pause()
        else:
            self._go.set()
        self._arrived.set()


def _queued_size(line: bytes | Oversized) -> int:
    return len(line) + 1 if isinstance(line, bytes) else len(line.head)


class OutputPipe:
    """What goes to the client; a writer waits while the client does not read."""

    def __init__(self, fd: int, input_fd: int, on_closed: Callable[[], object]) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._on_closed = on_closed
        self._unwritten = bytearray()
        self._room = asyncio.Event()
        self._hurried = False
        self._closed = False
        self._polled = sys.platform != "win32" and _is_pipe_or_socket(fd)
        if self._polled:
            os.set_blocking(fd, False)
            # On one socket for both directions the client's messages would ring this bell, and
            # the input sees the end anyway.
            if not os.path.sameopenfile(fd, input_fd):
                self._loop.add_reader(fd, self._on_event)

    async def write(self, line: bytes) -> None:
        """Write a line, or leave it to the event loop.

        Raises anyio.BrokenResourceError when the client reads no more.
        """
        await self.wait_for_room()
        if self._closed:
            raise anyio.BrokenResourceError
        self._unwritten += line
        if len(self._unwritten) == len(line):
            self._write_on()

    async def wait_for_room(self) -> None:
        """Wait while much is unwritten, unless the connection is ending."""
        while len(self._unwritten) > UNWRITTEN_BYTES_MAX and not self._hurried:
            self._room.clear()
            await self._room.wait()

    def hurry(self) -> None:
        """From now on take what is written without waiting: the connection is ending."""
        self._hurried = True
        self._room.set()

    async def flush(self) -> None:
        while self._unwritten and not self._closed:
            self._room.clear()
            await self._room.wait()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._unwritten.clear()
        self._room.set()
        if self._polled:
            self._loop.remove_writer(self._fd)
            self._loop.remove_reader(self._fd)
            # The open file may be shared with a shell, which expects it as it was.
            os.set_blocking(self._fd, True)

    def _write_on(self) -> None:
        try:
            while self._unwritten:
                del self._unwritten[: os.write(self._fd, self._unwritten)]
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._on_writable)
        except OSError:
            self._lose()
        if len(self._unwritten) <= UNWRITTEN_BYTES_MAX // 2:
            self._room.set()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._fd)
        self._write_on()

    def _on_event(self) -> None:
        """Learn that the client has closed its end, or only its sending half of a socket."""
        poll = select.poll()
        poll.register(self._fd, 0)
        if poll.poll(0):
            self._lose()
        else:
            self._loop.remove_reader(self._fd)

    def _lose(self) -> None:
        self.close()
        self._on_closed()


def _is_pipe_or_socket(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
