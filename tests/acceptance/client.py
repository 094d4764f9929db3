"""A raw MCP client over pipes: lines of JSON to a real server process, every wait bounded."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "mcp_server"]
ANSWER_SECONDS_MAX = 30
START_SECONDS_MAX = 60
EXIT_SECONDS_MAX = 15
ABSENT = object()


class ServerGoneError(Exception):
    """The server ended, so an answer that was waited for will never come."""


class NoAnswerError(Exception):
    """The server is there, but did not answer in time."""


@dataclass(frozen=True)
class Answer:
    """What came back for one tools/call: ``outcome`` is answered, isError or protocol error."""

    outcome: str
    structured: dict | None
    text: str
    message: dict

    @classmethod
    def of(cls, message):
        if "error" in message:
            return cls("protocol error", None, message["error"]["message"], message)
        result = message["result"]
        text = "\n".join(str(part.get("text", "")) for part in result.get("content", []))
        outcome = "isError" if result.get("isError") else "answered"
        return cls(outcome, result.get("structuredContent"), text, message)

    def __getitem__(self, field):
        assert self.outcome == "answered", f"{self.outcome}: {self.text}"
        return self.structured[field]


class Server:
    """``thought-ledger serve`` as a child process; use it as a context manager.

    Entering starts it and shakes hands.  Leaving closes its stdin and expects a clean exit;
    after an exception, or after ``kill``, whatever is left is killed.
    """

    def __init__(self, data_dir, *arguments, env=None, database_url=None, exit_code=0):
        self._command = [*COMMAND, "serve", "--data-dir", str(data_dir), *arguments]
        if database_url is not None:
            self._command += ["--database-url", database_url]
        self._env = clean_environment(env)
        self._exit_code = exit_code
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._changed = threading.Condition()
        self._answers = {}
        self._next_id = 0
        self._ended = False
        self._killed = False
        self.arrivals = []
        self.notifications = []

    def __enter__(self):
        self.start()
        try:
            self.initialize()
        except BaseException as error:
            self._end(error)
            raise
        return self

    def __exit__(self, kind, error, traceback):
        try:
            if kind is None and not self._killed:
                code = self.close()
                assert code == self._exit_code, f"serve ended with {code}:\n{self.stderr()}"
        finally:
            self._end(error)

    # The process

    def start(self):
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=REPOSITORY,
            env=self._env,
        )
        os.set_blocking(self.process.stdin.fileno(), False)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def kill(self):
        """``kill -9``; what the server had already written can still be read as answers."""
        self._killed = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(EXIT_SECONDS_MAX)
        # A child that outlives the server may hold the pipe open, so the join is bounded.
        self._reader.join(EXIT_SECONDS_MAX)

    def close(self, timeout=EXIT_SECONDS_MAX):
        """Ends the conversation by EOF, as a client does, and returns the exit code."""
        self.process.stdin.close()
        return self._wait(timeout)

    def interrupt(self, number=signal.SIGTERM, timeout=EXIT_SECONDS_MAX):
        """Ends the server by a signal and returns the exit code."""
        self.process.send_signal(number)
        return self._wait(timeout)

    def stderr(self):
        if self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")[-4000:]

    def _wait(self, timeout):
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"serve did not end in {timeout} s:\n{self.stderr()}") from error

    def _end(self, error):
        self.kill()
        if error is not None:
            error.add_note(f"the server's stderr:\n{self.stderr()}")
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        if not self._reader.is_alive():
            self.process.stdout.close()
        self._log.close()

    # The wire

    def initialize(self, timeout=START_SECONDS_MAX):
        parameters = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "acceptance", "version": "1.0"},
        }
        message = self.request("initialize", parameters, timeout=timeout)
        self.notify("notifications/initialized")
        return message["result"]

    def send(self, message, timeout=ANSWER_SECONDS_MAX):
        """Sends one message, or raw bytes as they are."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self._write(memoryview(line), time.monotonic() + timeout)

    def send_request(self, method, parameters=None, timeout=ANSWER_SECONDS_MAX):
        """Sends a request and returns its id without waiting for the answer."""
        self._next_id += 1
        request = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if parameters is not None:
            request["params"] = parameters
        self.send(request, timeout)
        return request["id"]

    def request(self, method, parameters=None, timeout=ANSWER_SECONDS_MAX):
        return self.message(self.send_request(method, parameters, timeout), timeout)

    def notify(self, method, parameters=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": parameters or {}})

    def message(self, request_id, timeout=ANSWER_SECONDS_MAX):
        """Waits for the answer to a request."""
        with self._changed:
            self._changed.wait_for(lambda: request_id in self._answers or self._ended, timeout)
            if request_id in self._answers:
                return self._answers[request_id]
            ended = self._ended
        if ended:
            raise ServerGoneError(f"no answer to {request_id}:\n{self.stderr()}")
        raise NoAnswerError(f"no answer to {request_id} in {timeout} s:\n{self.stderr()}")

    # Tools

    def send_call(self, name, arguments, timeout=ANSWER_SECONDS_MAX):
        parameters = {"name": name}
        if arguments is not ABSENT:
            parameters["arguments"] = arguments
        return self.send_request("tools/call", parameters, timeout)

    def answer(self, request_id, timeout=ANSWER_SECONDS_MAX):
        return Answer.of(self.message(request_id, timeout))

    def call(self, name, arguments, timeout=ANSWER_SECONDS_MAX):
        return self.answer(self.send_call(name, arguments, timeout), timeout)

    def call_pipelined(self, calls, timeout=ANSWER_SECONDS_MAX):
        """Sends every ``(name, arguments)`` before reading an answer; answers in the order sent.

        ``arrivals`` holds the ids in the order in which the server really answered.
        """
        ids = [self.send_call(name, arguments, timeout) for name, arguments in calls]
        deadline = time.monotonic() + timeout
        return [self.answer(id_, max(0.0, deadline - time.monotonic())) for id_ in ids]

    def think(self, text="t", number=1, total=3, more=True, timeout=ANSWER_SECONDS_MAX, **others):
        """One ``sequentialthinking`` call with the usual arguments filled in."""
        arguments = thought(text, number, total, more, **others)
        return self.call("sequentialthinking", arguments, timeout)

    def wait_for_answers(self, count, timeout=ANSWER_SECONDS_MAX):
        """Waits until so many answers have arrived in all (the handshake is one of them)."""
        with self._changed:
            enough = self._changed.wait_for(
                lambda: len(self.arrivals) >= count or self._ended, timeout
            )
        assert enough, f"{len(self.arrivals)} of {count} answers in {timeout} s:\n{self.stderr()}"

    def answered(self):
        """The answers that have arrived so far, by request id."""
        with self._changed:
            return dict(self._answers)

    # Threads and pipes

    def _write(self, rest, deadline):
        # The pipe is non-blocking, so a server that stops reading is an error here, not a hang.
        pipe = self.process.stdin.fileno()
        while rest:
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NoAnswerError(f"serve stopped reading:\n{self.stderr()}") from None
                select.select([], [pipe], [], left)
            except BrokenPipeError:
                raise ServerGoneError(f"serve is gone:\n{self.stderr()}") from None

    def _read(self):
        # Anything on stdout that is not JSON ends the reading: it would break every client.
        try:
            for line in self.process.stdout:
                self._take(line)
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _take(self, line):
        if not line.endswith(b"\n"):
            return  # cut off by kill -9: not an answer
        message = json.loads(line)
        with self._changed:
            if "id" in message and "method" not in message:
                self._answers[message["id"]] = message
                self.arrivals.append(message["id"])
            else:
                self.notifications.append(message)
            self._changed.notify_all()


def thought(text="t", number=1, total=3, more=True, **others):
    """The arguments of one ``sequentialthinking`` call."""
    return {
        "thought": text,
        "nextThoughtNeeded": more,
        "thoughtNumber": number,
        "totalThoughts": total,
        **others,
    }


def clean_environment(extra=None):
    """This process's environment without settings of a ledger that the developer may use.

    Nothing is embedded but where a test says so: a model takes seconds and hundreds of megabytes.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("THOUGHT_LEDGER_")}
    kept.pop("DISABLE_THOUGHT_LOGGING", None)
    return {**kept, "THOUGHT_LEDGER_EMBEDDING_MODEL": "off", **(extra or {})}
