"""Replay of metadata records into the metadata of a cluster: a function for each type of record.

A record that contradicts the metadata raises InputError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kframe.core.kraft.brokers import replay as brokers
from kframe.core.kraft.configuration import replay as configuration
from kframe.core.kraft.features import replay as features
from kframe.core.kraft.replication import replay as replication
from kframe.core.kraft.security import replay as security
from kframe.core.kraft.topics import replay as topics
from kframe.model.kraft import records
from kframe.model.kraft.metadata import ClusterMetadata


def replay_zk_migration_state(metadata: ClusterMetadata, record: records.ZkMigrationStateRecord, offset: int) -> None:
    """Store the state of a migration. No rule reads it."""
    metadata.zk_migration_state = record.zk_migration_state


def replay_nothing(metadata: ClusterMetadata, record: records.MetadataRecord, offset: int) -> None:
    """A record without effect on the metadata: the reader of the log handles transactions."""


#: The function of each type of record. It gets the record's offset.
REPLAY: Final[dict[type[records.MetadataRecord], Callable[[ClusterMetadata, Any, int], None]]] = {
    records.RegisterBrokerRecord: brokers.replay_register_broker,
    records.UnregisterBrokerRecord: brokers.replay_unregister_broker,
    records.TopicRecord: topics.replay_topic,
    records.PartitionRecord: topics.replay_partition,
    records.ConfigRecord: configuration.replay_config,
    records.PartitionChangeRecord: replication.replay_partition_change,
    records.FenceBrokerRecord: brokers.replay_fence_broker,
    records.UnfenceBrokerRecord: brokers.replay_unfence_broker,
    records.RemoveTopicRecord: topics.replay_remove_topic,
    records.DelegationTokenRecord: security.replay_token,
    records.UserScramCredentialRecord: security.replay_scram,
    records.FeatureLevelRecord: features.replay_feature_level,
    records.ClientQuotaRecord: security.replay_client_quota,
    records.ProducerIdsRecord: brokers.replay_producer_ids,
    records.BrokerRegistrationChangeRecord: brokers.replay_registration_change,
    records.AccessControlEntryRecord: security.replay_acl,
    records.RemoveAccessControlEntryRecord: security.replay_remove_acl,
    records.NoOpRecord: replay_nothing,
    records.ZkMigrationStateRecord: replay_zk_migration_state,
    records.RemoveUserScramCredentialRecord: security.replay_remove_scram,
    records.BeginTransactionRecord: replay_nothing,
    records.EndTransactionRecord: replay_nothing,
    records.AbortTransactionRecord: replay_nothing,
    records.RemoveDelegationTokenRecord: security.replay_remove_token,
    records.RegisterControllerRecord: brokers.replay_register_controller,
    records.ClearElrRecord: configuration.replay_clear_elr,
    records.UnregisterControllerRecord: brokers.replay_unregister_controller,
}


def replay(metadata: ClusterMetadata, record: records.MetadataRecord, offset: int) -> None:
    """Apply one committed record. Raises InputError if the record contradicts the metadata."""
    REPLAY[type(record)](metadata, record, offset)
