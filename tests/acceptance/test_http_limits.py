"""What connections and bodies may take of a server, over real sockets, with small limits."""

import asyncio
import contextlib
import errno
import logging
import resource
import socket

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from mcp_server.web.bodies import Bodies, Room
from mcp_server.web.connections import Limits, Places, protocol_with
from mcp_server.web.descriptors import CONNECTIONS_MAX, DESCRIPTORS_RESERVED, Exhaustion
from mcp_server.web.serving import HttpServer as WebServer
from tests.acceptance.client import thought
from tests.acceptance.http_server import HttpServer

WAIT_SECONDS_MAX = 30
# Short enough to be waited for; the others are too long to be reached by any test that passes.
SOON_SECONDS = 0.2
NEVER_SECONDS = 600
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
MESSAGE = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


async def answer_all(request):
    size = len(await request.body())
    if request.url.query == "stream":
        return await stream(request)
    return PlainTextResponse(f"{size}\n")


async def stream(request):
    """One word at once, another when it is told to."""

    async def words():
        yield b"one\n"
        await request.app.state.asked.wait()
        yield b"two\n"

    return StreamingResponse(words())


async def flood(_):
    async def words():
        while True:
            yield b"x" * 2**16
            await asyncio.sleep(0)

    return StreamingResponse(words())


ROUTES = [
    Route("/", answer_all, methods=["GET", "POST"]),
    Route("/mcp", answer_all, methods=["POST"]),
    Route("/stream", stream),
    Route("/flood", flood),
]


class Served:
    """A server in this event loop, and the raw connections to it."""

    def __init__(self, listening, asked):
        self.asked = asked
        self._address = listening.getsockname()
        self._writers = []

    async def connect(self, sent=b""):
        reader, writer = await asyncio.open_connection(*self._address)
        self._writers.append(writer)
        writer.write(sent)
        return reader, writer

    async def ask(self, sent):
        """The whole answer to a request on a connection of its own."""
        reader, _ = await self.connect(sent)
        return await response(reader)

    def close(self):
        for writer in self._writers:
            writer.close()


