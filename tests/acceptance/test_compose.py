"""``compose.yaml`` keeps to the schema of Compose, and its commands really work together."""

import json
import re
import socket
import subprocess
import sys
import tomllib

import psycopg
import pytest

from tests.acceptance import compose
from tests.acceptance.client import REPOSITORY, thought
from tests.acceptance.http_server import HttpClient
from tests.acceptance.product import eventually, lines_of

STOP_SECONDS_MAX = 10
SECRETS = {
    "THOUGHT_LEDGER_OWNER_PASSWORD": "owner's secret $1",
    "THOUGHT_LEDGER_SERVER_PASSWORD": "server's secret / @",
    "THOUGHT_LEDGER_WORKER_PASSWORD": "worker's secret",
    "THOUGHT_LEDGER_TOKENS": "ada read,write a-long-secret",
}
PRODUCT = ("migrate", "server", "worker")
SELECT_THOUGHTS = "SELECT thought FROM live.thoughts"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def dockerfile():
    lines = compose.services()["server"]["build"]["dockerfile_inline"].splitlines()
    return [line.split() for line in lines if line]


def test_the_file_keeps_to_the_schema():
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [sys.executable, *command, str(compose.FILE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout


def test_no_secret_is_in_it_and_none_has_a_default():
    environments = [service.get("environment", {}) for service in compose.services().values()]
    secret = [
        value
        for environment in environments
        for name, value in environment.items()
        if "PASSWORD" in name or "TOKENS" in name
    ]

    assert len(secret) == 8
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secret)


@pytest.mark.parametrize("name", PRODUCT)
def test_what_is_ours_runs_from_one_image_and_may_do_little(name):
    found = compose.services()
    service = found[name]

    assert service["image"] == found["server"]["image"]
    assert service["image"].endswith(f":{project()['version']}")
    assert service["build"] == found["server"]["build"]
    assert (service["init"], service["read_only"], service["cap_drop"]) == (True, True, ["ALL"])
    assert [line[1] for line in dockerfile() if line[0] == "USER"] == ["ledger"]


def test_the_image_is_made_of_what_the_package_needs():
    copied = {source for line in dockerfile() if line[0] == "COPY" for source in line[1:-1]}
    packages = {"ledger", "projections", "mcp_server"}
    needed = {"pyproject.toml", "constraints.txt", project()["readme"], *project()["license-files"]}
    (install,) = (line for line in dockerfile() if line[1:3] == ["pip", "install"])

    assert copied == packages | needed
    assert all((REPOSITORY / source).exists() for source in copied)
    assert install[install.index("--constraint") + 1] == "constraints.txt"


def project():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


@pytest.fixture
def deployed(data_dir):
    """Everything up, on a PostgreSQL of its own; the deployment, its superuser and its port."""
    database_port, port = free_port(), free_port()
    variables = {**SECRETS, "THOUGHT_LEDGER_PORT": str(port)}
    password = variables["THOUGHT_LEDGER_OWNER_PASSWORD"]
    with (
        compose.database(data_dir, database_port, password) as superuser,
        compose.Deployment(variables, "127.0.0.1", database_port) as deployment,
    ):
        deployment.up()
        yield deployment, superuser, port


def test_its_commands_work_together_and_end_in_time(deployed):
    deployment, superuser, port = deployed
    with HttpClient("127.0.0.1", port, token="a-long-secret") as client:
        assert client.think(thought("from a container")).outcome == "answered"
        assert client.get("/readyz").status == 200
    with HttpClient("127.0.0.1", port) as stranger:
        assert stranger.get("/readyz").status == 401
    eventually(lambda: projected(superuser) == [("from a container",)])
    doctor = deployment.run("migrate", ["thought-ledger", "doctor", "--json"])

    codes, seconds = deployment.stop()

    assert codes == {"server": 0, "worker": 0}
    assert seconds < STOP_SECONDS_MAX
    assert doctor.returncode == 0, doctor.stdout
    for name in codes:
        assert all(json.loads(line) for line in lines_of(deployment.log(name)))


def projected(superuser):
    (exists,) = superuser.execute("SELECT to_regclass('live.thoughts') IS NOT NULL").fetchone()
    return superuser.execute(SELECT_THOUGHTS).fetchall() if exists else []


def test_the_logins_may_do_no_more_than_they_need_and_can_be_made_again(deployed):
    deployment, superuser, _ = deployed
    logins = deployment.services["logins"]
    made = deployment.run("logins", [*logins["entrypoint"], *logins["command"]])

    assert made.returncode == 0, made.stderr
    for login, secret, refused in [
        ("server", "SERVER", "DELETE FROM ledger.events"),
        ("server", "SERVER", "CREATE SCHEMA mine"),
        ("server", "SERVER", "SET ROLE thought_ledger_owner"),
        ("worker", "WORKER", "INSERT INTO ledger.events DEFAULT VALUES"),
        ("worker", "WORKER", "SET ROLE thought_ledger_writer"),
    ]:
        password = SECRETS[f"THOUGHT_LEDGER_{secret}_PASSWORD"]
        with (
            connected(superuser, login, password) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(refused)
    with pytest.raises(psycopg.OperationalError, match="password"):
        connected(superuser, "server", "another")


def connected(superuser, login, password):
    return psycopg.connect(
        host="127.0.0.1",
        port=superuser.info.port,
        dbname="thought_ledger",
        user=f"thought_ledger_{login}",
        password=password,
        autocommit=True,
    )
