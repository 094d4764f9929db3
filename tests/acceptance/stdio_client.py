"""A raw client of the stdio transport: it sees every byte and waits for nothing without a limit."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SERVER = [sys.executable, "-m", "tests.acceptance.echo_server"]
WAIT_SECONDS_MAX = 15
# Promised is one second, which scripts/bench measures; here the machine may be busy.
EXIT_SECONDS_MAX = 5.0

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "init",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def line_of(message):
    return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"


def call_of(request_id, tool, **arguments):
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


class RawClient:
    """A server process and the descriptors it is talked to over."""

    def __init__(self, over="pipes"):
        if over == "pipes":
            child_in, self.to_server = os.pipe()
            self.from_server, child_out = os.pipe()
        else:
            ours, theirs = socket.socketpair()
            self.to_server, child_in = ours.detach(), theirs.detach()
            if over == "one socket":
                self.from_server, child_out = os.dup(self.to_server), child_in
            else:
                ours, theirs = socket.socketpair()
                self.from_server, child_out = ours.detach(), theirs.detach()
        self.process = subprocess.Popen(
            SERVER, stdin=child_in, stdout=child_out, stderr=subprocess.PIPE, cwd=REPOSITORY
        )
        for fd in {child_in, child_out}:
            os.close(fd)
        self._unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.close_input()
        self.close_output()

    def initialize(self):
        answer = self.ask(INITIALIZE)
        self.send(INITIALIZED)
        return answer

    def send(self, *messages):
        rest = memoryview(b"".join(map(line_of, messages)))
        while rest:
            rest = rest[os.write(self.to_server, rest) :]

    def receive(self):
        """The next message; None at the end of output."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            assert select.select([self.from_server], [], [], max(left, 0))[0], "no answer came"
            chunk = os.read(self.from_server, 2**20)
            if not chunk:
                assert not self._unread, "the output ended within a line"
                return None
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def ask(self, *messages):
        self.send(*messages)
        return self.receive()

    def call(self, request_id, tool, **arguments):
        answer = self.ask(call_of(request_id, tool, **arguments))
        assert answer["id"] == request_id
        return answer["result"]["structuredContent"]

    def close_input(self):
        self.to_server = self._close(self.to_server)

    def close_output(self):
        self.from_server = self._close(self.from_server)

    def _close(self, fd):
        if fd is not None:
            os.close(fd)

    def exit_code(self):
        """The code the server ends with, which it must do in time."""
        start = time.monotonic()
        code = self.process.wait(timeout=WAIT_SECONDS_MAX)
        assert time.monotonic() - start < EXIT_SECONDS_MAX
        return code

    def stderr(self):
        return self.process.stderr.read().decode()


def wait_for(path, text):
    """Wait until a tool of the server has written *text*."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (path.exists() and path.read_text() == text):
        assert time.monotonic() < deadline, f"{path} does not say {text!r}"
        select.select([], [], [], 0.002)
