"""The operators' commands on spaces of vectors: list them, go back to a kept one, drop one."""

import sys
from typing import Annotated

import typer

from ledger.database import Role
from ledger.display import local_time, print_table, printing
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from ledger.settings import Settings
from projections.cli_words import print_json
from projections.embeddings import operating
from projections.embeddings.choice import chosen, name_of
from projections.embeddings.errors import MODEL_SETTING
from projections.embeddings.schema import ensure_schema
from projections.embeddings.spaces import Space, list_spaces

TITLES = (
    *("space", "state", "model", "dimensions", "thoughts", "embedded", "position"),
    "searched since",
)

Number = Annotated[
    int, typer.Argument(min=1, metavar="NUMBER", help="Which space; `list` lists them.")
]
OptionalNumber = Annotated[
    int | None,
    typer.Argument(
        min=1,
        metavar="[NUMBER]",
        help="Which space; by default the one that was searched before.",
        show_default=False,
    ),
]

app = typer.Typer(
    help="The spaces of vectors: one for each model, of which one is searched.",
    no_args_is_help=True,
)


def register(command_line: typer.Typer) -> None:
    """Add this module's commands to ``thought-ledger projections``."""
    command_line.add_typer(app, name="vectors")


@app.command(name="list")
def list_(
    as_json: Json = False, data_dir: DataDir = None, database_url: DatabaseUrl = None
) -> None:
    """List the spaces: which model, which one is searched, how far each has come."""
    with opened(settings_of(data_dir, database_url)) as database, printing():
        with database.connector(Role.READER).connect() as connection:
            found = list_spaces(connection)
        if as_json:
            for space in found:
                print_json(space)
        elif found:
            print_table(
                TITLES,
                [_line(space) for space in found],
            )
        else:
            print(
                "nothing was embedded yet; `thought-ledger serve` or `thought-ledger projections "
                "run` does it",
                file=sys.stderr,
            )


@app.command()
def rollback(
    number: OptionalNumber = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Search a kept space again.

    The one that was searched is kept, and takes over again only by this command.
    """
    settings = settings_of(data_dir, database_url)
    with opened(settings) as database, printing():
        with database.connector(Role.PROJECTOR).connect() as connection:
            ensure_schema(connection)
            space = operating.switch(connection, number)
        if as_json:
            print_json(space)
            return
        print(f"space {space.number} of {space.model} is searched from now on")
        if not _is_set(settings, space):
            print(
                f"new thoughts get vectors there as long as its model can be loaded; set "
                f"{MODEL_SETTING} to {space.source} to stay with it"
            )


@app.command()
def drop(
    number: Number,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Drop a space that is not searched, with its vectors.

    It is made again, and searched when complete, as long as its model is set.
    """
    settings = settings_of(data_dir, database_url)
    with opened(settings) as database, printing():
        with database.connector(Role.PROJECTOR).connect() as connection:
            ensure_schema(connection)
            space = operating.drop(connection, number)
        if as_json:
            print_json({"dropped": space.number, "thoughts": space.thoughts})
        else:
            print(f"space {space.number} of {space.model} is gone, with {space.thoughts:,} vectors")
            if _is_set(settings, space):
                print(
                    f"its model is set, so it is made again, and searched when complete; set "
                    f"{MODEL_SETTING} to another one to do without"
                )


def _is_set(settings: Settings, space: Space) -> bool:
    """Whether a process of these settings embeds with the model of *space*."""
    source = chosen(settings).source
    return source is not None and name_of(source) == space.model


def _line(space: Space) -> tuple[str, ...]:
    return (
        str(space.number),
        space.state,
        space.model,
        str(space.dimensions),
        f"{space.thoughts:,}",
        f"{space.embedded:,}",
        f"{space.position:,}",
        local_time(space.promoted_at) if space.promoted_at else "-",
    )
