"""The projection worker beside a server, in a process of its own.

A process, because a thread would take the interpreter from the calls it works for.  Its standard
input is a pipe that ends with this process, however that ends, and the worker ends with the pipe.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from ledger.background import Outage, in_background
from ledger.settings import (
    DATA_DIR_VARIABLE,
    DATABASE_URL_VARIABLE,
    LOG_FORMAT_VARIABLE,
    Settings,
)

RESTART_PAUSE_SECONDS = 1.0
STOP_SECONDS_MAX = 0.5


class WorkerProcess:
    """Starts the worker, starts it again when it dies, and lets it go."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._watching: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False
        self._outage = Outage("starting the projection worker")

    def start(self) -> None:
        """Start it in the background; not any more once it was told to stop."""
        if self._stopped:
            return
        self._watching = in_background(self._keep_running())

    async def stop(self) -> None:
        """Close the worker's input, which ends it, and wait a moment for it to be gone."""
        self._stopped = True
        if self._watching is None:
            return
        self._watching.cancel()
        await asyncio.wait([self._watching])
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        # Later it ends by itself; the last of a data directory's users stops the database.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS_MAX)

    async def _keep_running(self) -> None:
        while True:
            try:
                self._process = await self._launch()
            except OSError as fault:  # no descriptor or no process is left, for now
                self._outage.say(fault)
            else:
                self._outage.end()
                await self._process.wait()
            await asyncio.sleep(RESTART_PAUSE_SECONDS)

    async def _launch(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "projections", "run", "--until-eof"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=self._environment(),
        )

    def _environment(self) -> dict[str, str]:
        """Ours, with the settings: a database URL on a command line is for everyone to read."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in (DATABASE_URL_VARIABLE, DATA_DIR_VARIABLE)
        }
        if self._settings.database_url is not None:
            environment[DATABASE_URL_VARIABLE] = self._settings.database_url
        elif self._settings.data_dir is not None:
            environment[DATA_DIR_VARIABLE] = str(self._settings.data_dir.absolute())
        environment[LOG_FORMAT_VARIABLE] = self._settings.log_format
        # The packages of this process, not those of the directory it happens to run in.
        home = str(Path(__file__).resolve().parent.parent)
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{home}{os.pathsep}{known}" if known else home
        return environment
