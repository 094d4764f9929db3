"""Streamable HTTP over real sockets: both eras, no state, who may come in, and a clean end."""

import concurrent.futures
import hashlib
import http.client
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from projections.thoughts import Thoughts
from tests.acceptance.client import REPOSITORY, Server, clean_environment, thought
from tests.acceptance.http_server import ACCEPT, LEGACY, MODERN, HttpServer, seconds_of
from tests.acceptance.product import (
    assert_cannot_answer,
    children,
    database,
    eventually,
    is_one_clear_sentence,
    postmaster,
    read_log,
    replay,
    run,
    run_well,
    texts,
)

ROUTES = ["/mcp", "/healthz", "/readyz", "/metrics", "/nothing", "/"]
END_SECONDS_MAX = 3.0
HASHED = hashlib.sha256(b"hashed-secret").hexdigest()
TOKENS = f"""
# name   scopes      token
writer   read,write  writer-secret

reader   read        reader-secret
feeder   write       feeder-secret
root     admin       sha256:{HASHED}
"""


@pytest.fixture(scope="module")
def shared(shared_data_dir):
    """One server for the tests that do not end it."""
    with HttpServer(shared_data_dir, "--no-worker") as server:
        yield server


@pytest.fixture(scope="module")
def guarded(shared_data_dir, tmp_path_factory):
    """One server that asks for tokens."""
    with HttpServer(
        shared_data_dir, "--no-worker", "--tokens-file", tokens_file(tmp_path_factory.mktemp("t"))
    ) as server:
        yield server


def tokens_file(directory, text=TOKENS, mode=0o600):
    path = directory / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


# The drop-in tool


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_chain_is_thought_to_its_end(shared, shared_data_dir, era):
    with shared.client(era=era) as client:
        first = client.think(thought("one", 1))
        chain = first["chain_id"]
        second = client.think(thought("two", 2, chain_id=chain))
        branched = client.think(
            thought("b", 3, chain_id=chain, branchFromThought=1, branchId="other")
        )
        last = client.think(thought("end", 3, more=False, chain_id=chain))

    assert list(first.structured) == [
        "thoughtNumber",
        "totalThoughts",
        "nextThoughtNeeded",
        "branches",
        "thoughtHistoryLength",
        "chain_id",
    ]
    lengths = [a["thoughtHistoryLength"] for a in (first, second, branched, last)]
    assert lengths == [1, 2, 3, 4]
    assert branched["branches"] == last["branches"] == ["other"]
    assert {a["chain_id"] for a in (second, branched, last)} == {chain}
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "two", "b", "end"]


def test_the_handshake_of_the_legacy_era(shared):
    with shared.client(era=LEGACY) as client:
        result = client.initialize()
        tools = client.ask("tools/list", {})["result"]["tools"]

    assert result["protocolVersion"] == LEGACY
    assert result["serverInfo"]["name"] == "thought-ledger"
    assert tools[0]["name"] == "sequentialthinking"
    assert "current one" not in json.dumps(tools)


def test_the_modern_era_discovers_and_names_its_client(shared, shared_data_dir):
    with shared.client() as client:
        discovered = client.ask("server/discover", {})["result"]
        chain = client.think(thought("who?"))["chain_id"]

    assert MODERN in discovered["supportedVersions"]
    with database(shared_data_dir) as connection:
        (started, _) = (e for e in read_log(connection) if e.chain == chain)
    assert started.header["client"] == started.header["actor"] == "tests"


@pytest.mark.parametrize(
    "said",
    [
        thought("two", 2),
        thought("revised", 1, isRevision=True),
        thought("revised", 1, revisesThought=1),
        thought("branched", 1, branchFromThought=1, branchId="b"),
    ],
)
def test_a_thought_that_names_no_chain_is_refused_unless_it_starts_one(shared, said):
    with shared.client() as client:
        client.think(thought("somebody's chain"))

        answer = client.think(said)

    assert answer.outcome == "isError"
    assert is_one_clear_sentence(answer.text)
    assert "chain_id" in answer.text
    assert "thought 1" in answer.text


def test_clients_without_chain_ids_never_mix(shared, shared_data_dir):
    def think(name):
        with shared.client(era=(LEGACY, MODERN)[name % 2]) as client:
            chain = client.think(thought(f"{name} 1"))["chain_id"]
            for number in range(2, 6):
                answer = client.think(thought(f"{name} {number}", number, chain_id=chain))
                assert answer["thoughtHistoryLength"] == number
            return chain

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        chains = list(pool.map(think, range(8)))

    assert len(set(chains)) == 8
    for name, chain in enumerate(chains):
        said = texts(replay(chain, data_dir=shared_data_dir))
        assert said == [f"{name} {number}" for number in range(1, 6)]


