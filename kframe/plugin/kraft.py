"""The metadata log of a KRaft cluster: records, control records, their fields and JSON form, reserved directory ids."""

from __future__ import annotations

from kframe.errors import LogError, RecordError
from kframe.model.kraft import control, directory_ids, records
from kframe.model.kraft.control_tables import CONTROL_TABLES, CONTROL_TABLES_BY_TYPE
from kframe.model.kraft.record_fields import Field, Kind, Table
from kframe.model.kraft.record_json import control_to_json, from_json, to_json, uuid_of_text, uuid_text
from kframe.model.kraft.record_tables import TABLES, TABLES_BY_TYPE

__all__ = [
    "CONTROL_TABLES",
    "CONTROL_TABLES_BY_TYPE",
    "TABLES",
    "TABLES_BY_TYPE",
    "Field",
    "Kind",
    "LogError",
    "RecordError",
    "Table",
    "control",
    "control_to_json",
    "directory_ids",
    "from_json",
    "records",
    "to_json",
    "uuid_of_text",
    "uuid_text",
]
