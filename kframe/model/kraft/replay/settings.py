"""Replay of the records of configurations, features, quotas, users, ACLs, tokens and producer ids."""

from __future__ import annotations

from kframe.errors import InputError
from kframe.model.kraft.ids import METADATA_VERSION, ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)


def replay_config(metadata: ClusterMetadata, record: ConfigRecord, offset: int) -> None:
    """Set or remove a configuration. The settings of a topic that elections read are stored with the topic."""
    resource = record.resource_type, record.resource_name
    configs = metadata.configs.setdefault(resource, {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if not configs:
        del metadata.configs[resource]
    topic = metadata.topics.index_by_name.get(record.resource_name) if resource[0] == ResourceType.TOPIC else None
    if topic is not None:
        metadata.topics.store_setting(topic, record.name, record.value)


def replay_feature_level(metadata: ClusterMetadata, record: FeatureLevelRecord, offset: int) -> None:
    """Finalize the level of a feature. 0 removes it, except for ``metadata.version``."""
    if record.feature_level == 0 and record.name != METADATA_VERSION:
        metadata.features.pop(record.name, None)
    else:
        metadata.features[record.name] = record.feature_level


def replay_client_quota(metadata: ClusterMetadata, record: ClientQuotaRecord, offset: int) -> None:
    """Set or remove a quota of an entity."""
    entity = tuple(sorted((data.entity_type, data.entity_name) for data in record.entity))
    quotas = metadata.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del metadata.quotas[entity]


def replay_producer_ids(metadata: ClusterMetadata, record: ProducerIdsRecord, offset: int) -> None:
    """Advance the next free producer id. Raises InputError if it does not grow."""
    if record.next_producer_id <= metadata.next_producer_id:
        actual, expected = str(record.next_producer_id), f"more than {metadata.next_producer_id}"
        raise InputError("ProducerIdsRecord.nextProducerId", actual, expected)
    metadata.next_producer_id = record.next_producer_id


def replay_acl(metadata: ClusterMetadata, record: AccessControlEntryRecord, offset: int) -> None:
    """Add an ACL."""
    metadata.acls[record.id] = record


def replay_remove_acl(metadata: ClusterMetadata, record: RemoveAccessControlEntryRecord, offset: int) -> None:
    """Remove an ACL."""
    if metadata.acls.pop(record.id, None) is None:
        raise InputError("RemoveAccessControlEntryRecord.id", str(record.id), "an ACL that exists")


def replay_scram(metadata: ClusterMetadata, record: UserScramCredentialRecord, offset: int) -> None:
    """Set a SCRAM credential."""
    metadata.scram[record.name, record.mechanism] = record


def replay_remove_scram(metadata: ClusterMetadata, record: RemoveUserScramCredentialRecord, offset: int) -> None:
    """Remove a SCRAM credential."""
    if metadata.scram.pop((record.name, record.mechanism), None) is None:
        raise InputError("RemoveUserScramCredentialRecord", f"user {record.name}", "a credential that exists")


def replay_token(metadata: ClusterMetadata, record: DelegationTokenRecord, offset: int) -> None:
    """Set a delegation token."""
    metadata.tokens[record.token_id] = record


def replay_remove_token(metadata: ClusterMetadata, record: RemoveDelegationTokenRecord, offset: int) -> None:
    """Remove a delegation token, if it exists."""
    metadata.tokens.pop(record.token_id, None)


def replay_zk_migration_state(metadata: ClusterMetadata, record: ZkMigrationStateRecord, offset: int) -> None:
    """Store the state of a migration. No rule reads it."""
    metadata.zk_migration_state = record.zk_migration_state


def replay_nothing(metadata: ClusterMetadata, record: MetadataRecord, offset: int) -> None:
    """A record without effect on the metadata: the reader of the log handles transactions."""
