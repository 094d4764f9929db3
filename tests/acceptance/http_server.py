"""``serve --transport http`` as a child process, and a raw client of it: every wait bounded."""

import contextlib
import http.client
import json
import signal
import subprocess
import threading
import time

from tests.acceptance.client import (
    COMMAND,
    EXIT_SECONDS_MAX,
    REPOSITORY,
    START_SECONDS_MAX,
    Answer,
    clean_environment,
)

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ANSWER_SECONDS_MAX = 30
ACCEPT = "application/json, text/event-stream"
LISTENING = "listening on http://"


class HttpServer:
    """The server on a free port; leaving the context ends it by SIGTERM and expects code 0."""

    def __init__(self, data_dir, *arguments, env=None, port=0):
        self._command = [*COMMAND, "serve", "--transport", "http", "--port", str(port)]
        self._command += ["--data-dir", str(data_dir), *arguments]
        self._env = clean_environment(env)
        self._changed = threading.Condition()
        self._lines = []
        self._ended = False

    def __enter__(self):
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env=self._env,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.url = self._listening()
        except BaseException:
            self.kill()
            raise
        self.host, port = self.url.removeprefix("http://").partition("/")[0].rsplit(":", 1)
        self.port = int(port)
        return self

    def __exit__(self, kind, error, traceback):
        try:
            if kind is None and self.process.poll() is None:
                code = self.end()
                assert code == 0, f"serve ended with {code}:\n{self.stderr()}"
        finally:
            self.kill()
            if error is not None:
                error.add_note(f"the server's stderr:\n{self.stderr()}")

    def end(self, number=signal.SIGTERM):
        """Ends it by a signal and returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(EXIT_SECONDS_MAX)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(EXIT_SECONDS_MAX)
        self._reader.join(EXIT_SECONDS_MAX)
        if not self._reader.is_alive():
            self.process.stderr.close()
        self.process.stdout.close()

    def stderr(self):
        return "".join(self._lines)

    def client(self, **how):
        return HttpClient(self.host, self.port, **how)

    def wait_for(self, words):
        """Waits until a line of stderr has these words."""
        with self._changed:
            there = self._changed.wait_for(
                lambda: self._ended or any(words in line for line in self._lines),
                START_SECONDS_MAX,
            )
        assert there, f"serve does not say {words!r}:\n{self.stderr()}"

    def _listening(self):
        self.wait_for(LISTENING)
        assert not self._ended, f"serve does not listen:\n{self.stderr()}"
        (line,) = (line for line in self._lines if LISTENING in line)
        return line.split()[-1]

    def _read(self):
        for line in self.process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class HttpClient:
    """One keep-alive connection that speaks MCP of one era; use it as a context manager."""

    def __init__(self, host, port, *, era=MODERN, token=None, path="/mcp"):
        self.connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS_MAX)
        self._era = era
        self._path = path
        self._authorization = {"Authorization": f"Bearer {token}"} if token else {}
        self._next_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def request(self, method, path, body=None, headers=None):
        """The response, read to its end: its ``status``, ``headers`` and ``text``."""
        self.connection.request(method, path, body, {**self._authorization, **(headers or {})})
        response = self.connection.getresponse()
        response.text = response.read().decode()
        return response

    def post(self, message, **headers):
        """POSTs one JSON-RPC message to MCP's path."""
        headers = {"Content-Type": "application/json", "Accept": ACCEPT, **headers}
        return self.request("POST", self._path, json.dumps(message), headers)

    def ask(self, method, params):
        """The JSON-RPC message that answers a request, an error too if its status is 200."""
        response = self.post_request(method, params)
        assert response.status == 200, f"{response.status}: {response.text}"
        answer = _message(response)
        assert answer["id"] == self._next_id
        return answer

    def error_of(self, method, params):
        """The JSON-RPC error of a request."""
        return _message(self.post_request(method, params))["error"]

    def listen(self, params):
        """The first message of the stream that ``subscriptions/listen`` opens; it stays open."""
        message, headers = self._request_of("subscriptions/listen", params)
        headers |= {"Content-Type": "application/json", "Accept": ACCEPT, **self._authorization}
        self.connection.request("POST", self._path, json.dumps(message), headers)
        response = self.connection.getresponse()
        while not (line := response.readline().decode()).startswith("data: "):
            assert line, "the stream ended"
        return json.loads(line.removeprefix("data: "))

    def post_request(self, method, params):
        """POSTs a request as a client of this era does; the response."""
        message, headers = self._request_of(method, params)
        return self.post(message, **headers)

    def _request_of(self, method, params):
        """The JSON-RPC message and the headers of a request."""
        self._next_id += 1
        headers = {"MCP-Protocol-Version": self._era}
        if self._era == MODERN:
            headers["Mcp-Method"] = method
            if named := params.get("name") or params.get("uri"):
                headers["Mcp-Name"] = named
            meta = {
                "protocolVersion": MODERN,
                "clientCapabilities": {},
                "clientInfo": {"name": "tests", "version": "1"},
            }
            named = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
            params = {**params, "_meta": named}
        return {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}, headers

    def initialize(self):
        """The handshake of the legacy era, as its clients do it."""
        who = {"name": "tests", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": who}
        answer = self.ask("initialize", params)
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert self.post(note, **{"MCP-Protocol-Version": LEGACY}).status == 202
        return answer["result"]

    def call(self, name, arguments):
        """The answer of one tool."""
        return Answer.of(self.ask("tools/call", {"name": name, "arguments": arguments}))

    def think(self, arguments):
        """The answer to one ``sequentialthinking`` call."""
        return self.call("sequentialthinking", arguments)


def _message(response):
    if response.headers.get_content_type() == "application/json":
        return json.loads(response.text)
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(lines[-1].removeprefix("data: "))


def seconds_of(act):
    """How long it took."""
    began = time.monotonic()
    act()
    return time.monotonic() - began