def test_a_request_id_sent_again_is_recorded_once(shared, shared_data_dir):
    with shared.client() as client, shared.client(era=LEGACY) as other:
        said = thought("once", requestId="http-once")
        first = client.think(said)
        again = client.think(said)
        chain = first["chain_id"]
        later = thought("then", 2, chain_id=chain, requestId="http-then")
        assert client.think(later).structured == client.think(later).structured

        # Who has no token is whoever the client says, and ids are everybody's own.
        assert other.think(said)["chain_id"] != chain

    assert again.structured == first.structured
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["once", "then"]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_restart_between_calls_loses_nothing(data_dir, era):
    with HttpServer(data_dir) as server, server.client(era=era) as client:
        if era == LEGACY:
            client.initialize()
        chain = client.think(thought("before", 1))["chain_id"]
        port = server.port
        assert server.end() == 0
        with HttpServer(data_dir, port=port):
            client.connection.close()  # as a client's pool does with a connection that was cut
            after = client.think(thought("after", 2, chain_id=chain))

    assert after["thoughtHistoryLength"] == 2
    assert texts(replay(chain, data_dir=data_dir)) == ["before", "after"]


def test_stdio_and_http_share_a_chain(shared, shared_data_dir):
    with Server(shared_data_dir, "--no-worker") as stdio, shared.client() as client:
        chain = client.think(thought("over http"))["chain_id"]

        answer = stdio.think("over stdio", 2, chain_id=chain)

    assert answer["thoughtHistoryLength"] == 2


# Who may come in


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_foreign_host_or_origin_is_turned_away_on_every_route(shared, guarded, method, route):
    for server in (shared, guarded):
        with server.client() as client:
            for host in (
                "evil.example",
                "evil.example:8765",
                "localhost.evil.example",
                "[::2]",
                "",
            ):
                assert client.request(method, route, headers={"Host": host}).status == 421, host
            for origin in (
                "http://evil.example",
                "null",
                "http://localhost.evil.example",
                "file://",
            ):
                response = client.request(method, route, headers={"Origin": origin})
                assert response.status == 403, origin


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_loopback_names_are_ours_with_any_port(shared, name):
    with shared.client() as client:
        for host in (name, f"{name}:1", f"{name}:65535"):
            assert client.get("/healthz", Host=host, Origin=f"http://{host}").status == 200


def test_an_allowed_host_is_ours(shared_data_dir):
    names = ["--allowed-host", "ledger.example", "--allowed-host", "other.example:8443"]
    with HttpServer(shared_data_dir, "--no-worker", *names) as server, server.client() as client:
        for host in ("ledger.example", "ledger.example:9", "other.example:8443", "localhost"):
            assert client.get("/healthz", Host=host, Origin=f"https://{host}").status == 200
        for host in ("other.example", "other.example:9", "a.ledger.example"):
            assert client.get("/healthz", Host=host).status == 421


@pytest.mark.parametrize("route", [r for r in ROUTES if r != "/healthz"])
def test_without_a_token_every_route_but_healthz_is_closed(guarded, route):
    with guarded.client() as client:
        response = client.get(route)
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        assert "error" not in response.headers["WWW-Authenticate"]
        for wrong in ("Bearer nonsense", "Bearer ", "Bearer writer-secre", "bearer \xff\xfe"):
            response = client.get(route, Authorization=wrong)
            assert response.status == 401
            assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
        assert client.get(route, Authorization="Basic d3JpdGVyLXNlY3JldA==").status == 401
        assert client.get("/healthz").status == 200


@pytest.mark.parametrize(
    ("token", "status", "outcome"),
    [
        ("writer-secret", 200, "answered"),
        ("reader-secret", 200, "isError"),
        ("feeder-secret", 403, "answered"),
        ("hashed-secret", 200, "answered"),
    ],
)
def test_what_a_tokens_scopes_allow(guarded, token, status, outcome):
    with guarded.client(token=token) as client, guarded.client(token=token, era=LEGACY) as legacy:
        for route in ("/readyz", "/metrics"):
            response = client.get(route)
            assert response.status == status
            if status == 403:
                assert 'error="insufficient_scope"' in response.headers["WWW-Authenticate"]
        for each in (client, legacy):
            assert each.ask("tools/list", {})["result"]["tools"]
            answer = each.think(thought("may I?"))
            assert answer.outcome == outcome
            if outcome == "isError":
                assert "write" in answer.text
                assert is_one_clear_sentence(answer.text)


