"""Message layouts of Kafka's protocol, and decoding and encoding by layout.

The layouts are kio's classes, which are generated from Kafka's own message files. kio's decoder is not used: it
allocates memory for the claimed number of elements, so a claim of two billion ends the process. Here a claim is checked
against the remaining bytes first, and a refused message costs only what was decoded before.

A struct is a ``dict`` by kio's field names (Kafka's, in snake case). Times are milliseconds, error codes plain ints,
and ids 16 bytes. A field that a version does not have is neither read nor written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, TypeAlias, get_args, get_origin

from kframe_kafka_wire.protocol.errors import CodecError

#: The most values of one message, enough for a million partitions with three replicas each.
VALUES_MAX: Final = 8_000_000
ZERO_ID: Final = bytes(16)


class Cursor:
    """A position in a message. Also the number of further values that may be decoded."""

    __slots__ = ("data", "end", "offset", "remaining_values")

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self.data = data
        self.offset = offset
        self.end = len(data) if end is None else end
        self.remaining_values = VALUES_MAX

    def skip(self, size: int) -> int:
        """Advance by ``size`` bytes, and return their offset. Raises CodecError if there are fewer bytes."""
        start = self.offset
        if size < 0 or size > self.end - start:
            raise CodecError(f"{size} bytes claimed at byte {start}, {self.end - start} left")
        self.offset = start + size
        return start

    def claim(self, count: int, size: int) -> None:
        """Check that ``count`` elements of at least ``size`` bytes fit into the rest. Raises CodecError."""
        if count < 0 or count * size > self.end - self.offset:
            raise CodecError(f"{count} elements claimed at byte {self.offset}, {self.end - self.offset} bytes left")
        self.count_values(count)

    def count_values(self, values: int) -> None:
        """Count values before they are created. Raises CodecError above ``VALUES_MAX``."""
        self.remaining_values -= values
        if self.remaining_values < 0:
            raise CodecError(f"more than {VALUES_MAX} values in one message")


Read: TypeAlias = Callable[[Cursor], Any]
Write: TypeAlias = Callable[[bytearray, Any], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a type of value is read and written, its minimum size in bytes, and its default.

    ``code`` is the ``struct`` format character of a plain number.
    """

    read: Read
    write: Write
    min_size: int
    blank: Any
    code: str = ""


def read_varint(cursor: Cursor) -> int:
    """An unsigned varint of at most 32 bits. Raises CodecError."""
    value = 0
    for shift in range(0, 35, 7):
        byte = cursor.data[cursor.skip(1)]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**32:
                break
            return value
    raise CodecError(f"a number of more than 32 bits before byte {cursor.offset}")


