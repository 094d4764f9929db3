"""The main job: an agent thinks over MCP, its server dies, and nothing is lost.

Starts the server as an MCP client would, over stdio, and shows what goes over the wire.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule

COMMAND = Path(sys.executable).with_name("thought-ledger")
CONSOLE = Console(highlight=False, soft_wrap=True)

FIRST = [
    {
        "thought": "A bat and a ball cost 1.10 together; the bat costs 1.00 more than the ball. "
        "The tempting answer for the ball is 0.10.",
        "thoughtNumber": 1,
    },
    {
        "thought": "Check it: ball 0.10 makes the bat 1.10, together 1.20. Too much, so 0.10 is "
        "wrong; the difference would be 1.00, but the sum is not 1.10.",
        "thoughtNumber": 2,
        "isRevision": True,
        "revisesThought": 1,
    },
    {
        "thought": "With algebra: ball b, bat b + 1.00, sum 2b + 1.00 = 1.10, so b = 0.05.",
        "thoughtNumber": 3,
        "branchFromThought": 2,
        "branchId": "algebra",
    },
]
SECOND = [
    {
        "thought": "Without algebra: take the difference of 1.00 from the sum, 0.10 is left for "
        "two equal parts: 0.05 each.",
        "thoughtNumber": 3,
    },
    {
        "thought": "Both ways agree: the ball costs 0.05, the bat 1.05, together 1.10.",
        "thoughtNumber": 4,
        "nextThoughtNeeded": False,
    },
]


class Agent:
    """An MCP client that knows no more of the server than its command line."""

    def __init__(self, data_dir: str) -> None:
        arguments = [COMMAND, "serve", "--session", "demo", "--data-dir", data_dir]
        self._server = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._requests = 0
        client = {"name": "demo-agent", "version": "1"}
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self._ask("initialize", opening)
        self._send({"method": "notifications/initialized"})

    def recall(self, query: str) -> dict[str, Any]:
        return self._call("get_related_chains", {"query": query})

    def think(self, said: dict[str, Any]) -> dict[str, Any]:
        arguments = {"nextThoughtNeeded": True, "totalThoughts": 4, **said}
        return self._call("sequentialthinking", arguments)

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            return {"refused": result["content"][0]["text"]}
        return result["structuredContent"]

    def kill(self) -> None:
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()

    def leave(self) -> None:
        self._server.communicate(timeout=30)

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        assert self._server.stdout is not None
        answer = json.loads(self._server.stdout.readline())
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._server.stdin.flush()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="thought-ledger-") as data_dir:
        step("An agent starts its server and thinks")
        agent = Agent(data_dir)
        chain_id = ""
        for said in FIRST:
            chain_id = show(agent.think(said))

        step("The server is killed and started again; the agent goes on")
        agent.kill()
        agent = Agent(data_dir)
        show(agent.think(SECOND[0]))

        step("A paused chain takes no thoughts, a resumed one does")
        command("pause", chain_id, "--reason", "waiting for a second opinion", data_dir=data_dir)
        show(agent.think(SECOND[1]))
        command("resume", chain_id, data_dir=data_dir)
        show(agent.think(SECOND[1]))

        step("Asked how a like problem was solved, it finds the chain")
        CONSOLE.print_json(data=agent.recall("a racket and a ball, the difference and the sum"))
        agent.leave()

        step("The replay: every event, who, when and what")
        command("replay", chain_id, data_dir=data_dir)
        command("chains", "--all", data_dir=data_dir)


def step(title: str) -> None:
    CONSOLE.print()
    CONSOLE.print(Rule(title, align="left"))


def show(answer: dict[str, Any]) -> str:
    CONSOLE.print(json.dumps(answer))
    return str(answer.get("chain_id", ""))


def command(*arguments: str, data_dir: str) -> None:
    CONSOLE.print(f"$ thought-ledger {shlex.join(arguments)}", style="bold")
    sys.stdout.flush()
    environment = os.environ | {"THOUGHT_LEDGER_DATA_DIR": data_dir}
    subprocess.run([COMMAND, *arguments], env=environment, check=True)


if __name__ == "__main__":
    main()