def test_the_tokens_name_is_the_actor(guarded, shared_data_dir):
    chains = []
    for token in ("writer-secret", "hashed-secret"):
        with guarded.client(token=token) as client:
            chains.append(client.think(thought("who?"))["chain_id"])

    with database(shared_data_dir) as connection:
        actors = {e.chain: e.header["actor"] for e in read_log(connection)}
    assert [actors[chain] for chain in chains] == ["writer", "root"]


def test_tokens_from_the_environment_stay_out_of_other_processes(data_dir):
    env = {"THOUGHT_LEDGER_TOKENS": "env read,write environment-secret"}
    with (
        HttpServer(data_dir, env=env) as server,
        server.client(token="environment-secret") as client,
    ):
        eventually(lambda: client.get("/readyz").status == 200, what="a database that answers")
        with server.client() as stranger:
            assert stranger.get("/readyz").status == 401
        eventually(lambda: children(server.process.pid), what="the worker")
        for pid in [*children(server.process.pid), postmaster(data_dir)]:
            assert b"environment-secret" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("a read,write a-long-secret", 0o644),
        ("a read,write a-long-secret", 0o620),
        ("a read,write", 0o600),
        ("a read,fly a-long-secret", 0o600),
        ("a read sha256:12", 0o600),
        ("a read short", 0o600),
        ("a read one-secret-of-two\nb write one-secret-of-two", 0o600),
        ("# nobody", 0o600),
    ],
)
def test_tokens_that_cannot_be_trusted_are_refused(tmp_path, text, mode):
    said = assert_cannot_answer(
        refused(tmp_path, "--tokens-file", tokens_file(tmp_path, text, mode))
    )

    assert "secret" not in said


def test_an_empty_variable_of_tokens_does_not_open_the_door(tmp_path):
    assert_cannot_answer(refused(tmp_path, env={"THOUGHT_LEDGER_TOKENS": ""}))


# Sizes, probes, numbers


def test_a_body_over_4_mib_is_413_and_the_server_goes_on(shared):
    with shared.client() as client:
        client.connection.putrequest("POST", "/mcp")
        client.connection.putheader("Content-Type", "application/json")
        client.connection.putheader("Content-Length", str(4 * 2**20 + 1))
        client.connection.endheaders()
        response = client.connection.getresponse()
        assert (response.status, str(4 * 2**20) in response.read().decode()) == (413, True)
    with socket.create_connection((shared.host, shared.port), timeout=30) as raw:
        raw.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"100000\r\n" + b" " * 2**20 + b"\r\n"
        raw.sendall(chunk * 4 + b"1\r\n \r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 413")
    with shared.client() as client:
        assert client.think(thought("x" * 2**20)).outcome == "answered"
        assert client.think(thought("x" * (2**20 + 1))).outcome == "isError"


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_half_a_character_is_no_reason_to_refuse_a_thought(shared, shared_data_dir, era):
    with shared.client(era=era) as client:
        chain = client.think(thought("an emoji cut in two: \ud83e"))["chain_id"]

    with database(shared_data_dir) as connection:
        (text,) = (
            e.payload["text"] for e in read_log(connection) if e.chain == chain and e.version == 2
        )
    assert text == "an emoji cut in two: \ufffd"


def test_bytes_that_are_no_text_are_no_reason_either(shared):
    params = {"name": "sequentialthinking", "arguments": thought("X")}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Content-Type": "application/json", "Accept": ACCEPT}

    with shared.client() as client:
        response = client.request(
            "POST", "/mcp", json.dumps(message).encode().replace(b"X", b"\xff"), headers
        )

    assert (response.status, '"isError":false' in response.text) == (200, True)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc": "2.0", "id": "mine", "method": "tools/list", "params": 7}',
        b'{"jsonrpc": "2.0", "id": "mine", "method": 7}',
        b'{"jsonrpc": "2.0", "id": "mine"}',
        b'{"jsonrpc": "2.0", "id": "mine", "method": "tools/list", "params": {"cursor": NaN}}',
        b'{"jsonrpc": "2.0", "id": "mine", "method": "ping", "params": {"a": %s}}'
        % (b"[" * 300 + b"]" * 300),
        b'{"jsonrpc": "2.0", "id": "mine", "method": "ping", "params": {"a": %s}}'
        % (b"[" * 10_000 + b"]" * 10_000),
    ],
    ids=["params", "method", "no method", "NaN", "deep", "too deep"],
)
def test_what_is_no_message_is_answered_under_its_id_in_one_sentence(shared, body):
    headers = {"Content-Type": "application/json", "Accept": ACCEPT}

    with shared.client() as client:
        response = client.request("POST", "/mcp", body, headers)

    answer = json.loads(response.text)
    assert (response.status, answer["id"]) == (400, "mine")
    assert is_one_clear_sentence(answer["error"]["message"])


