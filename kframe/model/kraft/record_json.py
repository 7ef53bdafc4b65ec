"""Records as the JSON that ``kafka-dump-log --cluster-metadata-decoder`` prints, both ways.

Source: Kafka's generated ``*JsonConverter`` classes. A document has ``type`` (``PARTITION_RECORD``), ``version`` and
``data``. UUIDs are base64url without padding, bytes are base64, tagged fields with their default are left out.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, Final

from kframe.errors import RecordError
from kframe.model.kafka_uuids import uuid_of_text, uuid_text
from kframe.model.kraft import control, records
from kframe.model.kraft.record_fields import Field, Kind, Table
from kframe.model.kraft.record_tables import CONTROL_TABLES, TABLES

_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
#: Kafka's name of each type (``MetadataRecordType``).
TYPE_NAMES: Final = {record: _WORD.sub("_", record.__name__).upper() for record in records.RECORD_TYPES.values()}
_RECORDS: Final = {name: record for record, name in TYPE_NAMES.items()}
_RANGES: Final = {
    Kind.INT8: (-(2**7), 2**7),
    Kind.INT16: (-(2**15), 2**15),
    Kind.UINT16: (0, 2**16),
    Kind.INT32: (-(2**31), 2**31),
    Kind.INT64: (-(2**63), 2**63),
}


def to_json(record: records.MetadataRecord, version: int) -> dict[str, Any]:
    """Return the document of a record. Raises RecordError if the version cannot carry its content."""
    return {
        "type": TYPE_NAMES[type(record)],
        "version": version,
        "data": _struct_to_json(TABLES[type(record)], record, version),
    }


def control_to_json(record: control.ControlRecord) -> dict[str, Any]:
    """Return the fields of a control record."""
    return _struct_to_json(CONTROL_TABLES[type(record)], record, record.version)


def from_json(document: Any) -> tuple[records.MetadataRecord, int]:
    """Return the record of a document, and its version. Raises RecordError if it is malformed."""
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        raise RecordError("record", repr(document)[:100], "an object with type, version and data")
    name, version = document.get("type"), document.get("version")
    record = _RECORDS.get(name) if isinstance(name, str) else None
    if record is None:
        raise RecordError("record, type", repr(name), "a record type of Kafka 4.4 or earlier")
    table = TABLES[record]
    if not isinstance(version, int) or not 0 <= version <= table.latest:
        raise RecordError(f"{name}, version", repr(version), f"0 to {table.latest}")
    return _struct_from_json(table, document["data"], version, str(name)), version


def _struct_to_json(table: Table, record: Any, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in table.fields:
        value = getattr(record, field.name)
        if (field.since > version or field.tag is not None) and value == table.defaults[field.name]:
            continue
        if field.since > version:
            raise RecordError(f"{table.record.__name__} version {version}, field {field.name}", repr(value), "default")
        if field.array and value is not None:
            fields[field.json_name] = [_value_to_json(field.kind, item, version) for item in value]
        else:
            fields[field.json_name] = _value_to_json(field.kind, value, version)
    return fields


def _value_to_json(kind: Kind | Table, value: Any, version: int) -> Any:
    if isinstance(kind, Table):
        return _struct_to_json(kind, value, version)
    if value is None:
        return None
    if kind is Kind.UUID:
        return uuid_text(value)
    if kind is Kind.BYTES:
        return base64.b64encode(value).decode()
    if kind is Kind.FLOAT64 and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return int(value) if kind in _RANGES else value


def _struct_from_json(table: Table, data: Any, version: int, where: str) -> Any:
    if not isinstance(data, dict):
        raise RecordError(where, repr(data)[:100], "an object")
    values: dict[str, Any] = {}
    for field in table.fields:
        if field.json_name in data and field.since <= version:
            values[field.name] = _field_from_json(field, data[field.json_name], version, f"{where}.{field.json_name}")
        elif field.json_name in data:
            raise RecordError(f"{where}.{field.json_name}", f"version {version}", f"at least {field.since}")
        elif field.tag is None and field.since <= version:
            raise RecordError(f"{where}.{field.json_name}", "no value", "a value: the field is mandatory")
    return table.record(**values)


def _field_from_json(field: Field, value: Any, version: int, where: str) -> Any:
    if value is None and field.nullable:
        return None
    if not field.array:
        return _value_from_json(field.kind, value, version, where)
    if not isinstance(value, list):
        raise RecordError(where, repr(value)[:100], "an array")
    return tuple(_value_from_json(field.kind, item, version, f"{where}[{i}]") for i, item in enumerate(value))


def _value_from_json(kind: Kind | Table, value: Any, version: int, where: str) -> Any:
    if isinstance(kind, Table):
        return _struct_from_json(kind, value, version, where)
    try:
        match kind:
            case Kind.BOOL if isinstance(value, bool):
                return value
            case Kind.STRING if isinstance(value, str):
                return value
            case Kind.UUID if isinstance(value, str):
                return uuid_of_text(value)
            case Kind.BYTES if isinstance(value, str):
                return base64.b64decode(value, validate=True)
            case Kind.FLOAT64 if not isinstance(value, bool):
                return float(value)
            case _ if kind in _RANGES and isinstance(value, int) and not isinstance(value, bool):
                first, end = _RANGES[kind]
                if first <= value < end:
                    return value
    except (TypeError, ValueError, binascii.Error) as error:
        raise RecordError(where, repr(value)[:100], f"{kind.value[0]} ({error})") from error
    raise RecordError(where, repr(value)[:100], str(kind.value[0]))
