"""The metadata of a KRaft cluster (Kafka ``MetadataImage``)."""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from kframe.model.kraft.brokers import KraftBrokers
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.kraft.directories import Directories
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RegisterControllerRecord,
    UserScramCredentialRecord,
)
from kframe.model.kraft.topics import KraftTopics

#: Type and name of a resource with configurations.
Resource: TypeAlias = tuple[int, str]
#: Types and names of a quota's entity, sorted by type.
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
#: Type of resource, type of pattern and name.
AclPattern: TypeAlias = tuple[int, int, str]


class ClusterMetadata:
    """Brokers, topics and partitions in columns, and all other metadata by key. ``replay`` writes it."""

    def __init__(self) -> None:
        self.directories = Directories()
        self.brokers = KraftBrokers(self.directories)
        self.topics = KraftTopics()
        self.partitions = KraftPartitions()
        self.features: dict[str, int] = {}
        """Finalized levels above 0, with ``metadata.version``."""
        self.configs: dict[Resource, dict[str, str]] = {}
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[UUID, AccessControlEntryRecord] = {}
        self.acls_by_pattern: dict[AclPattern, dict[UUID, AccessControlEntryRecord]] = {}
        self.scram: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.next_producer_id = 0
        self.zk_migration_state: int | None = None

    @property
    def metadata_version(self) -> int:
        """The level of ``metadata.version``. The lowest one before any record has set it."""
        return self.features.get(METADATA_VERSION, MetadataLevel.MINIMUM)

    @property
    def elr_enabled(self) -> bool:
        """Whether partitions have eligible leader replicas."""
        return self.features.get(ELR_VERSION, 0) >= 1

    def row(self, topic: str, partition: int) -> int | None:
        """Row of a partition by topic name, or None."""
        index = self.topics.index_by_name.get(topic)
        return None if index is None else self.topics.row_of(index, partition)

    def name(self, row: int) -> str:
        """``topic-partition`` of a row."""
        return f"{self.topics.names[int(self.partitions.topic[row])]}-{int(self.partitions.partition[row])}"

    def copy(self) -> ClusterMetadata:
        """An independent copy. Records are immutable and shared."""
        clone = ClusterMetadata()
        clone.directories = self.directories.copy()
        clone.brokers = self.brokers.copy(clone.directories)
        clone.topics, clone.partitions = self.topics.copy(), self.partitions.copy()
        clone.features, clone.controllers = dict(self.features), dict(self.controllers)
        clone.configs = {resource: dict(values) for resource, values in self.configs.items()}
        clone.quotas = {entity: dict(values) for entity, values in self.quotas.items()}
        clone.acls, clone.scram, clone.tokens = dict(self.acls), dict(self.scram), dict(self.tokens)
        clone.acls_by_pattern = {pattern: dict(entries) for pattern, entries in self.acls_by_pattern.items()}
        clone.next_producer_id, clone.zk_migration_state = self.next_producer_id, self.zk_migration_state
        return clone
