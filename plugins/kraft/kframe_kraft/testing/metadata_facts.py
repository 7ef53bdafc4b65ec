"""The metadata of a cluster as plain values, for comparisons that do not depend on the order of replay."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from kframe.plugin.kraft import ClusterMetadata, partition_record


def metadata_facts(metadata: ClusterMetadata) -> dict[str, Any]:
    """Everything that ``metadata`` says, by names and ids."""
    topics = metadata.topics
    partitions = {}
    for name, index in topics.index_by_name.items():
        for row in topics.rows_of(index).tolist():
            record = partition_record(metadata, row)
            partitions[name, record.partition_id] = record
    return {
        "topics": {name: topics.ids[index] for name, index in topics.index_by_name.items()},
        "min_isr": {name: int(topics.min_isr[index]) for name, index in topics.index_by_name.items()},
        "partitions": partitions,
        "brokers": {broker_id: asdict(value) for broker_id, value in metadata.brokers.registrations.items()},
        "features": metadata.features,
        "configs": metadata.configs,
        "controllers": metadata.controllers,
        "quotas": metadata.quotas,
        "acls": metadata.acls,
        "scram": metadata.scram,
        "tokens": metadata.tokens,
        "next_producer_id": metadata.next_producer_id,
    }
