"""What MCP clients are told to start: the snippet each of them takes, as text to paste."""

import json
import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

# The original's usual name: with the same one, permissions given to its tool stay valid.
SERVER_NAME = "sequential-thinking"


class Client(StrEnum):
    """The clients whose configuration we know how to write."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"


WHERE = {
    Client.CLAUDE_CODE: ".mcp.json in the project, or run: claude mcp add {name} -- {command}",
    Client.CLAUDE_DESKTOP: "claude_desktop_config.json (Settings, Developer, Edit Config)",
    Client.CURSOR: ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
    Client.VSCODE: ".vscode/mcp.json in the project",
}


def snippet(client: Client, command: Sequence[str]) -> str:
    """The JSON to put into the client's file; *command* is what starts the server."""
    program, *arguments = command
    server = {"command": program, "args": arguments}
    key = "servers" if client is Client.VSCODE else "mcpServers"
    return json.dumps({key: {SERVER_NAME: server}}, indent=2)


def where(client: Client, command: Sequence[str]) -> str:
    """Where the snippet goes."""
    return WHERE[client].format(name=SERVER_NAME, command=shlex.join(command))


def own_command() -> list[str]:
    """How this program is started again from anywhere: clients do not have a shell's PATH."""
    script = Path(sys.argv[0]).absolute()
    if script.name == "thought-ledger" and script.exists():
        return [str(script)]
    beside = Path(sys.executable).with_name("thought-ledger")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "mcp_server"]