@contextlib.asynccontextmanager
async def serving(*, places=100, headers_seconds=NEVER_SECONDS, body_seconds=NEVER_SECONDS, room=0):
    routes = Starlette(routes=ROUTES)
    routes.state.asked = asyncio.Event()
    app = Bodies(routes, "/mcp", 2**20, Room(room, 100), body_seconds)
    listening_now = asyncio.Event()
    config = uvicorn.Config(
        app,
        log_config=None,
        http=protocol_with(Limits(Places(lambda: places), headers_seconds)),
        ws="none",
        timeout_keep_alive=NEVER_SECONDS,
        timeout_graceful_shutdown=1,
        backlog=4,
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = WebServer(config, listening_now.set)
        task = asyncio.create_task(server.serve([listening]))
        served = Served(listening, routes.state.asked)
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await listening_now.wait()
                yield served
        finally:
            served.close()
            server.end()
            await asyncio.wait_for(task, WAIT_SECONDS_MAX)


async def response(reader):
    """The head and the body, by its length."""
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = (
        int(line.split()[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line
    )
    return head + await reader.readexactly(length)


async def is_cut(reader):
    """Waits until the server has ended a connection without a word."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def post(size, sent, path=b"/mcp"):
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % path
    return head + b"Content-Length: %d\r\n\r\n" % size + sent


def large(size):
    return MESSAGE[:-2] + b"x" * (size - len(MESSAGE)) + MESSAGE[-2:]


# Deadlines


@pytest.mark.parametrize("sent", [b"", b"GET / HT", GET[:-2]], ids=["nothing", "a line", "headers"])
def test_a_connection_without_a_request_is_ended(sent):
    async def scenario():
        async with serving(headers_seconds=SOON_SECONDS) as served:
            reader, _ = await served.connect(sent)
            assert await is_cut(reader)

    asyncio.run(scenario())


def test_headers_byte_by_byte_do_not_move_the_deadline():
    async def scenario():
        async with serving(headers_seconds=SOON_SECONDS) as served:
            reader, writer = await served.connect(b"GET / HTTP/1.1\r\nX: ")
            cut = asyncio.create_task(is_cut(reader))
            while not cut.done():
                writer.write(b"x")
                # The pace of a sender, not a wait for anything.
                await asyncio.wait([cut], timeout=SOON_SECONDS / 10)
            assert cut.result()

    asyncio.run(scenario())


def test_a_second_request_has_a_deadline_from_its_first_byte():
    async def scenario():
        async with serving(headers_seconds=SOON_SECONDS) as served:
            reader, writer = await served.connect(GET)
            assert (await response(reader)).startswith(b"HTTP/1.1 200")
            # Between requests it stays: longer than another takes to be ended.
            other, _ = await served.connect()
            assert await is_cut(other)
            writer.write(GET)
            assert (await response(reader)).startswith(b"HTTP/1.1 200")
            writer.write(b"G")
            assert await is_cut(reader)

    asyncio.run(scenario())


def test_what_is_answered_before_its_body_came_does_not_stay_for_the_body():
    async def scenario():
        async with serving(headers_seconds=SOON_SECONDS) as served:
            reader, writer = await served.connect(post(2**30, b"x"))
            assert (await response(reader)).startswith(b"HTTP/1.1 413")
            writer.write(b"x")
            assert await is_cut(reader)

    asyncio.run(scenario())


def test_a_stream_outlives_every_deadline():
    async def scenario():
        async with serving(headers_seconds=SOON_SECONDS, body_seconds=SOON_SECONDS) as served:
            reader, writer = await served.connect()
            for byte in GET.replace(b"/ ", b"/stream "):
                writer.write(bytes([byte]))
                await asyncio.sleep(0)  # so that it comes in many parts
            await reader.readuntil(b"one\n")
            other, _ = await served.connect()
            assert await is_cut(other)
            served.asked.set()
            await reader.readuntil(b"two\n")

    asyncio.run(scenario())


def test_a_body_that_does_not_come_is_408():
    async def scenario():
        async with serving(body_seconds=SOON_SECONDS) as served:
            reader, _ = await served.connect(post(1000, MESSAGE))
            assert (await response(reader)).startswith(b"HTTP/1.1 408")
            assert await is_cut(reader)

    asyncio.run(scenario())


# Room for bodies


def test_bodies_beyond_the_room_are_503_and_small_ones_are_not():
    async def scenario():
        async with serving(room=10_000) as served:
            holder, writer = await served.connect(post(10_000, large(10_000)[:-1]))
            refused = b""
            while b" 503 " not in refused:  # until the holder's body was read
                refused = await served.ask(post(9_000, large(9_000)))
            small = await served.ask(post(len(MESSAGE), MESSAGE))
            writer.write(b"}")
            held = await response(holder)
            later = await served.ask(post(10_000, large(10_000)))

        assert b"retry-after: 1\r\n" in refused
        for answer in (small, held, later):
            assert answer.startswith(b"HTTP/1.1 200")

    asyncio.run(scenario())


def test_a_body_has_its_room_until_its_answer_begins():
    async def scenario():
        async with serving(room=10_000) as served:
            reader, _ = await served.connect(post(10_000, large(10_000), b"/mcp?stream"))
            await reader.readuntil(b"one\n")
            assert b" 200 " in await served.ask(post(10_000, large(10_000)))

    asyncio.run(scenario())


def test_a_client_that_leaves_gives_its_room_back():
    async def scenario():
        async with serving(room=10_000) as served:
            _, writer = await served.connect(post(10_000, large(10_000)[:-1]))
            while b" 503 " not in await served.ask(post(9_000, large(9_000))):
                pass
            writer.close()
            while b" 200 " not in await served.ask(post(9_000, large(9_000))):
                pass

    asyncio.run(scenario())


# Places


def test_strangers_give_way_and_who_asked_before_stays():
    async def scenario():
        async with serving(places=3) as served:
            known, writer = await served.connect(GET)
            await response(known)
            strangers = [await served.connect() for _ in range(10)]
            for reader, _ in strangers[:8]:
                assert await is_cut(reader)
            assert (await served.ask(GET)).startswith(b"HTTP/1.1 200")
            writer.write(GET)
            assert (await response(known)).startswith(b"HTTP/1.1 200")

    asyncio.run(scenario())


def test_who_is_served_does_not_give_way():
    async def scenario():
        async with serving(places=1) as served:
            reader, _ = await served.connect(GET.replace(b"/ ", b"/stream "))
            await reader.readuntil(b"one\n")
            refused = await served.ask(b"")
            served.asked.set()
            await reader.readuntil(b"two\n")

        assert refused.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1\r\n" in refused

    asyncio.run(scenario())


def test_who_does_not_read_gives_way():
    async def scenario():
        async with serving(places=1) as served:
            reader, _ = await served.connect(GET.replace(b"/ ", b"/flood "))
            await reader.readuntil(b"\r\n\r\n")
            # At first it may be thought to read: more fits into the buffers in between.
            while b" 200 " not in await served.ask(GET):
                pass
            with contextlib.suppress(ConnectionResetError):
                while await reader.read(2**20):
                    pass

    asyncio.run(scenario())


# Descriptors


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"rubbish\r\n\r\n", b"400"),
        (
            GET.replace(b"\r\n\r\n", b"\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
            b"404",
        ),
    ],
    ids=["rubbish", "upgrade"],
)
def test_what_strangers_get_wrong_costs_no_word(shared_data_dir, sent, status):
    with HttpServer(shared_data_dir, "--no-worker") as server:
        with socket.create_connection((server.host, server.port), 30) as stranger:
            stranger.sendall(sent)
            assert stranger.recv(100).startswith(b"HTTP/1.1 " + status)
        assert server.end() == 0
        assert server.stderr().count("\n") == 1


def test_the_limit_of_descriptors_is_raised(shared_data_dir):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with HttpServer(shared_data_dir, "--no-worker") as server:
            raised, _ = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert raised == min(hard, CONNECTIONS_MAX + DESCRIPTORS_RESERVED)


def test_the_real_server_outlives_more_silent_strangers_than_descriptors(shared_data_dir):
    descriptors = 256
    with HttpServer(shared_data_dir, "--no-worker") as server, contextlib.ExitStack() as strangers:
        with server.client() as client:
            client.think(thought("before"))
        hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (descriptors, hard))
        said = server.stderr()

        for _ in range(2 * descriptors):
            strangers.enter_context(socket.create_connection((server.host, server.port), 30))

        with server.client() as client:
            assert client.get("/healthz").status == 200
            assert client.think(thought("after")).outcome == "answered"
        assert server.stderr() == said


def test_without_descriptors_it_says_so_once_and_goes_on(shared_data_dir):
    with HttpServer(shared_data_dir, "--no-worker") as server, contextlib.ExitStack() as strangers:
        with server.client() as client:
            client.think(thought("before"))
        hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
        # As few as it has at least one place for, and no reserve.
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (10, hard))
        waiting = [
            strangers.enter_context(socket.create_connection((server.host, server.port), 30))
            for _ in range(50)
        ]
        server.wait_for("descriptors")
        resource.prlimit(
            server.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS_RESERVED + 100, hard)
        )

        with server.client() as client:
            assert client.get("/healthz").status == 200
        assert len(waiting) == 50
        assert server.stderr().count("\n") == 2


def test_other_errors_of_the_event_loop_keep_their_traceback(caplog):
    async def scenario():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(Exhaustion().handle)
        loop.call_exception_handler({"message": "odd", "exception": OSError(errno.EMFILE, "many")})
        loop.call_soon(lambda: 1 // 0)
        done = asyncio.Event()
        loop.call_soon(done.set)
        await done.wait()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())

    assert [type(r.exc_info[1]) for r in caplog.records] == [OSError, ZeroDivisionError]
