"""All metadata of a cluster as records, in the order of Kafka's snapshots (Kafka 4.4 ``MetadataImage.write``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from kframe.model.kraft.ids import KRAFT_VERSION, METADATA_VERSION
from kframe.model.kraft.metadata import ClusterMetadata, QuotaEntity
from kframe.model.kraft.records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from kframe.model.kraft.views import partition_record


def image_records(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    """The records of a snapshot of ``metadata``. Topics are in the order of their indexes."""
    yield from feature_records(metadata)
    for _, broker in sorted(metadata.brokers.registrations.items()):
        yield replace(broker.record(), cordoned_log_dirs=broker.cordoned or None)
    yield from (controller for _, controller in sorted(metadata.controllers.items()))
    yield from _topics(metadata)
    yield from setting_records(metadata)


def feature_records(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    """The levels of features, that of ``metadata.version`` first. Control records have that of ``kraft.version``."""
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata.metadata_version)
    for name, level in sorted(metadata.features.items()):
        if name not in (METADATA_VERSION, KRAFT_VERSION):
            yield FeatureLevelRecord(name=name, feature_level=level)


def _topics(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    for name, index in metadata.topics.index_by_name.items():
        yield TopicRecord(name=name, topic_id=metadata.topics.ids[index])
        for row in np.sort(metadata.topics.rows_of(index)).tolist():
            record = partition_record(metadata, row)  # Kafka leaves out empty ELRs.
            yield replace(
                record,
                eligible_leader_replicas=record.eligible_leader_replicas or None,
                last_known_elr=record.last_known_elr or None,
            )


def setting_records(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    """All records after those of topics: configurations, quotas, producer ids, ACLs, users and tokens."""
    yield from config_records(metadata)
    yield from quota_records(metadata.quotas.items())
    if metadata.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, next_producer_id=metadata.next_producer_id)
    yield from metadata.acls.values()
    yield from metadata.scram.values()
    yield from metadata.tokens.values()


def config_records(metadata: ClusterMetadata) -> Iterator[ConfigRecord]:
    """The configurations of all resources, by type, name and key."""
    for (kind, resource), values in sorted(metadata.configs.items()):
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=int(kind), resource_name=resource, name=name, value=value)


def quota_records(quotas: Iterable[tuple[QuotaEntity, Mapping[str, float]]]) -> Iterator[ClientQuotaRecord]:
    """The quotas of these entities in their order, by key."""
    for entity, values in quotas:
        parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in sorted(values.items()):
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
