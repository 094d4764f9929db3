"""A watch of the log that a bug has ended is started again by whoever subscribes next."""

import asyncio
from contextlib import asynccontextmanager

from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams

from ledger.settings import Settings
from mcp_server.door import OpenDoor
from mcp_server.pushes import Pushes
from mcp_server.requests import Requests
from mcp_server.source import LedgerSource
from tests.acceptance.client import Server
from tests.acceptance.in_memory import SECONDS_MAX

STATUS = "thought-ledger://status"


class Listener:
    """The request of a client, its session, and what it is sent."""

    request_id, method, request, client_params = 1, "subscriptions/listen", None, None

    def __init__(self):
        self.session = self
        self._sent = asyncio.Queue()

    async def send_notification(self, notification, related_request_id):
        self._sent.put_nowait(notification.params)

    async def next(self):
        async with asyncio.timeout(SECONDS_MAX):
            return await self._sent.get()


@asynccontextmanager
async def listening(pushes):
    listener = Listener()
    wanted = SubscriptionFilter(resource_subscriptions=[STATUS])
    asked = SubscriptionsListenRequestParams(notifications=wanted)
    serving = asyncio.create_task(pushes.listen(listener, asked))
    await listener.next()  # the acknowledgement
    yield listener
    serving.cancel()
    await asyncio.wait([serving])


async def subscribe_around_a_death(data_dir, there):
    source = LedgerSource(Settings(data_dir=data_dir))
    pushes = Pushes(Requests(source, OpenDoor()), lambda uri: True)
    try:
        async with pushes.lifespan(None), listening(pushes) as first:
            watching = pushes._watch.result()._watching
            watching.cancel()
            await asyncio.wait([watching])
            await asyncio.to_thread(there.think, "while nobody watches")
            async with listening(pushes):
                return (await first.next()).uri
    finally:
        await source.close()


def test_a_watch_that_died_is_started_again_and_tells_what_it_missed(ledger):
    with Server(ledger, "--no-worker") as there:
        told = asyncio.run(subscribe_around_a_death(ledger, there))

    assert told == STATUS
