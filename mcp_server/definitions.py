"""Parts that definitions of tools are made of.  The rules for schemas are those of ``schemas``."""

from typing import Any

from mcp_types import Tool, ToolAnnotations

Schema = dict[str, Any]


def text(description: str, *choices: str) -> Schema:
    """A field of text; one of *choices*, if there are any."""
    field = {"type": "string", "description": description}
    return {**field, "enum": list(choices)} if choices else field


def number(description: str) -> Schema:
    """A field of a whole number; that it is positive goes without saying."""
    return {"type": "integer", "description": description}


def flag(description: str) -> Schema:
    """A field that is true or false."""
    return {"type": "boolean", "description": description}


def tool(
    name: str,
    title: str,
    description: str,
    properties: Schema,
    *,
    required: tuple[str, ...] = (),
    read_only: bool = False,
) -> Tool:
    """A tool without an output schema: it would cost as much, and an answer is read anyway."""
    hints = (
        ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
        if read_only
        else ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    )
    schema: Schema = {"type": "object", "properties": properties}
    return Tool(
        name=name,
        title=title,
        description=description,
        input_schema={**schema, "required": list(required)} if required else schema,
        annotations=hints,
    )
