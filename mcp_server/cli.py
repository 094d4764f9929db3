"""The command ``thought-ledger``: ``serve`` here, and the commands of the other two packages."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import ledger.backups.cli
import ledger.cli
import projections.cli
from ledger.limits import ID_CHARACTERS_MAX, recordable_name
from ledger.logs import configure
from ledger.options import DatabaseUrl, DataDir, LogFormatOption, settings_of
from ledger.settings import DATABASE_URL_VARIABLE, LogFormat
from mcp_server.choice import TOOLSETS, TOOLSETS_DEFAULT, Choice
from mcp_server.client_config import Client, own_command, snippet, where
from mcp_server.version import package_version
from mcp_server.web.options import HOST, PATH, PORT, HttpOptions
from mcp_server.wire import Wire


class Transport(StrEnum):
    """What an agent talks to ``serve`` over."""

    STDIO = "stdio"
    HTTP = "http"


app = typer.Typer(
    name="thought-ledger",
    help="A ledger of reasoning: every thought of an agent is an immutable event in PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain text: an error is one line, whoever reads it.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"thought-ledger {package_version()}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Keep every thought of an agent as an immutable event in PostgreSQL."""


@app.command()
def serve(
    context: typer.Context,
    toolsets: Annotated[
        str | None,
        typer.Option(
            help=f"Which tools to offer, of {', '.join(TOOLSETS)}; with commas between.  "
            f"Default: {','.join(TOOLSETS_DEFAULT)}.",
            show_default=False,
        ),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(
            help="Single tools to offer instead, of whatever toolset; with commas between.",
            show_default=False,
        ),
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", help="Offer only what records nothing, with a login that cannot write."
        ),
    ] = False,
    session: Annotated[
        str | None,
        typer.Option(
            help="Name this connection: the next one of the name goes on where it stopped.",
            show_default=False,
        ),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            help="Who records.  Default: $THOUGHT_LEDGER_ACTOR, else the client's name.",
            show_default=False,
        ),
    ] = None,
    worker: Annotated[
        bool, typer.Option(help="Keep the read models up to date beside the server.")
    ] = True,
    echo_thoughts: Annotated[
        bool, typer.Option("--echo-thoughts", help="Show each thought in a box on stderr.")
    ] = False,
    transport: Annotated[
        Transport,
        typer.Option(help="Serve one agent over stdin and stdout, or many over HTTP."),
    ] = Transport.STDIO,
    host: Annotated[
        str | None,
        typer.Option(
            help="HTTP: the address to listen on, by default 127.0.0.1.  Others than this "
            "machine's own need tokens.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="HTTP: the port, by default 8765; 0 takes a free one.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(help="HTTP: the path of MCP, by default /mcp.", show_default=False),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="HTTP: one more name that requests may call this server by (Host and Origin), "
            "with a port or for all; may be repeated.",
            show_default=False,
        ),
    ] = None,
    tokens_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="HTTP: who may come in, one a line: NAME SCOPES TOKEN.  "
            "Default: the lines of $THOUGHT_LEDGER_TOKENS.",
            show_default=False,
        ),
    ] = None,
    log_format: LogFormatOption = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve agents over stdin and stdout, or over HTTP (MCP)."""
    with _kept_out("uvicorn"):
        # Imports the SDK, half a second that no other command should wait for.
        from mcp_server.serving import ServeOptions, run  # noqa: PLC0415

    settings = settings_of(data_dir, database_url, actor, log_format)
    configure(settings.log_format)
    wire = context.obj
    assert isinstance(wire, Wire)
    choice = Choice.read(toolsets, tools, read_only=read_only)
    silent = os.environ.get("DISABLE_THOUGHT_LOGGING", "").lower() == "true"
    if session is not None and len(session) > ID_CHARACTERS_MAX:
        raise typer.BadParameter(f"a session's name has at most {ID_CHARACTERS_MAX} characters")
    session = session and recordable_name(session)
    options = ServeOptions(session, worker, echo_thoughts and not silent, choice)
    if echo_thoughts and settings.log_format is LogFormat.JSON:
        raise typer.BadParameter("--echo-thoughts draws boxes, which are no JSON: leave one out")
    if transport is Transport.HTTP:
        if session is not None:
            raise typer.BadParameter(
                "--session names a connection, and HTTP has none: use chain_id"
            )
        from mcp_server.web.serving import run as run_http  # noqa: PLC0415

        http = HttpOptions.read(
            os.environ,
            host=HOST if host is None else host,
            port=PORT if port is None else port,
            path=PATH if path is None else path,
            allowed_hosts=allowed_host or [],
            tokens_file=tokens_file,
        )
        raise typer.Exit(run_http(settings, options, http))
    if any(option is not None for option in (host, port, path, allowed_host, tokens_file)):
        raise typer.BadParameter(
            "--host, --port, --path, --allowed-host and --tokens-file are for --transport http"
        )
    if os.isatty(wire.input_fd) and settings.log_format is LogFormat.TEXT:
        print("waiting for an MCP client on standard input; Ctrl-D ends it", file=sys.stderr)
    raise typer.Exit(run(settings, options, wire))


@app.command()
def config(
    client: Annotated[Client, typer.Argument(help="Which client.", show_default=False)],
    session: Annotated[
        str | None,
        typer.Option(help="Let every start go on where this session stopped.", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print what an MCP client is to be told.

    The snippet goes to standard output, where to put it to standard error.  A database URL is
    better given to the client as an environment variable when it holds a password.
    """
    # A desktop application has not the environment of this shell: what is set here is told.
    settings = settings_of(data_dir, database_url)
    named = {"session": session, "actor": settings.actor, "database-url": database_url}
    command = [*own_command(), "serve"]
    for option, value in named.items():
        command += [f"--{option}", value] if value else []
    if settings.data_dir is not None and settings.database_url is None:
        command += ["--data-dir", str(settings.data_dir.absolute())]
    print(f"# {where(client, command)}", file=sys.stderr)
    if settings.database_url is not None and database_url is None:
        print(f"# and set {DATABASE_URL_VARIABLE} in the client's environment", file=sys.stderr)
    print(snippet(client, command))


@contextmanager
def _kept_out(name: str) -> Generator[None]:
    """Let imports go on as if a package were not installed.

    What the SDK imports takes uvicorn along, if it is there, only to change its signal handler;
    stdio need not wait for it, and over HTTP the signals are ours.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # pyright: ignore[reportArgumentType] - typeshed does not know of it
    try:
        yield
    finally:
        del sys.modules[name]


ledger.cli.register(app)
ledger.backups.cli.register(app)
projections.cli.register(app)
