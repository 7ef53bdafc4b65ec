"""All metadata of a cluster as records, in the order of Kafka's snapshots (Kafka 4.4 ``MetadataImage.write``)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from kframe.model.kraft.views import partition_record


def image_records(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    """The records of a snapshot of ``metadata``. Topics are in the order of their indexes."""
    yield from _features(metadata)
    yield from _brokers(metadata)
    yield from (controller for _, controller in sorted(metadata.controllers.items()))
    yield from _topics(metadata)
    yield from _configs(metadata)
    yield from _quotas(metadata)
    if metadata.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, next_producer_id=metadata.next_producer_id)
    yield from metadata.acls.values()
    yield from metadata.scram.values()
    yield from metadata.tokens.values()


def _features(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata.metadata_version)
    for name, level in sorted(metadata.features.items()):
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)


def _brokers(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    for broker_id, registration in sorted(metadata.brokers.registrations.items()):
        yield RegisterBrokerRecord(
            broker_id=broker_id,
            is_migrating_zk_broker=registration.is_migrating_zk_broker,
            incarnation_id=registration.incarnation_id,
            broker_epoch=registration.broker_epoch,
            end_points=registration.end_points,
            features=registration.features,
            rack=registration.rack,
            fenced=registration.fenced,
            in_controlled_shutdown=registration.in_controlled_shutdown,
            log_dirs=registration.directories,
            cordoned_log_dirs=registration.cordoned or None,
        )


def _topics(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    for name, index in metadata.topics.index_by_name.items():
        yield TopicRecord(name=name, topic_id=metadata.topics.ids[index])
        for row in np.sort(metadata.topics.rows_of(index)).tolist():
            yield _partition(metadata, row)


def _partition(metadata: ClusterMetadata, row: int) -> PartitionRecord:
    """A partition without empty ELRs, which Kafka leaves out."""
    record = partition_record(metadata, row)
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    for name in ("eligible_leader_replicas", "last_known_elr"):
        values[name] = values[name] or None
    return PartitionRecord(**values)


def _configs(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    for (kind, resource), values in sorted(metadata.configs.items()):
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=int(kind), resource_name=resource, name=name, value=value)


def _quotas(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    for entity, values in metadata.quotas.items():
        parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in sorted(values.items()):
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
