"""The records of KRaft's metadata log (Kafka 4.4, ``metadata/src/main/resources/common/metadata``).

Classes and fields have Kafka's names, fields in snake case and in the order of Kafka's schema. A field has the default
of the schema; a field without a default there is required, unless a later version of the record introduced it. None is
the absent value of nullable fields. ``api_key`` is the type in the record's frame. The annotations have the rest of the
schema: the type, the first version and the tag of a field.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar, Final, TypeAlias
from uuid import UUID

from msgspec import Struct

from kframe.model.kraft.record_fields import Int8, Int16, Int32, Int64, Since, Tag, UInt16

Ids: TypeAlias = tuple[Int32, ...]
DirectoryIds: TypeAlias = tuple[UUID, ...]

NO_LEADER_CHANGE: Final = -2
"""``PartitionChangeRecord.leader`` while the leader and its epoch stay."""
NO_RECOVERY_CHANGE: Final = -1
"""``PartitionChangeRecord.leader_recovery_state`` while the state stays."""


class FencingChange(IntEnum):
    """``BrokerRegistrationChangeRecord.fenced`` (Kafka ``BrokerRegistrationFencingChange``)."""

    UNFENCE = -1
    NONE = 0
    FENCE = 1


class MetadataRecord(Struct, frozen=True, kw_only=True):
    """Base of the metadata records."""

    api_key: ClassVar[int] = -1


# --- topics and partitions


class TopicRecord(MetadataRecord, frozen=True, kw_only=True):
    """A topic was created. Its partitions follow."""

    api_key: ClassVar[int] = 2
    name: str
    topic_id: UUID


class PartitionRecord(MetadataRecord, frozen=True, kw_only=True):
    """The whole state of a partition. ``directories`` has the order of ``replicas``."""

    api_key: ClassVar[int] = 3
    partition_id: Int32 = -1
    topic_id: UUID
    replicas: Ids
    isr: Ids
    removing_replicas: Ids
    adding_replicas: Ids
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[DirectoryIds, Since(1)] = ()
    eligible_leader_replicas: Annotated[Ids | None, Since(2), Tag(1)] = None
    last_known_elr: Annotated[Ids | None, Since(2), Tag(2)] = None


class PartitionChangeRecord(MetadataRecord, frozen=True, kw_only=True):
    """A change of a partition. None, NO_LEADER_CHANGE and NO_RECOVERY_CHANGE keep the value.

    Replay raises the partition epoch by one, and the leader epoch if ``leader`` is set (Kafka
    ``PartitionRegistration.merge``).
    """

    api_key: ClassVar[int] = 5
    partition_id: Int32 = -1
    topic_id: UUID
    isr: Annotated[Ids | None, Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = NO_LEADER_CHANGE
    replicas: Annotated[Ids | None, Tag(2)] = None
    removing_replicas: Annotated[Ids | None, Tag(3)] = None
    adding_replicas: Annotated[Ids | None, Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = NO_RECOVERY_CHANGE
    directories: Annotated[DirectoryIds | None, Since(1), Tag(8)] = None
    eligible_leader_replicas: Annotated[Ids | None, Since(2), Tag(6)] = None
    last_known_elr: Annotated[Ids | None, Since(2), Tag(7)] = None


class RemoveTopicRecord(MetadataRecord, frozen=True, kw_only=True):
    """A topic was deleted, with its partitions and configuration."""

    api_key: ClassVar[int] = 9
    topic_id: UUID


class ClearElrRecord(MetadataRecord, frozen=True, kw_only=True):
    """Empties ELR and last-known ELR of a topic. The name "" means every topic."""

    api_key: ClassVar[int] = 28
    topic_name: str


# --- brokers and controllers


class BrokerEndpoint(Struct, frozen=True, kw_only=True):
    """A listener of a broker. ``security_protocol`` is Kafka's ``SecurityProtocol`` id."""

    name: str
    host: str
    port: UInt16
    security_protocol: Int16


class BrokerFeature(Struct, frozen=True, kw_only=True):
    """The range of levels of a feature that a broker supports."""

    name: str
    min_supported_version: Int16
    max_supported_version: Int16


class ControllerEndpoint(BrokerEndpoint, frozen=True, kw_only=True):
    """A listener of a controller."""


class ControllerFeature(BrokerFeature, frozen=True, kw_only=True):
    """The range of levels of a feature that a controller supports."""


class RegisterBrokerRecord(MetadataRecord, frozen=True, kw_only=True):
    """A broker registered. Replaces its former registration. ``cordoned_log_dirs`` None: the broker has sent none."""

    api_key: ClassVar[int] = 0
    broker_id: Int32
    is_migrating_zk_broker: Annotated[bool, Since(2)] = False
    incarnation_id: UUID
    broker_epoch: Int64
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: Annotated[bool, Since(1)] = False
    log_dirs: Annotated[DirectoryIds, Since(3), Tag(0)] = ()
    cordoned_log_dirs: Annotated[DirectoryIds | None, Since(4), Tag(1)] = None


class UnregisterBrokerRecord(MetadataRecord, frozen=True, kw_only=True):
    """A registration was removed."""

    api_key: ClassVar[int] = 1
    broker_id: Int32
    broker_epoch: Int64


class FenceBrokerRecord(MetadataRecord, frozen=True, kw_only=True):
    """A broker was fenced. Written below metadata.version 3.3-IV2 only."""

    api_key: ClassVar[int] = 7
    id: Int32
    epoch: Int64


