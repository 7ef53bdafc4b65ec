"""The description of all pages as OpenAPI 3.1, from the types of their parameters and contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from kframe_console.pages.page import ActionPage, ConsolePage, ContentPage, TablePage, TableWindow
from kframe_console.tables.query import COUNT, COUNT_MAX, FIRST, SORT
from kframe_console.web.parameters import AT, FORMAT
from kframe_console.web.responses import CONTENT_FORMATS, JSON, MEDIA_TYPES, TABLE_FORMATS

_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer", "minimum": 0}
_FORM: Final = "application/x-www-form-urlencoded"
_REFUSALS: Final = {
    "400": "A parameter cannot be used.",
    "401": "A login is required.",
    "403": "The user may not do this.",
    "404": "There is no such thing.",
    "503": "Too busy: try again later.",
}


class ConsoleError(Struct):
    """Why a request is refused. ``parameter`` names the parameter at fault, if one is."""

    error: str
    parameter: str | None


ERROR_SCHEMA: Final = "kframe.console-error/v1"


def openapi_document(pages: Iterable[ConsolePage]) -> dict[str, Any]:
    """The document of ``/openapi.json``."""
    pages = tuple(pages)
    types = [ConsoleError, *(_content_type(page) for page in pages)]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    error, *contents = schemas
    paths: dict[str, Any] = {}
    for page, content in zip(pages, contents, strict=True):
        method = "post" if isinstance(page, ActionPage) else "get"
        operation = _operation(page, _with_schema(page.schema, content), _with_schema(ERROR_SCHEMA, error))
        paths.setdefault(page.path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kframe console",
            "version": "1",
            "description": "Each page of the console as data: add format=json to its address.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def _content_type(page: ConsolePage) -> Any:
    if isinstance(page, TablePage):
        return TableWindow[page.row]  # type: ignore[name-defined]
    assert isinstance(page, ContentPage | ActionPage)
    return page.content


def _with_schema(schema: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "allOf": [
            dict(content),
            {"properties": {"schema": {"const": schema}}, "required": ["schema"], "type": "object"},
        ]
    }


def _operation(page: ConsolePage, content: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    formats = TABLE_FORMATS if isinstance(page, TablePage) else CONTENT_FORMATS
    media = {MEDIA_TYPES[name]: {"schema": content if name == "json" else _TEXT} for name in formats}
    refusal = {JSON: {"schema": error}, MEDIA_TYPES["html"]: {"schema": _TEXT}}
    body: dict[str, Any] = {}
    if isinstance(page, ActionPage):
        body = {
            "requestBody": {
                "content": {JSON: {"schema": _parameter_types(page)}, _FORM: {"schema": _parameter_types(page)}}
            }
        }
    return {
        "operationId": page.name,
        **body,
        "summary": page.doc,
        "parameters": [
            *_parameters(page),
            _query(AT, _TEXT, "A position of the source's history; the newest if empty."),
            _query(FORMAT, {"enum": list(formats), "default": "html"}, "The format of the response."),
        ],
        "responses": {
            "200": {"description": page.title, "content": media},
            **{status: {"description": text, "content": refusal} for status, text in _REFUSALS.items()},
        },
    }


def _parameter_types(page: ConsolePage) -> dict[str, Any]:
    types: dict[str, Any] = msgspec.json.schema_components([page.parameters])[1][page.parameters.__name__]
    return types


def _parameters(page: ConsolePage) -> Iterator[dict[str, Any]]:
    yield from _page_parameters(page, _parameter_types(page)["properties"])
    if isinstance(page, TablePage):
        for field in msgspec.structs.fields(page.row):
            yield _query(field.encode_name, _TEXT, f"A filter of {field.encode_name}.")
        yield _query(SORT, _TEXT, "Columns with commas; a minus before one sorts it downwards.")
        yield _query(FIRST, _WHOLE, "The number of the first row.")
        yield _query(COUNT, {**_WHOLE, "maximum": COUNT_MAX}, "Most rows.")


def _page_parameters(page: ConsolePage, properties: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for field in msgspec.structs.fields(page.parameters):
        name = field.encode_name
        if isinstance(page, ActionPage) and f"{{{name}}}" not in page.path:
            continue  # It is in the body.
        is_in_path = f"{{{name}}}" in page.path
        yield {
            "name": name,
            "in": "path" if is_in_path else "query",
            "required": is_in_path or field.required,
            "schema": properties[name],
        }


def _query(name: str, schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": dict(schema), "description": text}
