"""The fields of records as the classes of the records annotate them, with the types of Kafka's schema files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints
from uuid import UUID

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


_KINDS: Final = {
    bool: Kind.BOOL,
    float: Kind.FLOAT64,
    UUID: Kind.UUID,
    str: Kind.STRING,
    bytes: Kind.BYTES,
}
Int8: TypeAlias = Annotated[int, Kind.INT8]
Int16: TypeAlias = Annotated[int, Kind.INT16]
UInt16: TypeAlias = Annotated[int, Kind.UINT16]
Int32: TypeAlias = Annotated[int, Kind.INT32]
Int64: TypeAlias = Annotated[int, Kind.INT64]


class Since(msgspec.Struct, frozen=True):
    """Annotates a field with the first version that has it."""

    version: int


class Tag(msgspec.Struct, frozen=True):
    """Annotates a tagged field with its number. It is left out if it has its default."""

    number: int


class Field(msgspec.Struct, frozen=True):
    """A field: ``since`` is the first version that has it.

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


@cache
def table_of(record: type[msgspec.Struct]) -> Table:
    """The table of a record class. Its newest version is the last version that has added a field."""
    hints = get_type_hints(record, include_extras=True)
    fields = tuple(_field(name, hints[name]) for name in record.__struct_fields__)
    nested = (field.kind.latest for field in fields if isinstance(field.kind, Table))
    return Table(record, fields, max([*(field.since for field in fields), *nested], default=0))


def _field(name: str, hint: Any) -> Field:
    metadata = getattr(hint, "__metadata__", ())
    since = next((item.version for item in metadata if isinstance(item, Since)), 0)
    tag = next((item.number for item in metadata if isinstance(item, Tag)), None)
    value = hint.__origin__ if metadata and not isinstance(metadata[0], Kind) else hint
    nullable = get_origin(value) in (Union, UnionType)
    if nullable:
        (value,) = (member for member in get_args(value) if member is not NoneType)
    array = get_origin(value) is tuple
    return Field(name, _kind_of(get_args(value)[0] if array else value), array, since, nullable, tag)


def _kind_of(value: Any) -> Kind | Table:
    kind = next((item for item in getattr(value, "__metadata__", ()) if isinstance(item, Kind)), None)
    if kind is not None:
        return kind
    return table_of(value) if issubclass(value, msgspec.Struct) else _KINDS[value]
