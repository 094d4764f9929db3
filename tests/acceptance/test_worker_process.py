"""The server's worker is started as soon as the operating system lets it."""

import asyncio
import logging

from ledger.settings import Settings
from mcp_server.worker_process import WorkerProcess
from tests.acceptance.in_memory import SECONDS_MAX
from tests.acceptance.product import eventually
from tests.limited import without_descriptors

NO_DATABASE = Settings(database_url="postgresql://127.0.0.1:1/none")


class Heard(logging.Handler):
    """Waits until something was logged."""

    def __init__(self):
        super().__init__()
        self.said = asyncio.Event()

    def emit(self, record):
        self.said.set()


async def start_without_descriptors(logger):
    logger.addHandler(heard := Heard())
    worker = WorkerProcess(NO_DATABASE)
    try:
        with without_descriptors():
            worker.start()
            async with asyncio.timeout(SECONDS_MAX):
                await heard.said.wait()
        await asyncio.to_thread(eventually, lambda: worker._process, SECONDS_MAX, "a worker")
    finally:
        logger.removeHandler(heard)
        await worker.stop()
    async with asyncio.timeout(SECONDS_MAX):
        await worker._process.wait()


def test_a_worker_that_could_not_be_started_is_started_later(caplog):
    asyncio.run(start_without_descriptors(logging.getLogger("thought-ledger")))

    (said,) = caplog.messages
    assert said.startswith("starting the projection worker has to wait")
