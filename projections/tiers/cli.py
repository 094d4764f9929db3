"""The command ``memory``: the tiers that an agent is given at the start of a session."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from ledger.database import Database, Role
from ledger.display import printing
from ledger.limits import recordable_name
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from projections.catalogue import ALL
from projections.cli_words import print_json, say
from projections.live import LiveConnections
from projections.tiers.tiers import Summary, Tiers
from projections.worker import CATCH_UP_SECONDS_MAX
from projections.workers import catch_up_all


def memory(
    tenant: Annotated[
        str, typer.Option(metavar="NAME", help="Whose memory, by the tenant's name.")
    ] = "default",
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what an agent is given at the start of a session: what proved good, and dead ends.

    What is recorded is applied first, so it is current.
    """
    tenant = recordable_name(tenant)
    with opened(settings_of(data_dir, database_url)) as database:
        connector = database.connector(Role.PROJECTOR)
        for line in catch_up_all(connector, ALL, CATCH_UP_SECONDS_MAX):
            say(f"{line}; `thought-ledger projections status` tells how far")
        identity, summary = asyncio.run(_asked(database, tenant))
    with printing():
        if as_json:
            print_json({"tenant": tenant, "identity": identity} | asdict(summary))
        else:
            print("\n\n".join(part for part in (identity, summary.text) if part))


async def _asked(database: Database, tenant: str) -> tuple[str, Summary]:
    connections = LiveConnections(lambda: database.connector(Role.READER))
    try:
        tiers = Tiers(connections)
        return await tiers.identity(tenant), await tiers.summary(tenant)
    finally:
        await connections.close()
