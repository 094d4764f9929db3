"""A subscriber that is slow to be told is told each address once, and misses none."""

import asyncio

from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import SubscriptionFilter

from mcp_server.streams import Pace, Seldom, Streams, Subscriber

SECONDS_MAX = 10
HURRY = Pace(1_000_000, 1_000_000)


class SlowClient:
    """Reads one notification each time it is asked to."""

    request_id = 1

    def __init__(self):
        self.session = self
        self.told = asyncio.Queue()
        self.reads = asyncio.Semaphore(0)
        self.is_told = asyncio.Event()

    async def send_notification(self, notification, related_request_id):
        self.is_told.set()
        await self.reads.acquire()
        self.told.put_nowait(notification.params)

    async def read(self):
        self.reads.release()
        async with asyncio.timeout(SECONDS_MAX):
            return await self.told.get()


async def open_stream(streams, *uris):
    """A client whose stream is acknowledged, and the task that serves it."""
    client = SlowClient()
    wanted = SubscriptionFilter(resource_subscriptions=list(uris))
    serving = asyncio.create_task(streams.serve(client, wanted))
    await client.read()
    client.is_told.clear()
    return client, serving


def test_what_a_client_has_not_read_yet_is_merged_and_none_is_lost():
    async def change_often():
        streams = Streams(HURRY)
        client, serving = await open_stream(streams, "a", "b")
        streams.add(["a"])
        await client.is_told.wait()
        for _ in range(5_000):
            streams.add(["a", "b", "not asked for"])
        told = [(await client.read()).uri for _ in range(3)]
        client.is_told.clear()
        streams.add(["b"])
        told.append((await client.read()).uri)
        serving.cancel()
        await asyncio.wait([serving])
        return told, client.told.empty()

    assert asyncio.run(change_often()) == (["a", "a", "b", "b"], True)


def test_every_subscriber_gets_its_turn_whatever_another_is_behind_with():
    async def take_turns():
        # Slow enough that this machine is never late for a turn.
        pace = Pace(10, 1)
        busy, other = Subscriber(pace, map(str, range(1_000))), Subscriber(pace, ["x"])
        busy.add(map(str, range(1_000)))
        other.add(["x"])
        told = asyncio.Queue()
        tasks = [asyncio.create_task(tell(one, told)) for one in (busy, other)]
        async with asyncio.timeout(SECONDS_MAX):
            first = {await told.get() for _ in range(3)}
        for task in tasks:
            task.cancel()
        return first

    async def tell(subscriber, told):
        while True:
            told.put_nowait(await subscriber.take())

    assert asyncio.run(take_turns()) == {"0", "1", "x"}


def test_a_pace_gives_some_turns_at_once_and_the_others_one_after_another():
    async def take():
        loop = asyncio.get_running_loop()
        pace = Pace(100, 5)
        began = loop.time()
        await asyncio.gather(*(pace.turn() for _ in range(25)))
        return loop.time() - began

    assert asyncio.run(take()) >= 0.19


def test_what_is_forgotten_before_it_was_told_is_not_told():
    async def forget():
        subscriber = Subscriber(HURRY, ["a", "b"])
        subscriber.add(["a", "b"])
        subscriber.forget("a")
        return await subscriber.take()

    assert asyncio.run(forget()) == "b"


def test_what_is_done_seldom_is_done_at_once_and_for_the_last_who_ask_once_more():
    async def ask():
        done = []
        again = asyncio.Event()

        def work():
            done.append(1)
            if len(done) == 2:
                again.set()

        seldom = Seldom(0.01, work)
        for _ in range(100):
            seldom.ask()
        at_once = len(done)
        async with asyncio.timeout(SECONDS_MAX):
            await again.wait()
        return at_once, len(done)

    assert asyncio.run(ask()) == (1, 2)


def test_a_stream_too_many_is_refused_and_a_place_is_free_again_when_one_ends():
    async def fill():
        streams = Streams(HURRY)
        opened = [await open_stream(streams, "a") for _ in range(500)]
        refused = await asyncio.gather(
            streams.serve(SlowClient(), SubscriptionFilter()), return_exceptions=True
        )
        opened[0][1].cancel()
        await asyncio.wait([opened[0][1]])
        opened.append(await open_stream(streams, "a"))
        for _, serving in opened:
            serving.cancel()
        return str(refused[0])

    assert asyncio.run(fill()) == "500 streams are open; end one, or wait"


def test_the_stream_of_a_client_that_does_not_read_is_ended():
    async def read_no_more():
        streams = Streams(HURRY, 0.01)
        client = SlowClient()
        client.reads.release()
        wanted = SubscriptionFilter(resource_subscriptions=["a"])
        serving = asyncio.create_task(streams.serve(client, wanted))
        await client.told.get()
        streams.add(["a"])
        async with asyncio.timeout(SECONDS_MAX):
            return (await serving).meta

    assert asyncio.run(read_no_more()) == {SUBSCRIPTION_ID_META_KEY: 1}