def test_a_client_that_leaves_within_its_request_costs_no_word(shared_data_dir):
    with HttpServer(shared_data_dir, "--no-worker") as server:
        for sent in (b"", b"{"):
            with socket.create_connection((server.host, server.port), timeout=30) as raw:
                raw.sendall(
                    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Accept: application/json, text/event-stream\r\nContent-Length: 9\r\n\r\n"
                    + sent
                )
        with server.client() as client:
            assert client.think(thought("still here")).outcome == "answered"
        assert server.end() == 0
        assert server.stderr().count("\n") == 1


def test_there_is_nothing_to_get_on_mcps_path(shared):
    with shared.client() as client:
        for method in ("GET", "DELETE", "PUT"):
            response = client.request(method, "/mcp", headers={"Accept": "text/event-stream"})
            assert response.status == 405
            assert response.headers["Allow"] == "POST"


def test_the_numbers_count_calls_refusals_and_appends(shared_data_dir):
    with HttpServer(shared_data_dir, "--no-worker") as server, server.client() as client:
        chain = client.think(thought("one"))["chain_id"]
        client.think(thought("two", 2, chain_id=chain))
        client.think(thought("three", 3))
        client.get("/healthz", Host="evil.example")
        response = client.get("/metrics")

    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in response.text.splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    calls = 'thought_ledger_calls_total{tool="sequentialthinking",outcome="%s"}'
    assert found[calls % "answered"] == 2
    assert found[calls % "refused"] == 1
    assert found["thought_ledger_appends_total"] == 2
    assert found["thought_ledger_up"] == found["thought_ledger_database_up"] == 1
    assert found["thought_ledger_position"] > 0
    assert found['thought_ledger_http_refusals_total{status="421"}'] == 1
    assert found['thought_ledger_call_seconds_count{tool="sequentialthinking"}'] == 3
    assert found['thought_ledger_call_seconds_sum{tool="sequentialthinking"}'] > 0


def test_the_numbers_tell_how_far_the_read_models_are(data_dir):
    with HttpServer(data_dir, "--no-worker") as server, server.client() as client:
        client.think(thought("one"))
        run_well("chains", data_dir=data_dir)
        client.think(thought("two"))
        text = client.get("/metrics").text

    lines = [line for line in text.splitlines() if line.startswith("thought_ledger_read_model")]
    found = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    version = Thoughts.version
    labels = f'{{read_model="thoughts",generation="1",state="live",version="{version}"}}'
    assert {
        name: found[f"thought_ledger_read_model_{name}{labels}"]
        for name in ("position", "lag_events", "parked_chains", "led")
    } == {"position": 2, "lag_events": 2, "parked_chains": 0, "led": 0}
    assert found[f"thought_ledger_read_model_lag_seconds{labels}"] > 0
    assert any('read_model="terms"' in name for name in found)


def test_without_a_database_it_lives_and_is_not_ready(data_dir):
    url = ["--database-url", "postgresql://nobody@127.0.0.1:1/none"]
    with HttpServer(data_dir, *url) as server, server.client() as client:
        assert client.get("/healthz").status == 200
        ready = client.get("/readyz")
        assert ready.status == 503
        assert is_one_clear_sentence(ready.text)
        assert "thought_ledger_database_up 0" in client.get("/metrics").text
        assert client.think(thought("lost")).outcome == "isError"
        assert server.end() == 2


# Start and end


def refused(data_dir, *arguments, **how):
    return run("serve", "--transport", "http", *arguments, data_dir=data_dir / "never-made", **how)


def test_a_port_in_use_is_one_sentence(shared, tmp_path):
    said = assert_cannot_answer(refused(tmp_path, "--port", shared.port))

    assert str(shared.port) in said
    assert not (tmp_path / "never-made").exists()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "", "a..b"])
