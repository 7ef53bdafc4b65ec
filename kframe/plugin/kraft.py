"""The metadata log of a KRaft cluster: records, control records, their fields and JSON form, reserved directory ids."""

from __future__ import annotations

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.causes.change_causes import ChangeCause, explain_change
from kframe.core.kraft.causes.leader_reasons import leader_rule, reasons_not_elected
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import RECORDS_MAX, ControllerResult, DecisionPart, RequestRefused
from kframe.core.kraft.features.activation import activate
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.change_batch import RECORD_LISTS, PartitionChangeBatch
from kframe.errors import InputError, LogError, RecordError, ShapeError
from kframe.model.kafka_uuids import uuid_of_text, uuid_text
from kframe.model.kraft import control, directories, directory_ids, records
from kframe.model.kraft.columns import PartitionLists
from kframe.model.kraft.ids import KRAFT_VERSION
from kframe.model.kraft.image_records import feature_records, setting_records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_fields import Field, Kind, Table
from kframe.model.kraft.record_json import control_to_json, from_json, to_json
from kframe.model.kraft.record_tables import CONTROL_TABLES, CONTROL_TABLES_BY_TYPE, TABLES, TABLES_BY_TYPE
from kframe.model.kraft.record_versions import (
    LEVEL_MAX,
    LEVEL_MIN,
    RecordAndVersion,
    needed_version,
    newest_version,
    record_version,
)
from kframe.model.kraft.topics import NO_ROW, PARTITIONS_MAX
from kframe.model.kraft.views import partition_record

__all__ = [
    "CONTROL_TABLES",
    "CONTROL_TABLES_BY_TYPE",
    "KRAFT_VERSION",
    "LEVEL_MAX",
    "LEVEL_MIN",
    "NO_ROW",
    "PARTITIONS_MAX",
    "RECORDS_MAX",
    "RECORD_LISTS",
    "TABLES",
    "TABLES_BY_TYPE",
    "ChangeCause",
    "ClusterMetadata",
    "ControllerResult",
    "DecisionPart",
    "Field",
    "Heartbeats",
    "InputError",
    "Kind",
    "KraftContext",
    "KraftSettings",
    "LogError",
    "PartitionChangeBatch",
    "PartitionLists",
    "RecordAndVersion",
    "RecordError",
    "RequestRefused",
    "ShapeError",
    "Table",
    "activate",
    "control",
    "control_to_json",
    "directories",
    "directory_ids",
    "explain_change",
    "feature_records",
    "from_json",
    "leader_rule",
    "needed_version",
    "newest_version",
    "partition_record",
    "reasons_not_elected",
    "record_version",
    "records",
    "replay",
    "setting_records",
    "to_json",
    "uuid_of_text",
    "uuid_text",
]
