"""Sizes of metadata records in their frame, computed from the tables of their fields without encoding anything."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kframe.model.arrays import Int32, Int64
from kframe.model.kraft.record_fields import Field, Kind, Table
from kframe.model.kraft.record_tables import TABLES
from kframe.model.kraft.records import MetadataRecord

#: Frame version, type and version of the record take a byte each: all of them are below 128.
FRAME_BYTES: Final = 3


def record_size(record: MetadataRecord, version: int) -> int:
    """Bytes of the value of a record at ``version``: the frame and the body (Kafka ``MetadataRecordSerde``)."""
    return FRAME_BYTES + _struct_size(TABLES[type(record)], record, version)


def varint_sizes(values: Int32) -> Int64:
    """(k,) bytes of unsigned varints."""
    sizes = np.ones(len(values), np.int64)
    for bits in (7, 14, 21, 28):
        sizes += values >= 1 << bits
    return sizes


def _struct_size(table: Table, value: Any, version: int) -> int:
    present = [field for field in table.fields if field.since <= version]
    size = sum(_value_size(field, getattr(value, field.name), version) for field in present if field.tag is None)
    tagged = [
        (field, getattr(value, field.name))
        for field in present
        if field.tag is not None and getattr(value, field.name) != table.defaults[field.name]
    ]
    size += _varint_size(len(tagged))
    for field, entry in tagged:
        body = _value_size(field, entry, version)
        size += _varint_size(field.tag or 0) + _varint_size(body) + body
    return size


def _value_size(field: Field, value: Any, version: int) -> int:
    if field.array:
        items = () if value is None else value
        return _varint_size(0 if value is None else len(items) + 1) + sum(
            _item_size(field, item, version) for item in items
        )
    return _item_size(field, value, version)


def _item_size(field: Field, value: Any, version: int) -> int:
    if isinstance(field.kind, Table):
        return _struct_size(field.kind, value, version)
    if field.kind in (Kind.STRING, Kind.BYTES):
        length = 0 if value is None else len(value.encode() if isinstance(value, str) else value)
        return _varint_size(0 if value is None else length + 1) + length
    return field.kind.size


def _varint_size(value: int) -> int:
    return max((value.bit_length() + 6) // 7, 1)