def test_a_host_that_is_not_ours_is_one_sentence(tmp_path, host):
    env = {"THOUGHT_LEDGER_TOKENS": "a read a-long-secret"}

    assert_cannot_answer(refused(tmp_path, "--host", host, "--port", 0, env=env))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_others_are_not_let_in_without_tokens(tmp_path, host):
    assert "token" in assert_cannot_answer(refused(tmp_path, "--host", host, "--port", 0))


def test_with_tokens_it_listens_for_others(shared_data_dir, tmp_path):
    arguments = ["--no-worker", "--host", "0.0.0.0", "--tokens-file", tokens_file(tmp_path)]
    with (
        HttpServer(shared_data_dir, *arguments) as server,
        server.client(token="writer-secret") as client,
    ):
        assert client.think(thought("from afar")).outcome == "answered"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--session", "s"],
        ["--path", "mcp"],
        ["--path", "/healthz"],
        ["--allowed-host", "http://a"],
        ["--port", "65536"],
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, arguments):
    done = refused(tmp_path, *arguments)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_another_path(shared_data_dir):
    with HttpServer(shared_data_dir, "--no-worker", "--path", "/a/b") as server:
        assert server.url.endswith("/a/b")
        with server.client(path="/a/b") as client:
            assert client.think(thought()).outcome == "answered"
            assert client.get("/mcp").status == 404


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_soon_and_cleanly(shared, shared_data_dir, number):
    with HttpServer(shared_data_dir) as server, server.client() as idle:
        assert idle.get("/readyz").status == 200  # and stays connected

        seconds = seconds_of(lambda: server.end(number))

        assert server.process.returncode == 0
        assert seconds < END_SECONDS_MAX
        assert server.stderr().count("\n") == 1


def test_a_stream_that_never_ends_does_not_keep_it(shared, shared_data_dir):
    with HttpServer(shared_data_dir, "--no-worker") as server, server.client() as client:
        client.connection.putrequest("POST", "/mcp")
        client.connection.putheader("Content-Length", "10")
        client.connection.endheaders(b"{")  # and the rest is never sent

        seconds = seconds_of(server.end)

        assert server.process.returncode == 0
        assert seconds < END_SECONDS_MAX
        assert server.stderr().count("\n") == 1


SELECT_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def test_what_is_being_recorded_at_a_signal_is_recorded_and_answered(shared, shared_data_dir):
    with (
        database(shared_data_dir) as connection,
        HttpServer(shared_data_dir, "--no-worker") as server,
        server.client() as client,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        client.think(thought("the database is open"))
        with connection.transaction():
            connection.execute("LOCK TABLE ledger.events IN EXCLUSIVE MODE")
            call = pool.submit(client.think, thought("in flight"))
            eventually(lambda: connection.execute(SELECT_WAITING).fetchone()[0])
            server.process.send_signal(signal.SIGTERM)
            eventually(lambda: not listens(server), what="the end of listening")
        chain = call.result()["chain_id"]
        assert server.process.wait(END_SECONDS_MAX) == 0
        assert chain in {e.chain for e in read_log(connection)}


def listens(server):
    try:
        socket.create_connection((server.host, server.port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    return True


def test_what_was_answered_before_a_signal_is_there(shared_data_dir, shared):
    with HttpServer(shared_data_dir, "--no-worker") as server:
        answered = []

        def think(name):
            with server.client() as client:
                try:
                    while True:
                        answered.append(client.think(thought(f"{name}"))["chain_id"])
                except (OSError, http.client.HTTPException):
                    return

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            done = [pool.submit(think, name) for name in range(4)]
            with server.client() as client:
                while len(answered) < 50:
                    assert client.get("/healthz").status == 200
            assert server.end() == 0
        for each in done:
            each.result()

    with database(shared_data_dir) as connection:
        known = {e.chain for e in read_log(connection)}
    assert set(answered) <= known


def test_stdio_does_not_import_the_web_server():
    code = (
        "import atexit, sys; from mcp_server.__main__ import main;"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr));"
        "sys.argv = ['', 'serve', '--database-url', 'postgresql://nobody@127.0.0.1:1/none'];"
        "main()"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=clean_environment(),
        timeout=60,
        check=False,
    )

    modules = set(done.stderr.split())
    assert "mcp_server.stdio" in modules
    assert not modules & {"uvicorn", "uvicorn.main", "mcp_server.web.serving"}
