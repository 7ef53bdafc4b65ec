"""``/openapi.json`` describes every page, and the pages are as it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import jsonschema
import msgspec
import pytest
from kframe_console.pages.page import ActionPage, ConsolePage, TablePage
from kframe_console.routes import PAGES
from starlette.testclient import TestClient

from kframe.plugin.snapshot import Snapshot

Question: TypeAlias = Callable[[ConsolePage], dict[str, str]]


def has_no_question(page: ConsolePage) -> bool:
    """Whether a page needs no parameters but those of a partition."""
    if isinstance(page, ActionPage) or page.path in ("/plans/generate", "/groups"):
        return False
    return {field.name for field in msgspec.structs.fields(page.parameters) if field.required} <= {"topic", "partition"}


@pytest.fixture
def description(client: TestClient) -> dict[str, Any]:
    described: dict[str, Any] = client.get("/openapi.json").json()
    return described


def schema_of(description: dict[str, Any], path: str, status: str) -> dict[str, Any]:
    content = description["paths"][path]["get"]["responses"][status]["content"]["application/json"]["schema"]
    return {**content, "components": description["components"]}


def test_every_page_is_described(description: dict[str, Any]) -> None:
    assert description["openapi"] == "3.1.0"
    assert list(description["paths"]) == list(dict.fromkeys(page.path for page in PAGES))
    for page in PAGES:
        operation = description["paths"][page.path]["post" if isinstance(page, ActionPage) else "get"]
        assert operation["operationId"] == page.name
        parameters = {parameter["name"]: parameter for parameter in operation["parameters"]}
        formats = parameters["format"]["schema"]["enum"]
        assert formats == ["html", "json", "csv", "parquet"][: 4 if isinstance(page, TablePage) else 2]
        in_path = {name for name, parameter in parameters.items() if parameter["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", page.path))


@pytest.mark.parametrize("page", [page for page in PAGES if has_no_question(page)], ids=lambda page: page.name)
def test_content_is_as_described(
    client: TestClient, snapshot: Snapshot, description: dict[str, Any], page: Any, question: Question
) -> None:
    path = page.path.format(topic=snapshot.topics.names[0], partition=0)
    content = client.get(path, params={"format": "json", **question(page)}).json()
    jsonschema.validate(content, schema_of(description, page.path, "200"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "schema": "other"}, schema_of(description, page.path, "200"))


def test_refusal_is_as_described(client: TestClient, description: dict[str, Any]) -> None:
    content = client.get("/partitions?format=json&leader=x").json()
    jsonschema.validate(content, schema_of(description, "/partitions", "400"))


def test_described_filters_are_columns(client: TestClient, description: dict[str, Any], question: Question) -> None:
    for page in PAGES:
        if isinstance(page, TablePage) and has_no_question(page):
            parameters = description["paths"][page.path]["get"]["parameters"]
            row = client.get(page.path, params={"format": "json", "count": "1", **question(page)}).json()["rows"][0]
            assert set(row) <= {parameter["name"] for parameter in parameters}
