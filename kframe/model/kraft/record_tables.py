"""The tables of the fields of metadata records and control records."""

from __future__ import annotations

from typing import Final

from kframe.model.kraft.control import CONTROL_TYPES
from kframe.model.kraft.record_fields import table_of
from kframe.model.kraft.records import RECORD_TYPES

#: The table of each record class.
TABLES: Final = {record: table_of(record) for record in RECORD_TYPES.values()}
#: The table of each type in a frame.
TABLES_BY_TYPE: Final = {api_key: TABLES[record] for api_key, record in RECORD_TYPES.items()}
#: The table of each control record class.
CONTROL_TABLES: Final = {record: table_of(record) for record in CONTROL_TYPES.values()}
#: The table of each type in a control record's key.
CONTROL_TABLES_BY_TYPE: Final = {control_type: CONTROL_TABLES[record] for control_type, record in CONTROL_TYPES.items()}
