"""Reads and writes records by their tables. Each version of a table is compiled once into lists of functions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from kframe.plugin import counted
from kframe.plugin.kraft import Field, Table
from kframe_kraft.errors import RecordError
from kframe_kraft.records.primitives import READ, WRITE, Reader, Write, write_unsigned_varint

Read: TypeAlias = Callable[[Reader], Any]


class Codec:
    """One version of a record or nested struct as bytes."""

    def __init__(self, table: Table, version: int) -> None:
        self.table = table
        self.version = version
        self.name = f"{table.record.__name__} version {version}"
        present = [field for field in table.fields if field.since <= version]
        untagged = [field for field in present if field.tag is None]
        tagged = sorted((field.tag, field) for field in present if field.tag is not None)
        self._read = [(field.name, _reader(field, version)) for field in untagged]
        self._write = [(field.name, _writer(field, version)) for field in untagged]
        self._read_tagged = {tag: (field.name, _reader(field, version)) for tag, field in tagged}
        self._write_tagged = [
            (tag, field.name, table.defaults[field.name], _writer(field, version)) for tag, field in tagged
        ]
        self._absent = [(field.name, table.defaults[field.name]) for field in table.fields if field.since > version]

    def read(self, reader: Reader) -> Any:
        """Return the record at the reader's position. Raises RecordError if it is malformed.

        Unknown tagged fields are skipped, as Kafka's generated classes do when they replay a record.
        """
        values = {name: read(reader) for name, read in self._read}
        previous = -1
        for _ in range(reader.unsigned_varint()):
            tag, size = reader.unsigned_varint(), reader.unsigned_varint()
            if tag <= previous:
                raise reader.error(f"tag {tag} after {previous}", "tags in ascending order")
            previous, start = tag, reader.skip(size)
            if tag in self._read_tagged:
                name, read = self._read_tagged[tag]
                reader.position = start
                values[name] = read(reader)
                if reader.position != start + size:
                    raise reader.error(f"{counted(reader.position - start, 'byte')} of field {name}", f"{size}")
        return self.table.record(**values)

    def write(self, out: bytearray, record: Any) -> None:
        """Append the record. Raises RecordError if a value does not fit its type or this version."""
        for name, default in self._absent:
            if getattr(record, name) != default:
                raise RecordError(f"{self.name}, field {name}", repr(getattr(record, name)), f"{default!r}")
        for name, write in self._write:
            self._append(out, name, write, getattr(record, name))
        tagged = [entry for entry in self._write_tagged if getattr(record, entry[1]) != entry[2]]
        write_unsigned_varint(out, len(tagged))
        for tag, name, _, write in tagged:
            body = bytearray()
            self._append(body, name, write, getattr(record, name))
            write_unsigned_varint(out, tag)
            write_unsigned_varint(out, len(body))
            out += body

    def _append(self, out: bytearray, name: str, write: Write, value: Any) -> None:
        try:
            write(out, value)
        except (struct.error, ValueError, TypeError, AttributeError) as error:
            raise RecordError(f"{self.name}, field {name}", repr(value)[:100], f"a valid value ({error})") from error


def _reader(field: Field, version: int) -> Read:
    read = Codec(field.kind, version).read if isinstance(field.kind, Table) else READ[field.kind]
    item_size = 1 if isinstance(field.kind, Table) else field.kind.size
    if field.array:
        return _checked(field, lambda reader: _read_array(reader, read, item_size))
    return read if isinstance(field.kind, Table) else _checked(field, read)


def _checked(field: Field, read: Read) -> Read:
    """Refuse null where the schema does not allow it."""
    if field.nullable:
        return read

    def read_value(reader: Reader) -> Any:
        value = read(reader)
        if value is None:
            raise reader.error(f"null in field {field.name}", "a value")
        return value

    return read_value


def _read_array(reader: Reader, read: Read, item_size: int) -> tuple[Any, ...] | None:
    length = reader.length(item_size)
    if length < 0:
        return None
    return tuple([read(reader) for _ in range(length)])


def _writer(field: Field, version: int) -> Write:
    write_item = Codec(field.kind, version).write if isinstance(field.kind, Table) else WRITE[field.kind]

    def write_array(out: bytearray, values: Any) -> None:
        write_unsigned_varint(out, 0 if values is None else len(values) + 1)
        for value in values or ():
            write_item(out, value)

    write = write_array if field.array else write_item
    if field.nullable or isinstance(field.kind, Table):
        return write

    def write_value(out: bytearray, value: Any) -> None:
        if value is None:
            raise ValueError("null")
        write(out, value)

    return write_value
