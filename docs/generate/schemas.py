"""Reference of documents and files, from their JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from docs.generate.markdown import code, escape, table
from kframe.cli.documents.registry import DOCUMENTS, json_schema

Schema: TypeAlias = Mapping[str, Any]

_NAMES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
#: Values of an enumeration that a table lists.
VALUES_MAX: Final = 12
SCENARIO: Final = "kframe.scenario/v1"


def documents() -> str:
    """Return a section for each document and file, except scenarios. A type is in the first section that needs it."""
    sections, described = [], dict[str, str]()
    for name in sorted(DOCUMENTS):
        if name != SCENARIO:
            sections.append(f"## {name}\n\n{_types(json_schema(DOCUMENTS[name]), described)}")
            described |= dict.fromkeys(_objects(json_schema(DOCUMENTS[name])) - described.keys(), name)
    return "\n\n".join(sections)


def scenario_format() -> str:
    """Return the types of a scenario file."""
    return _types(json_schema(DOCUMENTS[SCENARIO]), {})


def _types(schema: Schema, described: Mapping[str, str]) -> str:
    """The fields of a document and of its types, without those in the sections ``described`` by type."""
    definitions: dict[str, Schema] = dict(schema["$defs"])
    root = definitions.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    parts = [root.get("description", ""), _fields(root, definitions)]
    names = sorted(_objects(schema) & definitions.keys())
    for name in names:
        if name not in described:
            definition = definitions[name]
            parts += [f"**{name}**: {definition.get('description', '')}", _fields(definition, definitions)]
    references = [f"{name}: see {described[name]}." for name in names if name in described]
    return "\n\n".join(filter(None, [*parts, "\n".join(references)]))


def _objects(schema: Schema) -> set[str]:
    """The types of a document that have fields."""
    return {name for name, definition in schema["$defs"].items() if definition.get("properties")}


def _fields(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        [
            code(name),
            type_text(field, definitions),
            "yes" if name in required else "",
            "; ".join(dict.fromkeys(_meanings(field))),
        ]
        for name, field in schema["properties"].items()
    ]
    header = ["field", "type", "required", "meaning"]
    described = any(row[3] for row in rows)
    return table(header if described else header[:3], rows if described else [row[:3] for row in rows])


def type_text(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """Return the Markdown of a type: its name, its values, or what it consists of."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        definition = definitions.get(name, {})
        return name if "properties" in definition or not definition else type_text(definition, definitions)
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        shown, others = schema["enum"][:VALUES_MAX], schema["enum"][VALUES_MAX:]
        return ", ".join(map(code, shown)) + (f" and {len(others)} others" if others else "")
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_text(part, definitions) for part in schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(_NAMES[part] for part in kind)
    if kind == "array":
        return f"list of {type_text(schema.get('items') or {}, definitions)}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"map to {type_text(values, definitions)}" if isinstance(values, dict) else "map"
    return _NAMES.get(str(kind), "any value")


def _meanings(schema: Schema) -> Iterator[str]:
    """Return the descriptions of a field and of its alternatives, without those of the named types."""
    if "description" in schema:
        yield escape(schema["description"])
    for part in schema.get("anyOf", ()):
        if "$ref" not in part:
            yield from _meanings(part)
