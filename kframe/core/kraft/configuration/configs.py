"""Changes of configurations (Kafka 4.4 ``ConfigurationControlManager``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kframe.core.kraft.configuration.config_values import check_values
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused, check_record_count
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import MetadataLevel, ResourceType
from kframe.model.kraft.metadata import Resource
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import ClearElrRecord, ConfigRecord
from kframe.model.kraft.topics import MIN_INSYNC_REPLICAS
from kframe.model.topic_configs import LIST_CONFIGS

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
#: Longest value of a configuration, in characters.
VALUE_LENGTH_MAX: Final = 32_767


class KraftConfigOperation(Enum):
    """The operations of IncrementalAlterConfigs."""

    SET = "set"
    DELETE = "delete"
    APPEND = "append"
    SUBTRACT = "subtract"


@dataclass(frozen=True, slots=True)
class KraftConfigChange:
    """Operations on the configurations of a resource by key. ``replaces_all`` deletes those that are not named."""

    resource: Resource
    operations: Mapping[str, tuple[KraftConfigOperation, str | None]] = field(default_factory=dict)
    replaces_all: bool = False


@dataclass(frozen=True, slots=True)
class ConfigResult:
    """The result for a resource."""

    resource: Resource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_configs(
    context: KraftContext, changes: Sequence[KraftConfigChange], *, forwarded: bool = True
) -> ControllerResult[list[ConfigResult]]:
    """Change configurations; the response is a list of ConfigResult. All records are atomic.

    With ELR each change of ``min.insync.replicas`` clears ELRs. ``forwarded``: a broker has validated the request.
    """
    results, records = [], list[RecordAndVersion]()
    for change in changes:
        try:
            records += _resource_records(context, change, forwarded)
            results.append(ConfigResult(change.resource))
        except RequestRefused as refusal:
            results.append(ConfigResult(change.resource, refusal.error, refusal.message))
    records += clear_elr_records(context, records)
    check_record_count(records)
    return ControllerResult(records, results, atomic=True)


def configure_new_topic(context: KraftContext, topic: str, values: Mapping[str, str | None]) -> list[RecordAndVersion]:
    """The records that set the configurations of a new topic, and those of ``clear_elr_records``.

    Raises RequestRefused.
    """
    resource = ResourceType.TOPIC, topic
    stored = context.metadata.configs.get(resource, {})
    records = [_record(resource, key, value) for key, value in values.items() if stored.get(key) != value]
    _check_records(context, resource, records, forwarded=True)
    return records + clear_elr_records(context, records)


def clear_elr_records(context: KraftContext, records: Sequence[RecordAndVersion]) -> list[RecordAndVersion]:
    """With ELR, a ClearElr for each record that changes ``min.insync.replicas``."""
    configs = [record.record for record in records if isinstance(record.record, ConfigRecord)]
    if not context.metadata.elr_enabled:
        return []
    return [
        RecordAndVersion(ClearElrRecord(topic_name=_topic_of(config)), 0)
        for config in configs
        if config.name == MIN_INSYNC_REPLICAS
    ]


def elr_safety_records(context: KraftContext) -> list[RecordAndVersion]:
    """The records that make ``min.insync.replicas`` equal on all brokers."""
    configs = context.metadata.configs
    values: dict[str, str | None] = {}
    if MIN_INSYNC_REPLICAS not in configs.get((ResourceType.BROKER, ""), {}):
        values[""] = str(context.settings.min_insync_replicas)
    values |= {
        name: None
        for kind, name in sorted(configs)
        if kind == ResourceType.BROKER and name and MIN_INSYNC_REPLICAS in configs[kind, name]
    }
    return [_record((ResourceType.BROKER, name), MIN_INSYNC_REPLICAS, value) for name, value in values.items()]


def _topic_of(config: ConfigRecord) -> str:
    return config.resource_name if config.resource_type == ResourceType.TOPIC else ""


def _record(resource: Resource, key: str, value: str | None) -> RecordAndVersion:
    record = ConfigRecord(resource_type=int(resource[0]), resource_name=resource[1], name=key, value=value)
    return RecordAndVersion(record, 0)


def _resource_records(context: KraftContext, change: KraftConfigChange, forwarded: bool) -> list[RecordAndVersion]:
    resource = change.resource
    stored = context.metadata.configs.get(resource, {})
    values = {
        key: _new_value(resource, key, stored.get(key), *operation) for key, operation in change.operations.items()
    }
    records = [
        _record(resource, key, value)
        for key, value in values.items()
        if resource[0] == ResourceType.BROKER or stored.get(key) != value
    ]
    if change.replaces_all:
        records += [_record(resource, key, None) for key in stored if key not in values]
    _check_records(context, resource, records, forwarded=forwarded)
    _check_existence(context, resource)
    return records


def _new_value(
    resource: Resource, key: str, stored: str | None, operation: KraftConfigOperation, value: str | None
) -> str | None:
    if operation is KraftConfigOperation.SET:
        return value
    if operation is KraftConfigOperation.DELETE:
        return None
    if resource[0] != ResourceType.TOPIC or key not in LIST_CONFIGS:
        message = f"Can't {operation.name} to key {key} because its type is not LIST."
        raise RequestRefused(ErrorCode.INVALID_CONFIG, message)
    parts = [part for part in (LIST_CONFIGS[key] if stored is None else stored).split(",") if part]
    for part in (value or "").split(","):
        if operation is KraftConfigOperation.APPEND and part not in parts:
            parts.append(part)
        elif operation is KraftConfigOperation.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _check_records(
    context: KraftContext, resource: Resource, records: Sequence[RecordAndVersion], *, forwarded: bool
) -> None:
    stored = context.metadata.configs.get(resource, {})
    values = dict(stored)
    for record in records:
        config = record.record
        assert isinstance(config, ConfigRecord)
        problem = _problem(context, config, forwarded)
        if problem is not None:
            raise RequestRefused(ErrorCode.INVALID_CONFIG, problem)
        if config.value is None:
            values.pop(config.name, None)
        else:
            values[config.name] = config.value
    if context.settings.validates_configs:
        check_values(context, resource, values, stored)


def _problem(context: KraftContext, config: ConfigRecord, forwarded: bool) -> str | None:
    """The reason why a change is invalid, or None."""
    if config.resource_type == ResourceType.BROKER:
        if config.name == MIN_INSYNC_REPLICAS and context.metadata.elr_enabled:
            if config.resource_name:
                return "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            if config.value is None:
                return "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        if config.name == CORDONED_LOG_DIRS:
            return _cordoned_problem(context, config, forwarded)
    if config.value is not None and len(config.value) > VALUE_LENGTH_MAX:
        return f"The configuration value has {len(config.value):,} characters, but at most {VALUE_LENGTH_MAX:,} fit."
    return None


def _cordoned_problem(context: KraftContext, config: ConfigRecord, forwarded: bool) -> str | None:
    if context.level < MetadataLevel.CORDONED_DIRECTORIES:
        return f"{CORDONED_LOG_DIRS} requires metadata.version >= {MetadataLevel.CORDONED_DIRECTORIES}"
    if forwarded or not (config.value or "").strip():
        return None
    resource = ResourceType.BROKER, config.resource_name
    stored = context.metadata.configs.get(resource, {}).get(CORDONED_LOG_DIRS, "")
    known = {part.strip() for part in stored.split(",")} if stored else set()
    if not {part.strip() for part in (config.value or "").split(",")} <= known:
        return f"A new value of {CORDONED_LOG_DIRS} via controllers must be a subset of the present value."
    return None


def _check_existence(context: KraftContext, resource: Resource) -> None:
    kind, name = resource
    if kind == ResourceType.TOPIC and name not in context.metadata.topics.index_by_name:
        raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == ResourceType.BROKER and name:
        try:
            node_id = int(name)
        except ValueError:
            raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Invalid broker name {name}") from None
        controllers = {context.settings.node_id, *context.settings.quorum_ids}
        if node_id not in context.metadata.brokers.registrations and node_id not in controllers:
            raise RequestRefused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")