def write_varint(out: bytearray, value: int) -> None:
    """Write an unsigned varint."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _number(code: str) -> Shape:
    layout = struct.Struct(f">{code}")
    unpack, pack, size = layout.unpack_from, layout.pack, layout.size

    def read(cursor: Cursor) -> Any:
        return unpack(cursor.data, cursor.skip(size))[0]

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return Shape(read, write, size, 0, code)


def _read_bool(cursor: Cursor) -> bool:
    return cursor.data[cursor.skip(1)] != 0


def _write_bool(out: bytearray, value: Any) -> None:
    out.append(1 if value else 0)


def _read_id(cursor: Cursor) -> bytes:
    start = cursor.skip(16)
    return cursor.data[start : start + 16]


def _write_id(out: bytearray, value: Any) -> None:
    out += value or ZERO_ID


_NUMBER_CODES: Final = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
#: The length of a string, of bytes or of an array: int16, int32, or a varint of the length plus one. Null is -1, or 0
#: as a varint.
_SHORT: Final = struct.Struct(">h")
_LONG: Final = struct.Struct(">i")


def _length_reader(layout: struct.Struct | None, nullable: bool) -> Callable[[Cursor], int]:
    """A reader of lengths. -1 is null, if ``nullable``."""

    def read(cursor: Cursor) -> int:
        if layout is None:
            length = read_varint(cursor) - 1
        else:
            length = layout.unpack_from(cursor.data, cursor.skip(layout.size))[0]
        if length < -1 or (length == -1 and not nullable):
            raise CodecError(f"a length of {length} before byte {cursor.offset}")
        return length

    return read


def _write_length(out: bytearray, layout: struct.Struct | None, length: int) -> None:
    if layout is None:
        write_varint(out, length + 1)
    else:
        out += layout.pack(length)


def _string(flexible: bool, nullable: bool) -> Shape:
    layout = None if flexible else _SHORT
    read_length = _length_reader(layout, nullable)

    def read(cursor: Cursor) -> str | None:
        length = read_length(cursor)
        if length < 0:
            return None
        start = cursor.skip(length)
        try:
            return cursor.data[start : start + length].decode()
        except UnicodeDecodeError as error:
            raise CodecError(f"a text at byte {start} is not UTF-8: {error.reason}") from None

    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            _write_length(out, layout, -1)
            return
        encoded = value.encode()
        _write_length(out, layout, len(encoded))
        out += encoded

    return Shape(read, write, 1 if flexible else 2, None if nullable else "")


def _bytes(flexible: bool, nullable: bool) -> Shape:
    layout = None if flexible else _LONG
    read_length = _length_reader(layout, nullable)

    def read(cursor: Cursor) -> bytes | None:
        length = read_length(cursor)
        if length < 0:
            return None
        start = cursor.skip(length)
        return cursor.data[start : start + length]

    def write(out: bytearray, value: Any) -> None:
        _write_length(out, layout, -1 if value is None and nullable else len(value))
        out += value or b""

    return Shape(read, write, 1 if flexible else 4, None if nullable else b"")


def _array(element: Shape, flexible: bool, nullable: bool) -> Shape:
    layout = None if flexible else _LONG
    read_length = _length_reader(layout, nullable)

    def read(cursor: Cursor) -> list[Any] | None:
        length = read_length(cursor)
        if length < 0:
            return None
        cursor.claim(length, element.min_size)
        if element.code:
            return list(
                struct.unpack_from(f">{length}{element.code}", cursor.data, cursor.skip(length * element.min_size))
            )
        return [element.read(cursor) for _ in range(length)]

    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            _write_length(out, layout, -1)
            return
        _write_length(out, layout, len(value))
        if element.code:
            out += struct.pack(f">{len(value)}{element.code}", *value)
            return
        write_element = element.write
        for entry in value:
            write_element(out, entry)

    return Shape(read, write, 1 if flexible else 4, None if nullable else ())


def _nullable_struct(inner: Shape) -> Shape:
    """A struct that follows a byte for its presence. See KIP-893."""

    def read(cursor: Cursor) -> Any:
        marker = struct.unpack_from(">b", cursor.data, cursor.skip(1))[0]
        return None if marker < 0 else inner.read(cursor)

    def write(out: bytearray, value: Any) -> None:
        out += b"\xff" if value is None else b"\x01"
        if value is not None:
            inner.write(out, value)

    return Shape(read, write, 1, None)


def _shape(field: Field[Any], kind: Any, flexible: bool, nullable: bool = False) -> Shape:
    """The shape of a field of this type."""
    if get_origin(kind) is UnionType:
        inner = next(arg for arg in get_args(kind) if arg is not NoneType)
        return _shape(field, inner, flexible, nullable=True)
    if get_origin(kind) is tuple:
        return _array(_shape(field, get_args(kind)[0], flexible), flexible, nullable)
    if is_dataclass(kind):
        struct_of_kind = struct_shape(kind)  # type: ignore[arg-type]  # A class is hashable.
        return _nullable_struct(struct_of_kind) if nullable else struct_of_kind
    name = field.metadata["kafka_type"]
    if name == "string":
        return _string(flexible, nullable)
    if name in ("bytes", "records"):
        return _bytes(flexible, nullable)
    if name == "uuid":
        return Shape(_read_id, _write_id, 16, ZERO_ID)
    if name == "bool":
        return Shape(_read_bool, _write_bool, 1, False)
    return _number(_NUMBER_CODES[name])


def _default(field: Field[Any], shape: Shape) -> Any:
    """The default of a field in kio, as plain data."""
    return shape.blank if field.default is MISSING else _plain(field.default, shape)


def _plain(value: Any, shape: Shape) -> Any:
    """A default of kio as plain data. That of a struct cannot be changed: messages share it."""
    if value is None:
        return None
    if is_dataclass(value):
        return MappingProxyType({name: _plain(getattr(value, name), inner) for name, inner in _shapes_of(type(value))})
    if hasattr(value, "total_seconds"):
        return round(value.total_seconds() * 1000)
    return int(value) if shape.code and shape.code != "d" else value


def _shapes_of(entity: Any) -> Iterator[tuple[str, Shape]]:
    """The names and shapes of the fields of one of kio's classes."""
    for each in fields(entity):
        yield each.name, _shape(each, each.type, entity.__flexible__)


