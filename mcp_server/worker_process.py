"""The projection worker beside a server, in a process of its own.

A process, because a thread would take the interpreter from the calls it works for.  Its standard
input is a pipe that ends with this process, however that ends, and the worker ends with the pipe.
"""

import asyncio
import sys
import time
from contextlib import suppress

from ledger.background import Outage, in_background
from ledger.settings import Settings
from projections.processes import child_environment

# The pause before it is started again doubles as long as it ends soon, as one does whose read
# models were built by another version.
RESTART_PAUSE_SECONDS_MIN = 1.0
RESTART_PAUSE_SECONDS_MAX = 60.0
SOON_SECONDS = 10.0
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
        pause = RESTART_PAUSE_SECONDS_MIN
        while True:
            start = time.monotonic()
            try:
                self._process = await self._launch()
            except OSError as fault:  # no descriptor or no process is left, for now
                self._outage.say(fault)
            else:
                self._outage.end()
                await self._process.wait()
            if time.monotonic() > start + SOON_SECONDS:
                pause = RESTART_PAUSE_SECONDS_MIN
            await asyncio.sleep(pause)
            pause = min(2 * pause, RESTART_PAUSE_SECONDS_MAX)

    async def _launch(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "projections", "run", "--until-eof"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=child_environment(self._settings),
        )
