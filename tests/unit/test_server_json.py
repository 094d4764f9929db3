"""The entry for the registry of MCP servers says what the package is."""

import json
import re
import tomllib

import pytest

from ledger.settings import ACTOR_VARIABLE, DATA_DIR_VARIABLE, DATABASE_URL_VARIABLE
from tests.acceptance.client import REPOSITORY

# The registry's own limits.
DESCRIPTION_CHARACTERS_MAX = 100
NAME_FORM = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")


@pytest.fixture(scope="module")
def entry():
    return json.loads((REPOSITORY / "server.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def test_it_is_of_the_version_and_package_of_the_project(entry, project):
    (package,) = entry["packages"]

    assert entry["version"] == package["version"] == project["version"]
    assert package["identifier"] == project["name"]
    assert package["packageArguments"][0]["value"] == "serve"


def test_it_keeps_the_limits_of_the_registry(entry):
    assert NAME_FORM.fullmatch(entry["name"])
    assert len(entry["description"]) <= DESCRIPTION_CHARACTERS_MAX


def test_its_variables_are_those_that_are_read(entry):
    names = {variable["name"] for variable in entry["packages"][0]["environmentVariables"]}

    assert names == {DATABASE_URL_VARIABLE, DATA_DIR_VARIABLE, ACTOR_VARIABLE}


def test_the_readme_proves_that_the_package_is_the_servers(entry):
    assert f"<!-- mcp-name: {entry['name']} -->" in (REPOSITORY / "README.md").read_text("utf-8")
