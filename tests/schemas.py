"""Validate documents by the JSON Schemas of kframe and its plugins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from kframe.cli.documents.registry import DOCUMENTS, json_schema
from kframe.registry.registry import build_registry
from kframe.registry.specs import DocumentSpec


@cache
def documents() -> Mapping[str, DocumentSpec]:
    """Every document, with those of installed plugins."""
    return {**DOCUMENTS, **build_registry().documents}


@cache
def validator(name: str) -> Draft202012Validator:
    """The validator of a document, whose schema is valid itself."""
    schema = json_schema(documents()[name])
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def problems(document: Any, name: str) -> list[str]:
    """Return what the schema called ``name`` refuses in a document."""
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(name).iter_errors(document)]


def assert_valid(document: Mapping[str, Any], name: str) -> None:
    """Require the document called ``name``, valid by its schema."""
    assert (document["schema"], problems(document, name)) == (name, [])
