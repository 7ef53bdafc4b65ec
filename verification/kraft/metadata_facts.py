"""The metadata of a cluster as plain values, for comparisons that do not depend on the order of replay."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from kframe.plugin.kraft import ClusterMetadata, partition_record


def metadata_facts(metadata: ClusterMetadata, offsets: bool = True) -> dict[str, Any]:
    """The content of ``metadata`` by names and ids.

    Without ``offsets``, those of registrations are left out, because a snapshot does not have them. A snapshot also has
    no order of features and listeners.
    """
    topics = metadata.topics
    partitions = {}
    brokers = {broker_id: asdict(value) for broker_id, value in metadata.brokers.registrations.items()}
    if not offsets:
        brokers = {
            broker_id: broker
            | {"offset": 0, "features": set(broker["features"])}
            | {"end_points": set(broker["end_points"])}
            for broker_id, broker in brokers.items()
        }
    for name, index in topics.index_by_name.items():
        for row in topics.rows_of(index).tolist():
            record = partition_record(metadata, row)
            partitions[name, record.partition_id] = record
    return {
        "topics": {name: topics.ids[index] for name, index in topics.index_by_name.items()},
        "min_isr": {name: int(topics.min_isr[index]) for name, index in topics.index_by_name.items()},
        "partitions": partitions,
        "brokers": brokers,
        "features": metadata.features,
        "configs": metadata.configs,
        "controllers": {
            controller_id: (controller.incarnation_id, set(controller.end_points), set(controller.features))
            for controller_id, controller in metadata.controllers.items()
        },
        "quotas": metadata.quotas,
        "acls": metadata.acls,
        "scram": metadata.scram,
        "tokens": metadata.tokens,
        "next_producer_id": metadata.next_producer_id,
    }
