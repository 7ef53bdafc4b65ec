"""The metadata after all records, in the form of the ``image`` of a trace."""

from __future__ import annotations

from typing import Any, Final

from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.views import partition_record
from kframe.scenario.kraft.names import SymbolicNames

RESOURCES: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.CLIENT_METRICS: "client-metrics",
    ResourceType.GROUP: "group",
}


def image_of(metadata: ClusterMetadata, names: SymbolicNames) -> dict[str, Any]:
    """Features, brokers, topics, partitions and configurations; quotas, users and producer ids where there are any."""
    topics = sorted(metadata.topics.index_by_name.items())
    image: dict[str, Any] = {
        "features": dict(sorted(metadata.features.items())),
        "brokers": {str(broker): _broker(metadata, broker, names) for broker in sorted(metadata.brokers.registrations)},
        "topics": {name: names.topic(metadata.topics.ids[index]) for name, index in topics},
        "partitions": {
            f"{name}-{int(metadata.partitions.partition[row])}": _partition(metadata, row, names)
            for name, index in topics
            for row in metadata.topics.rows_of(index).tolist()
        },
        "configs": dict(
            sorted(
                (f"{RESOURCES[ResourceType(kind)]}:{name}", dict(sorted(values.items())))
                for (kind, name), values in metadata.configs.items()
            )
        ),
    }
    other_records: dict[str, dict[str, Any]] = {
        "quotas": {
            " ".join(f"{kind}={name}" for kind, name in entity): values for entity, values in metadata.quotas.items()
        },
        "acls": dict(_acl(metadata, names)),
        "scram": {f"{user}/{kind}": {"iterations": item.iterations} for (user, kind), item in metadata.scram.items()},
        "tokens": {
            name: {"owner": token.owner, "renewers": sorted(token.renewers)} for name, token in metadata.tokens.items()
        },
    }
    image |= {key: dict(sorted(values.items())) for key, values in other_records.items() if values}
    if metadata.next_producer_id:
        image["next_producer_id"] = metadata.next_producer_id
    return image


def _acl(metadata: ClusterMetadata, names: SymbolicNames) -> list[tuple[str, dict[str, Any]]]:
    entries = [names.record(RecordAndVersion(record, 0))["data"] for record in metadata.acls.values()]
    return [(data.pop("id"), data) for data in entries]


def _broker(metadata: ClusterMetadata, broker_id: int, names: SymbolicNames) -> dict[str, Any]:
    registration = metadata.brokers.registrations[broker_id]
    cordoned = registration.cordoned
    return {
        "epoch": names.broker_epoch(broker_id, registration.broker_epoch),
        "incarnation": names.incarnation(registration.incarnation_id),
        "rack": registration.rack,
        "fenced": registration.fenced,
        "in_controlled_shutdown": registration.in_controlled_shutdown,
        "directories": sorted(map(names.directory_symbol, registration.directories)),
        "cordoned_directories": None if cordoned is None else sorted(map(names.directory_symbol, cordoned)),
    }


def _partition(metadata: ClusterMetadata, row: int, names: SymbolicNames) -> dict[str, Any]:
    record = partition_record(metadata, row)
    return {
        "replicas": list(record.replicas),
        "adding_replicas": list(record.adding_replicas),
        "removing_replicas": list(record.removing_replicas),
        "leader": record.leader,
        "leader_epoch": record.leader_epoch,
        "isr": list(record.isr),
        "leader_recovery_state": record.leader_recovery_state,
        "partition_epoch": record.partition_epoch,
        "elr": sorted(record.eligible_leader_replicas or ()),
        "last_known_elr": sorted(record.last_known_elr or ()),
        "directories": list(map(names.directory_symbol, record.directories)),
    }
