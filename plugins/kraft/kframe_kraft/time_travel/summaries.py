"""The key of a record, and a summary of its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from kframe.plugin.kraft import records, uuid_text

_RESOURCES: Final = {2: "topic", 4: "broker", 16: "client-metrics", 32: "group"}
#: The values of fields that a change does not set.
_ABSENT: Final = {"leader": records.NO_LEADER_CHANGE, "leader_recovery_state": records.NO_RECOVERY_CHANGE}
_LABELS: Final = {
    "leader": "leader",
    "isr": "isr",
    "replicas": "replicas",
    "adding_replicas": "adding",
    "removing_replicas": "removing",
    "eligible_leader_replicas": "elr",
    "last_known_elr": "last known elr",
    "leader_recovery_state": "recovery",
}


def topic_of(record: records.MetadataRecord, names: Mapping[UUID, str]) -> str | None:
    """The topic of a record, or None."""
    match record:
        case records.TopicRecord():
            return record.name
        case records.PartitionRecord() | records.PartitionChangeRecord() | records.RemoveTopicRecord():
            return names.get(record.topic_id, uuid_text(record.topic_id))
        case records.ClearElrRecord():
            return record.topic_name
        case records.ConfigRecord() if record.resource_type == 2:
            return record.resource_name
    return None


def broker_ids(record: records.MetadataRecord) -> set[int]:
    """The brokers that a record names."""
    match record:
        case records.PartitionRecord() | records.PartitionChangeRecord():
            lists = (getattr(record, name) for name in _LABELS if name not in _ABSENT)
            members = {member for values in lists for member in values or ()}
            return members | ({record.leader} if record.leader >= 0 else set())
        case records.FenceBrokerRecord() | records.UnfenceBrokerRecord():
            return {record.id}
        case records.ConfigRecord() if record.resource_type == 4 and record.resource_name.isdecimal():
            return {int(record.resource_name)}
    broker_id = getattr(record, "broker_id", None)
    return set() if broker_id is None else {broker_id}


def describe(record: records.MetadataRecord, names: Mapping[UUID, str]) -> tuple[str, str]:
    """The key and the summary of a record."""
    match record:
        case records.PartitionRecord() | records.PartitionChangeRecord():
            return f"{topic_of(record, names)}-{record.partition_id}", _partition_text(record)
        case records.TopicRecord():
            return record.name, f"id {uuid_text(record.topic_id)}"
        case records.RemoveTopicRecord() | records.ClearElrRecord():
            return topic_of(record, names) or "all topics", ""
        case records.ConfigRecord():
            kind = _RESOURCES.get(record.resource_type, str(record.resource_type))
            value = "removed" if record.value is None else f"={record.value}"
            return (
                f"{kind} {record.resource_name or 'default'}",
                f"{record.name}{' ' if record.value is None else ''}{value}",
            )
        case records.RegisterBrokerRecord():
            states = [name for name in ("fenced", "in_controlled_shutdown") if getattr(record, name)]
            rack = f", rack {record.rack}" if record.rack else ""
            return f"broker {record.broker_id}", f"epoch {record.broker_epoch}{rack}{_joined(states)}"
        case records.BrokerRegistrationChangeRecord():
            return f"broker {record.broker_id}", _registration_text(record)
        case records.FeatureLevelRecord():
            return record.name, f"level {record.feature_level}"
    return _other_key(record), ""


def _joined(states: list[str]) -> str:
    return "".join(f", {state.replace('_', ' ')}" for state in states)


def _partition_text(record: records.PartitionRecord | records.PartitionChangeRecord) -> str:
    parts = []
    for name, label in _LABELS.items():
        value: Any = getattr(record, name)
        is_change = isinstance(record, records.PartitionChangeRecord)
        if (
            value is None
            or (is_change and value == _ABSENT.get(name))
            or (not is_change and value in ((), 0) and name != "leader")
        ):
            continue
        parts.append(f"{label} {value if isinstance(value, int) else _list_text(value)}")
    return ", ".join(parts)


def _list_text(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _registration_text(record: records.BrokerRegistrationChangeRecord) -> str:
    parts = []
    if record.fenced:
        parts.append("fenced" if record.fenced == records.FencingChange.FENCE else "unfenced")
    if record.in_controlled_shutdown:
        parts.append("in controlled shutdown")
    if record.log_dirs:
        parts.append(_directories_text(record.log_dirs, "online"))
    if record.cordoned_log_dirs is not None:
        parts.append(_directories_text(record.cordoned_log_dirs, "cordoned"))
    return ", ".join(parts)


def _directories_text(directories: tuple[UUID, ...], state: str) -> str:
    return f"{len(directories)} {'directory' if len(directories) == 1 else 'directories'} {state}"


def _other_key(record: records.MetadataRecord) -> str:
    for name, label in (
        ("broker_id", "broker "),
        ("controller_id", "controller "),
        ("id", ""),
        ("name", ""),
        ("token_id", ""),
    ):
        value = getattr(record, name, None)
        if value is not None:
            text = uuid_text(value) if isinstance(value, UUID) else str(value)
            is_broker = isinstance(record, records.FenceBrokerRecord | records.UnfenceBrokerRecord)
            return f"broker {text}" if is_broker else f"{label}{text}"
    return "-"
