"""Control records as key and value: a key of version and type, and a value that begins with its own version.

Source: Kafka ``ControlRecordType`` and ``ControlRecordUtils``.
"""

from __future__ import annotations

import struct
from typing import Final

from kframe.plugin import counted
from kframe.plugin.kraft import CONTROL_TABLES_BY_TYPE, control
from kframe_kraft.errors import RecordError
from kframe_kraft.records.codec import Codec
from kframe_kraft.records.primitives import Reader

_KEY: Final = struct.Struct(">hh")
_VERSION: Final = struct.Struct(">h")
_CODECS: Final = {
    control_type: [Codec(table, version) for version in range(table.latest + 1)]
    for control_type, table in CONTROL_TABLES_BY_TYPE.items()
}


def encode_control(record: control.ControlRecord) -> tuple[bytes, bytes]:
    """Return key and value. Raises RecordError if the version is unknown or a value does not fit."""
    codecs = _CODECS[record.control_type]
    if not 0 <= record.version < len(codecs):
        raise RecordError(type(record).__name__, f"version {record.version}", f"0 to {len(codecs) - 1}")
    out = bytearray()
    codecs[record.version].write(out, record)
    return _KEY.pack(0, record.control_type), bytes(out)


def decode_control(key: bytes, value: bytes, where: str = "control record") -> control.ControlRecord:
    """Return the control record. Raises RecordError if key or value is malformed; ``where`` names it."""
    if len(key) != _KEY.size or key[:2] != b"\0\0":
        raise RecordError(f"{where}, key", repr(key[:20]), "version 0 and a type, int16 each")
    control_type = _KEY.unpack(key)[1]
    codecs = _CODECS.get(control_type)
    if codecs is None:
        raise RecordError(f"{where}, key", f"control record type {control_type}", "2 to 6")
    reader = Reader(value, where)
    version = _VERSION.unpack_from(value, reader.skip(2))[0]
    if not 0 <= version < len(codecs):
        name = codecs[0].table.record.__name__
        raise reader.error(f"{name} version {version}", f"version 0 to {len(codecs) - 1}")
    codec = codecs[version]
    reader.position, reader.where = 0, f"{where}, {codec.name}"
    record: control.ControlRecord = codec.read(reader)
    if reader.remaining:
        raise reader.error(f"{counted(reader.remaining, 'byte')} after the record", "its end")
    return record
