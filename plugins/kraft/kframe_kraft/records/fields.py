"""Readers and writers of Kafka's primitive types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kframe.plugin.kraft import Kind
from kframe_kraft.records import primitives
from kframe_kraft.records.primitives import Reader, Write

_LAYOUTS: Final = {
    Kind.INT8: ">b", Kind.INT16: ">h", Kind.UINT16: ">H", Kind.INT32: ">i", Kind.INT64: ">q", Kind.FLOAT64: ">d",
}  # fmt: skip
READ: Final[dict[Kind, Callable[[Reader], Any]]] = {
    Kind.BOOL: primitives.read_bool,
    Kind.UUID: primitives.read_uuid,
    Kind.STRING: primitives.read_string,
    Kind.BYTES: primitives.read_byte_string,
    **{kind: primitives.number_reader(layout) for kind, layout in _LAYOUTS.items()},
}
WRITE: Final[dict[Kind, Write]] = {
    Kind.BOOL: primitives.write_bool,
    Kind.UUID: primitives.write_uuid,
    Kind.STRING: primitives.write_string,
    Kind.BYTES: primitives.write_byte_string,
    **{kind: primitives.number_writer(layout) for kind, layout in _LAYOUTS.items()},
}
