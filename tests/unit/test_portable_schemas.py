"""What the clients' model APIs impose on a schema: one plain type a field, and nothing clever."""

import json

import pytest
from mcp_types import ListToolsResult

from mcp_server.chains.schemas import CHAINS_TOOLS
from mcp_server.memory.schemas import MEMORY_TOOLS
from mcp_server.tools.compat import SEQUENTIALTHINKING
from mcp_server.tools.critical import CRITICALTHINKING
from mcp_server.tools.kodegen import SEQUENTIAL_THINKING

COMPAT = [SEQUENTIALTHINKING]
TOOLS = [*COMPAT, *CHAINS_TOOLS, CRITICALTHINKING, SEQUENTIAL_THINKING, *MEMORY_TOOLS]
COMPAT_CHARACTERS_MAX = 4_700
NAME_CHARACTERS_MAX = 24
A_MAP = "Mean confidence of each branch"
DESCRIPTION_CHARACTERS_MAX = 2_000
ALLOWED = {
    *("type", "properties", "required", "description", "enum", "minimum", "maximum"),
    *("items", "default"),
}
SCHEMAS = [
    pytest.param(schema, id=f"{tool.name} {side}")
    for tool in TOOLS
    for side, schema in (("input", tool.input_schema), ("output", tool.output_schema))
    if schema is not None
]


def nodes(schema):
    """The schema and every schema in it."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    if "items" in schema:
        yield from nodes(schema["items"])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_is_an_object_of_plain_fields(schema):
    assert schema["type"] == "object"
    assert set(schema.get("required", ())) <= set(schema["properties"])
    for node in nodes(schema):
        assert set(node) <= ALLOWED
        assert isinstance(node["type"], str)
        assert node.get("default", "") is not None
        if node["type"] == "array":
            assert "items" in node
        if node["type"] == "object":
            # An answer, which no model API is told about, may have a map with names of its own.
            assert node.get("properties") or node["description"].startswith(A_MAP)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_field_is_described(schema):
    assert all(field.get("description") for field in schema["properties"].values())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_named_shortly_described_and_annotated(tool):
    assert len(tool.name) <= NAME_CHARACTERS_MAX
    assert tool.title
    assert 0 < len(tool.description) <= DESCRIPTION_CHARACTERS_MAX
    assert tool.annotations.read_only_hint is not None
    assert tool.annotations.destructive_hint is not None


def test_the_list_of_the_compatible_toolset_is_small():
    listed = ListToolsResult(tools=COMPAT).model_dump(by_alias=True, exclude_none=True, mode="json")

    assert len(json.dumps(listed, ensure_ascii=False)) <= COMPAT_CHARACTERS_MAX
