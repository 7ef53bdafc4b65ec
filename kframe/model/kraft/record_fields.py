"""Descriptions of the fields of records, from Kafka's schema files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import msgspec


class Kind(Enum):
    """Kafka's primitive types: the name in the schema, and the smallest size in bytes."""

    BOOL = "bool", 1
    INT8 = "int8", 1
    INT16 = "int16", 2
    UINT16 = "uint16", 2
    INT32 = "int32", 4
    INT64 = "int64", 8
    FLOAT64 = "float64", 8
    UUID = "uuid", 16
    STRING = "string", 1
    BYTES = "bytes", 1

    @property
    def size(self) -> int:
        """The smallest size of a value in bytes."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: ``since`` is the first version that has it. A tagged field is left out if it has its default.

    ``kind`` is the type of the value, or of the elements if ``array``.
    """

    name: str
    kind: Kind | Table
    array: bool = False
    since: int = 0
    nullable: bool = False
    tag: int | None = None

    @property
    def json_name(self) -> str:
        """The name in Kafka's schema and JSON: camel case, first letter in lower case."""
        first, *others = self.name.split("_")
        return first + "".join(part.capitalize() for part in others)


@dataclass(frozen=True)
class Table:
    """The fields of a record or nested struct, in the order of the schema, and its newest version."""

    record: type[msgspec.Struct]
    fields: tuple[Field, ...]
    latest: int = 0

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The default of each field that has one: those of the record class, which are the schema's."""
        return {
            field.name: field.default
            for field in msgspec.structs.fields(self.record)
            if field.default is not msgspec.NODEFAULT
        }