@cache
def struct_shape(entity: Any, legacy_strings: bool = False) -> Shape:
    """The shape of one of kio's classes. ``legacy_strings``: strings have the old format despite tagged fields.

    Only request headers have that combination.
    """
    flexible: bool = entity.__flexible__
    untagged: list[tuple[str, Shape, Any]] = []
    tagged: dict[int, tuple[str, Shape, Any]] = {}
    for field in fields(entity):
        shape = _shape(field, field.type, flexible and not legacy_strings)
        entry = (field.name, shape, _default(field, shape))
        if "tag" in field.metadata:
            tagged[int(field.metadata["tag"])] = entry
        else:
            untagged.append(entry)
    weight = len(untagged) + len(tagged) + 4

    def read(cursor: Cursor) -> dict[str, Any]:
        cursor.count_values(weight)
        value = {name: shape.read(cursor) for name, shape, _ in untagged}
        if flexible:
            for name, _, default in tagged.values():
                value[name] = default
            _read_tagged(cursor, tagged, value)
        return value

    def write(out: bytearray, value: Mapping[str, Any]) -> None:
        for name, shape, default in untagged:
            shape.write(out, value.get(name, default))
        if flexible:
            _write_tagged(out, tagged, value)

    return Shape(read, write, max(1, sum(shape.min_size for _, shape, _ in untagged) + flexible), None)


def _read_tagged(cursor: Cursor, tagged: Mapping[int, tuple[str, Shape, Any]], value: dict[str, Any]) -> None:
    """Read known tagged fields. Unknown fields are skipped, as in Kafka."""
    count = read_varint(cursor)
    cursor.claim(count, 2)
    for _ in range(count):
        tag, size = read_varint(cursor), read_varint(cursor)
        start = cursor.skip(size)
        if tag in tagged:
            name, shape, default = tagged[tag]
            inner = Cursor(cursor.data, start, start + size)
            inner.remaining_values = cursor.remaining_values
            field_value = shape.read(inner)
            # An explicit empty array equals an omitted one.
            value[name] = default if default == () and field_value == [] else field_value
            cursor.remaining_values = inner.remaining_values
            if inner.offset != inner.end:
                raise CodecError(f"tagged field {name} ends at byte {inner.offset}, not {inner.end}")


def _write_tagged(out: bytearray, tagged: Mapping[int, tuple[str, Shape, Any]], value: Mapping[str, Any]) -> None:
    """Write the fields that differ from their default, in the order of the tags."""
    fields = []
    for tag in sorted(tagged):
        name, shape, default = tagged[tag]
        value_or_default = value.get(name, default)
        if value_or_default != default and not (
            isinstance(value_or_default, list) and tuple(value_or_default) == default
        ):
            content = bytearray()
            shape.write(content, value_or_default)
            fields.append((tag, content))
    write_varint(out, len(fields))
    for tag, content in fields:
        write_varint(out, tag)
        write_varint(out, len(content))
        out += content
