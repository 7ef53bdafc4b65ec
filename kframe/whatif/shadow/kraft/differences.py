"""Compare predicted records with committed ones, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import ConfigRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord, record_name
from kframe.ports.committed_log import CommittedRecord

#: Fields whose order is that of a hash table in Kafka.
_SETS: Final = frozenset({"eligible_leader_replicas"})
#: The field of a difference in whole records.
RECORD: Final = "record"
#: The field of a difference in the version of a record.
VERSION: Final = "version"
WRITTEN: Final = "written"
Identity: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """A field of a committed record that the rules predict otherwise; the field ``record`` is the whole record.

    The values of a whole record are ``written`` and null.
    """

    event: str
    type: str
    key: str
    offset: int | None
    """None where the record is predicted only."""
    field: str
    predicted: Any
    committed: Any

    def line(self) -> str:
        """As text."""
        key = self.key if self.offset is None else f"{self.key} at offset {self.offset}"
        predicted, committed = (_text(value) for value in (self.predicted, self.committed))
        return f"{key}: {self.type} {self.field} predicted {predicted}, committed {committed}, by {self.event}"


def identity(record: MetadataRecord) -> Identity:
    """What a decision has at most one record about."""
    match record:
        case PartitionRecord() | PartitionChangeRecord():
            return record.api_key, record.topic_id, record.partition_id
        case ConfigRecord():
            return record.api_key, record.resource_type, record.resource_name, record.name
    return record.api_key, *(getattr(record, name, None) for name in ("broker_id", "topic_id", "name", "topic_name"))


def differences(
    metadata: ClusterMetadata, event: str, predicted: Iterable[RecordAndVersion], committed: Sequence[CommittedRecord]
) -> list[RecordDifference]:
    """The fields that differ. Records correspond by ``identity``: Kafka's order comes from hash tables."""
    missing = {identity(record): (record, version) for record, version in predicted}
    result: list[RecordDifference] = []
    for offset, record, version in committed:
        labels = event, record_name(type(record)), key_of(metadata, record), offset
        expected = missing.pop(identity(record), None)
        if expected is None:
            result.append(RecordDifference(*labels, RECORD, None, WRITTEN))
        elif expected != (record, version):
            fields = [*record.__struct_fields__, VERSION]
            values = ((*_values(part[0]), part[1]) for part in (expected, (record, version)))
            result += [
                RecordDifference(*labels, field, _plain(before), _plain(after))
                for field, before, after in zip(fields, *values, strict=True)
                if before != after and not (field in _SETS and _as_set(before) == _as_set(after))
            ]
    result += [
        RecordDifference(event, record_name(type(record)), key_of(metadata, record), None, RECORD, WRITTEN, None)
        for record, _ in missing.values()
    ]
    return result


def key_of(metadata: ClusterMetadata, record: MetadataRecord) -> str:
    """What a record is about: ``topic-partition``, a topic, ``broker N``, or a name."""
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return f"{_topic_name(metadata, record.topic_id)}-{record.partition_id}"
    if isinstance(record, ConfigRecord):
        return f"{record.name} of {record.resource_name or 'all brokers'}"
    if (topic_id := getattr(record, "topic_id", None)) is not None:
        return getattr(record, "name", None) or _topic_name(metadata, topic_id)
    for field, label in (("broker_id", "broker "), ("controller_id", "controller "), ("name", ""), ("topic_name", "")):
        if (value := getattr(record, field, None)) is not None:
            return f"{label}{value}"
    return "-"


def _topic_name(metadata: ClusterMetadata, topic_id: UUID) -> str:
    index = metadata.topics.index_by_id.get(topic_id)
    return uuid_text(topic_id) if index is None else metadata.topics.names[index]


def _values(record: MetadataRecord) -> tuple[Any, ...]:
    return msgspec.structs.astuple(record)


def _as_set(value: Any) -> Any:
    return None if value is None else frozenset(value)


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    return "none" if value is None else str(value)