class UnfenceBrokerRecord(MetadataRecord, frozen=True, kw_only=True):
    """A broker was unfenced. Written below metadata.version 3.3-IV2 only."""

    api_key: ClassVar[int] = 8
    id: Int32
    epoch: Int64


class BrokerRegistrationChangeRecord(MetadataRecord, frozen=True, kw_only=True):
    """A change of a registration.

    ``fenced`` is a FencingChange; ``in_controlled_shutdown`` is 1 when the shutdown begins, else 0. Empty ``log_dirs``
    and ``cordoned_log_dirs`` None keep the directories.
    """

    api_key: ClassVar[int] = 17
    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[Int8, Tag(0)] = FencingChange.NONE.value
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    log_dirs: Annotated[DirectoryIds, Since(2), Tag(2)] = ()
    cordoned_log_dirs: Annotated[DirectoryIds | None, Since(3), Tag(3)] = None


class RegisterControllerRecord(MetadataRecord, frozen=True, kw_only=True):
    """A controller registered."""

    api_key: ClassVar[int] = 27
    controller_id: Int32
    incarnation_id: UUID
    zk_migration_ready: bool
    end_points: tuple[ControllerEndpoint, ...]
    features: tuple[ControllerFeature, ...]


class UnregisterControllerRecord(MetadataRecord, frozen=True, kw_only=True):
    """The registration of a controller was removed."""

    api_key: ClassVar[int] = 29
    controller_id: Int32


# --- the cluster


class ConfigRecord(MetadataRecord, frozen=True, kw_only=True):
    """A dynamic configuration; ``value`` None removes the key. ``resource_type`` is Kafka's ``ConfigResource.Type``."""

    api_key: ClassVar[int] = 4
    resource_type: Int8
    resource_name: str
    name: str
    value: str | None


class FeatureLevelRecord(MetadataRecord, frozen=True, kw_only=True):
    """The finalized level of a feature. 0 removes it, except metadata.version."""

    api_key: ClassVar[int] = 12
    name: str
    feature_level: Int16


class EntityData(Struct, frozen=True, kw_only=True):
    """A part of a quota's entity. ``entity_name`` None is the default of its type."""

    entity_type: str
    entity_name: str | None


class ClientQuotaRecord(MetadataRecord, frozen=True, kw_only=True):
    """A client quota was set or removed."""

    api_key: ClassVar[int] = 14
    entity: tuple[EntityData, ...]
    key: str
    value: float
    remove: bool


class ProducerIdsRecord(MetadataRecord, frozen=True, kw_only=True):
    """A block of producer ids was allocated. The next block begins at ``next_producer_id``."""

    api_key: ClassVar[int] = 15
    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


class NoOpRecord(MetadataRecord, frozen=True, kw_only=True):
    """Advances the offset of an idle log."""

    api_key: ClassVar[int] = 20


class ZkMigrationStateRecord(MetadataRecord, frozen=True, kw_only=True):
    """Progress of a migration from ZooKeeper. Ignored since Kafka 4.0."""

    api_key: ClassVar[int] = 21
    zk_migration_state: Int8


class BeginTransactionRecord(MetadataRecord, frozen=True, kw_only=True):
    """Readers buffer the following records until the transaction ends."""

    api_key: ClassVar[int] = 23
    name: Annotated[str | None, Tag(0)] = None


class EndTransactionRecord(MetadataRecord, frozen=True, kw_only=True):
    """Readers apply the records of the transaction."""

    api_key: ClassVar[int] = 24


class AbortTransactionRecord(MetadataRecord, frozen=True, kw_only=True):
    """Readers drop the records of the transaction."""

    api_key: ClassVar[int] = 25
    reason: Annotated[str | None, Tag(0)] = None


# --- security


class AccessControlEntryRecord(MetadataRecord, frozen=True, kw_only=True):
    """An ACL was created. The int8 fields have Kafka's codes of ``ResourceType``, ``PatternType`` and so on."""

    api_key: ClassVar[int] = 18
    id: UUID
    resource_type: Int8
    resource_name: str
    pattern_type: Int8
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryRecord(MetadataRecord, frozen=True, kw_only=True):
    """An ACL was removed."""

    api_key: ClassVar[int] = 19
    id: UUID


class UserScramCredentialRecord(MetadataRecord, frozen=True, kw_only=True):
    """A SCRAM credential. ``mechanism`` is Kafka's ``ScramMechanism`` code."""

    api_key: ClassVar[int] = 11
    name: str
    mechanism: Int8
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: Int32


class RemoveUserScramCredentialRecord(MetadataRecord, frozen=True, kw_only=True):
    """A SCRAM credential was removed."""

    api_key: ClassVar[int] = 22
    name: str
    mechanism: Int8


class DelegationTokenRecord(MetadataRecord, frozen=True, kw_only=True):
    """A delegation token. Timestamps are milliseconds since the epoch."""

    api_key: ClassVar[int] = 10
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: str


class RemoveDelegationTokenRecord(MetadataRecord, frozen=True, kw_only=True):
    """A delegation token was removed."""

    api_key: ClassVar[int] = 26
    token_id: str


def record_name(record: type[MetadataRecord]) -> str:
    """The name of a type without ``Record``: ``PartitionChange``."""
    return record.__name__.removesuffix("Record")


#: The class of each type. Types 6, 13 and 16 do not exist.
RECORD_TYPES: Final[dict[int, type[MetadataRecord]]] = {
    record.api_key: record for record in sorted(MetadataRecord.__subclasses__(), key=lambda record: record.api_key)
}
