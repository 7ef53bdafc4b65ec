"""Metadata records in their frame: frame version, type and version as unsigned varints, then the body.

Source: Kafka ``AbstractApiMessageSerde`` and ``MetadataRecordSerde``.
"""

from __future__ import annotations

from typing import Final

from kframe.plugin import counted
from kframe.plugin.kraft import TABLES_BY_TYPE, RecordAndVersion, records
from kframe_kraft.errors import RecordError
from kframe_kraft.records.codec import Codec
from kframe_kraft.records.primitives import Reader, write_unsigned_varint

FRAME_VERSION: Final = 1
_CODECS: Final = {
    api_key: [Codec(table, version) for version in range(table.latest + 1)] for api_key, table in TABLES_BY_TYPE.items()
}


def encode_record(record: records.MetadataRecord, version: int) -> bytes:
    """Return the value of a data record. Raises RecordError if the version is unknown or cannot carry the content."""
    codecs = _CODECS[record.api_key]
    if not 0 <= version < len(codecs):
        raise RecordError(type(record).__name__, f"version {version}", f"0 to {len(codecs) - 1}")
    out = bytearray((FRAME_VERSION,))
    write_unsigned_varint(out, record.api_key)
    write_unsigned_varint(out, version)
    codecs[version].write(out, record)
    return bytes(out)


def decode_record(data: bytes, where: str = "record") -> RecordAndVersion:
    """Return the record in the value of a data record. Raises RecordError if it is malformed; ``where`` names it."""
    reader = Reader(data, where)
    frame_version = reader.unsigned_varint()
    if frame_version != FRAME_VERSION:
        raise reader.error(f"frame version {frame_version}", f"{FRAME_VERSION}")
    api_key, version = reader.unsigned_varint(), reader.unsigned_varint()
    codecs = _CODECS.get(api_key)
    if codecs is None:
        raise reader.error(f"record type {api_key}", "a record type of Kafka 4.4 or earlier")
    if version >= len(codecs):
        name = codecs[0].table.record.__name__
        raise reader.error(f"{name} (type {api_key}) version {version}", f"version 0 to {len(codecs) - 1}")
    codec = codecs[version]
    reader.where = f"{where}, {codec.name}"
    record = codec.read(reader)
    if reader.remaining:
        raise reader.error(f"{counted(reader.remaining, 'byte')} after the record", "its end")
    return RecordAndVersion(record, version)
