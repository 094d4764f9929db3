"""``compose.yaml`` as processes of this machine: its own commands, in its own order."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from ruamel.yaml import YAML

from ledger.embedded import EmbeddedPostgres
from ledger.embedded.binaries import locate_binaries
from ledger.embedded.home import open_home
from ledger.embedded.server import run as run_as_account
from tests.acceptance.client import REPOSITORY, clean_environment
from tests.acceptance.product import COMMAND_SECONDS_MAX, eventually

FILE = REPOSITORY / "compose.yaml"
VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?::([-?])([^}]*))?\})")
# What a container has that is not in the file: where the programs are.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{locate_binaries()}{os.pathsep}{os.defpath}"
HBA = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


def read():
    """The file as it is written, merge keys followed."""
    return YAML(typ="safe").load(FILE)


def services():
    return read()["services"]


def resolved(value, variables):
    """*value* with the variables in its texts replaced, as Compose does it."""
    if isinstance(value, dict):
        return {name: resolved(inner, variables) for name, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, variables) for inner in value]
    if isinstance(value, str):
        return VARIABLE.sub(lambda match: _replaced(match, variables), value)
    return value


def _replaced(match, variables):
    name, kind, words = match.groups()
    if name is None:
        return "$"
    if variables.get(name):
        return variables[name]
    assert kind != "?", f"{name}: {words}"
    return words or ""


def in_order(found):
    """The names of services, each after those it depends on."""
    done = []
    while len(done) < len(found):
        ready = [
            name
            for name, service in found.items()
            if name not in done and set(service.get("depends_on", {})) <= set(done)
        ]
        assert ready, "services wait for each other"
        done += ready
    return done


class Deployment:
    """The services but for the database, which ``database`` starts; stopped as Compose does it."""

    def __init__(self, variables, hostaddr, port):
        self.services = resolved(services(), variables)
        # The network's name of the database leads here.
        self._network = {"PGHOSTADDR": hostaddr, "PGPORT": str(port)}
        self._running = {}
        self._logs = {}

    def up(self):
        """Start everything in its order, each when what it depends on is as it must be."""
        self.wait_until_healthy("database")
        for name in in_order(self.services):
            if name == "database":
                continue
            self._start(name)
            if self.services[name]["restart"] == "no":
                code = self._running.pop(name).wait(COMMAND_SECONDS_MAX)
                assert code == 0, f"{name} ended with {code}:\n{self.log(name)}"
            elif "healthcheck" in self.services[name]:
                self.wait_until_healthy(name)

    def wait_until_healthy(self, name):
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        eventually(lambda: self.run(name, command).returncode == 0, what=f"a healthy {name}")

    def run(self, name, command):
        """Run a command as in the container of a service."""
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
            **self._how(name),
        )

    def stop(self):
        """SIGTERM to all that run; their exit codes by name, and how long it took."""
        began = time.monotonic()
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        codes = {name: process.wait(30) for name, process in self._running.items()}
        self._running.clear()
        return codes, time.monotonic() - began

    def log(self, name):
        log = self._logs[name]
        return os.pread(log.fileno(), 10**6, 0).decode()

    def _start(self, name):
        service = self.services[name]
        self._logs[name] = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the exit
        self._running[name] = subprocess.Popen(
            [*service.get("entrypoint", []), *service["command"]],
            stdin=subprocess.DEVNULL,
            stdout=self._logs[name],
            stderr=self._logs[name],
            **self._how(name),
        )

    def _how(self, name):
        environment = self.services[name].get("environment", {})
        return {
            # Only what the file says, and where things are here.
            "env": clean_environment({**environment, **self._network, "PATH": PATH}),
            "cwd": "/",
        }

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        for process in self._running.values():
            process.kill()
            process.wait(COMMAND_SECONDS_MAX)
        for name, log in self._logs.items():
            if error is not None:
                error.add_note(f"{name} said:\n{self.log(name)}")
            log.close()


@contextlib.contextmanager
def database(data_dir, port, password):
    """What the image of PostgreSQL does: a database, and a superuser with a password, over TCP."""
    with EmbeddedPostgres(data_dir):
        pass  # makes the cluster, and programs that its account can run
    binaries = next(data_dir.glob("pg-binaries-*/*/*/bin"), locate_binaries())
    (data_dir / "pg" / "pg_hba.conf").write_text(HBA)
    home = open_home(data_dir)
    sockets = home.path / "run"
    settings = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={sockets}"
    control = [str(binaries / "pg_ctl"), "-D", str(home.cluster), "-w"]
    log = ["-l", str(home.cluster / "log")]
    started = run_as_account(home, [*control, *log, "-o", settings, "start"])
    assert started.returncode == 0, started.stdout
    try:
        where = {"host": str(sockets), "port": port, "user": "postgres"}
        with psycopg.connect(**where, dbname="thought_ledger", autocommit=True) as superuser:
            superuser.execute(psycopg.sql.SQL("ALTER ROLE postgres PASSWORD {}").format(password))
            yield superuser
    finally:
        run_as_account(home, [*control, "-m", "immediate", "stop"])
