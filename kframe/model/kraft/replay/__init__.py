"""Replay of metadata records into the metadata of a cluster: a function for each type of record.

A record that contradicts the metadata raises InputError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kframe.model.kraft import records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.replay import brokers, partitions, settings

#: The function of each type of record. It gets the record's offset.
REPLAY: Final[dict[type[records.MetadataRecord], Callable[[ClusterMetadata, Any, int], None]]] = {
    records.RegisterBrokerRecord: brokers.replay_register_broker,
    records.UnregisterBrokerRecord: brokers.replay_unregister_broker,
    records.TopicRecord: partitions.replay_topic,
    records.PartitionRecord: partitions.replay_partition,
    records.ConfigRecord: settings.replay_config,
    records.PartitionChangeRecord: partitions.replay_partition_change,
    records.FenceBrokerRecord: brokers.replay_fence_broker,
    records.UnfenceBrokerRecord: brokers.replay_unfence_broker,
    records.RemoveTopicRecord: partitions.replay_remove_topic,
    records.DelegationTokenRecord: settings.replay_token,
    records.UserScramCredentialRecord: settings.replay_scram,
    records.FeatureLevelRecord: settings.replay_feature_level,
    records.ClientQuotaRecord: settings.replay_client_quota,
    records.ProducerIdsRecord: settings.replay_producer_ids,
    records.BrokerRegistrationChangeRecord: brokers.replay_registration_change,
    records.AccessControlEntryRecord: settings.replay_acl,
    records.RemoveAccessControlEntryRecord: settings.replay_remove_acl,
    records.NoOpRecord: settings.replay_nothing,
    records.ZkMigrationStateRecord: settings.replay_zk_migration_state,
    records.RemoveUserScramCredentialRecord: settings.replay_remove_scram,
    records.BeginTransactionRecord: settings.replay_nothing,
    records.EndTransactionRecord: settings.replay_nothing,
    records.AbortTransactionRecord: settings.replay_nothing,
    records.RemoveDelegationTokenRecord: settings.replay_remove_token,
    records.RegisterControllerRecord: brokers.replay_register_controller,
    records.ClearElrRecord: partitions.replay_clear_elr,
    records.UnregisterControllerRecord: brokers.replay_unregister_controller,
}


def replay(metadata: ClusterMetadata, record: records.MetadataRecord, offset: int) -> None:
    """Apply one committed record. Raises InputError if the record contradicts the metadata."""
    REPLAY[type(record)](metadata, record, offset)
