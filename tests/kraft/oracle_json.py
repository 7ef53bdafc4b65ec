"""Records, responses and states in the JSON of the KRaft oracle (``tests/kraft/oracle/README.md``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.model.ids import RecoveryState
from kframe.model.kafka_uuids import uuid_of_text, uuid_text
from kframe.model.kraft import records
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, ResourceType
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.views import partition_record


def readable_uuid(text: str) -> UUID:
    """The UUID whose text is this one, filled up with the letter A."""
    return uuid_of_text(text.ljust(22, "A"))


def sort_runs(decided: list[RecordAndVersion], names: dict[UUID, str]) -> list[RecordAndVersion]:
    """Sort each run of records of one type as the oracle does."""
    result: list[RecordAndVersion] = []
    run: list[RecordAndVersion] = []
    for versioned in decided:
        if run and type(run[0].record) is not type(versioned.record):
            result += sorted(run, key=lambda item: _sort_key(item, names))
            run = []
        run.append(versioned)
    return result + sorted(run, key=lambda item: _sort_key(item, names))


def _sort_key(versioned: RecordAndVersion, names: dict[UUID, str]) -> tuple[str, int, str]:
    record = versioned.record
    if isinstance(record, records.PartitionChangeRecord | records.PartitionRecord):
        return names[record.topic_id], record.partition_id, ""
    if isinstance(record, records.RemoveTopicRecord):
        return names[record.topic_id], 0, ""
    if isinstance(record, records.ClearElrRecord):
        return record.topic_name, 0, ""
    if isinstance(record, records.ConfigRecord):
        return record.resource_name, record.resource_type, record.name
    return "", 0, ""


def image(context: KraftContext, next_offset: int, now_ns: int) -> dict[str, Any]:
    """The state in the form of a case. Values at their default are absent."""
    metadata = context.metadata
    config: dict[str, Any] = {
        METADATA_VERSION: metadata.metadata_version,
        ELR_VERSION: metadata.features.get(ELR_VERSION, 0),
        "next.offset": next_offset,
    }
    dynamic = {name: dict(values) for (kind, name), values in metadata.configs.items() if kind == ResourceType.BROKER}
    if dynamic:
        config["dynamic"] = dynamic
    brokers = [_broker(context, broker_id, now_ns) for broker_id in sorted(metadata.brokers.registrations)]
    return {"config": config, "brokers": brokers, "topics": [_topic(context, name) for name in _topic_names(context)]}


def _texts(ids: Iterable[UUID]) -> list[str]:
    return [uuid_text(value) for value in ids]


def _topic_names(context: KraftContext) -> list[str]:
    return sorted(context.metadata.topics.index_by_name)


def _broker(context: KraftContext, broker_id: int, now_ns: int) -> dict[str, Any]:
    registration = context.metadata.brokers.registrations[broker_id]
    epoch = registration.broker_epoch
    node: dict[str, Any] = {"id": broker_id, "epoch": epoch}
    if registration.incarnation_id != readable_uuid(f"broker{broker_id}"):
        node["incarnation"] = uuid_text(registration.incarnation_id)
    if registration.rack is not None:
        node["rack"] = registration.rack
    for name, value in (("fenced", registration.fenced), ("inControlledShutdown", registration.in_controlled_shutdown)):
        if value:
            node[name] = True
    if registration.directories:
        node["directories"] = _texts(registration.directories)
    if registration.cordoned is not None:
        node["cordoned"] = _texts(registration.cordoned)
    if registration.offset != epoch:
        node["registeredOffset"] = registration.offset
    session = context.heartbeats.has_valid_session(broker_id, epoch, now_ns)
    if ((broker_id, epoch) in context.heartbeats.contact_ns) if registration.fenced else not session:
        node["session"] = session
    state = context.heartbeats.brokers.get(broker_id)
    if state is not None and state.metadata_offset != -1:
        node["metadataOffset"] = state.metadata_offset
    if state is not None and state.controlled_shutdown_offset != -1:
        node["controlledShutdownOffset"] = state.controlled_shutdown_offset
    return node


def _topic(context: KraftContext, name: str) -> dict[str, Any]:
    metadata = context.metadata
    index = metadata.topics.index_by_name[name]
    node: dict[str, Any] = {"name": name, "id": uuid_text(metadata.topics.ids[index])}
    configs = metadata.configs.get((ResourceType.TOPIC, name))
    if configs:
        node["configs"] = dict(configs)
    node["partitions"] = [_partition(context, row) for row in metadata.topics.rows_of(index).tolist()]
    return node


def _partition(context: KraftContext, row: int) -> dict[str, Any]:
    record = partition_record(context.metadata, row)
    node: dict[str, Any] = {
        "partition": record.partition_id,
        "replicas": list(record.replicas),
        "isr": list(record.isr),
        "leader": record.leader,
        "leaderEpoch": record.leader_epoch,
        "partitionEpoch": record.partition_epoch,
    }
    lists = {
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
        "elr": sorted(record.eligible_leader_replicas or ()),
        "lastKnownElr": sorted(record.last_known_elr or ()),
    }
    node |= {key: list(values) for key, values in lists.items() if values}
    if any(directory.int for directory in record.directories):
        node["directories"] = _texts(record.directories)
    if record.leader_recovery_state == RecoveryState.RECOVERING:
        node["recoveryState"] = "RECOVERING"
    return node
