"""A valid request of each API, in the newest version that a controller offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verification.kraft.hostile.known import Known

_TOPIC = {"name": "orders", "partitions": [0]}
_ENDPOINT = {"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}
_FEATURE = {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 29}
_ACL = {"resource_type": 2, "resource_name": "orders", "principal": "User:alice", "host": "10.0.0.1", "operation": 3}
_FILTER = {
    "resource_type_filter": 1,
    "resource_name_filter": "orders",
    "pattern_type_filter": 3,
    "principal_filter": "User:alice",
    "host_filter": "*",
    "operation": 1,
    "permission_type": 1,
}
_METADATA = "__cluster_metadata"
_TIME = {"timeout": 1}


def valid_requests(known: Known) -> list[tuple[int, dict[str, Any]]]:
    """API keys and fields."""
    return [*_of_brokers(known), *_of_replicas(known), *_of_administrators(known), *_of_security()]


def _of_brokers(known: Known) -> list[tuple[int, dict[str, Any]]]:
    broker_id = known.leader if known.leader in known.brokers else next(iter(known.brokers), 0)
    broker = {"broker_id": broker_id, "broker_epoch": known.brokers.get(broker_id, -1)}
    members = [{"broker_id": broker_id, "broker_epoch": broker["broker_epoch"]}]
    partition: Mapping[str, Any] = {
        "partition_index": 0,
        "leader_epoch": known.leader_epoch,
        "new_isr_with_epochs": members,
        "leader_recovery_state": 0,
        "partition_epoch": known.partition_epoch,
    }
    assigned = [{"topic_id": known.topic_id, "partitions": [{"partition_index": 0}]}]
    registration = {
        "cluster_id": "cluster",
        "incarnation_id": bytes(15) + b"\x07",
        "listeners": [_ENDPOINT],
        "features": [_FEATURE],
        "rack": "r",
        "log_dirs": [bytes(14) + b"\x07\x07"],
        "previous_broker_epoch": -1,
    }
    heartbeat = {"current_metadata_offset": known.log_end, "offline_log_dirs": [], "cordoned_log_dirs": None}
    return [
        (56, {**broker, "topics": [{"topic_id": known.topic_id, "partitions": [partition]}]}),
        (62, {"broker_id": 7, **registration}),
        (63, {**broker, **heartbeat}),
        (67, broker),
        (70, {"controller_id": 8, "incarnation_id": bytes(16), "listeners": [_ENDPOINT], "features": [_FEATURE]}),
        (73, {**broker, "directories": [{"id_": known.directories[0], "topics": assigned}]}),
        (94, {"controller_id": 8}),
    ]


def _of_replicas(known: Known) -> list[tuple[int, dict[str, Any]]]:
    position = {"partition": 0, "current_leader_epoch": known.quorum_epoch}
    fetched = {"fetch_offset": known.log_end - 1, "last_fetched_epoch": known.quorum_epoch, "partition_max_bytes": 100}
    metadata_id = bytes(15) + b"\x01"
    quorum_partition = {"partition_index": 0, "leader_id": 9, "leader_epoch": known.quorum_epoch}
    vote = {"partition_index": 0, "candidate_epoch": known.quorum_epoch + 1, "candidate_id": 8}
    end = {**quorum_partition, "preferred_candidates": [{"candidate_id": 9}]}
    snapshot = {**position, "snapshot_id": {"end_offset": 0, "epoch": 0}, "position": 0}
    return [
        (
            1,
            {
                "replica_state": {"replica_id": 1, "replica_epoch": -1},
                "max_wait": 1,
                "min_bytes": 1,
                "max_bytes": 1000,
                "session_epoch": -1,
                "topics": [{"topic_id": metadata_id, "partitions": [{**position, **fetched}]}],
            },
        ),
        (52, {"cluster_id": "cluster", "voter_id": 9, "topics": [{"topic_name": _METADATA, "partitions": [vote]}]}),
        (53, {"cluster_id": "cluster", "topics": [{"topic_name": _METADATA, "partitions": [quorum_partition]}]}),
        (54, {"cluster_id": "cluster", "topics": [{"topic_name": _METADATA, "partitions": [end]}]}),
        (55, {"topics": [{"topic_name": _METADATA, "partitions": [{"partition_index": 0}]}]}),
        (59, {"replica_id": 1, "max_bytes": 1000, "topics": [{"name": _METADATA, "partitions": [snapshot]}]}),
        (60, {"include_cluster_authorized_operations": True, "endpoint_type": 2}),
    ]


def _of_administrators(known: Known) -> list[tuple[int, dict[str, Any]]]:
    settings = {"resource_type": 2, "resource_name": "orders"}
    configs = [{"name": "min.insync.replicas", "config_operation": 0, "value": "2"}]
    assignments = [{"partition_index": 0, "broker_ids": [0, 1, 2]}]
    topic = {"name": "new", "num_partitions": -1, "replication_factor": -1, "assignments": assignments, "configs": []}
    more = {"name": "orders", "count": 3, "assignments": [{"broker_ids": [0, 1, 2]}]}
    target = {"name": "orders", "partitions": [{"partition_index": 0, "replicas": [2, 1]}]}
    entity = [{"entity_type": "user", "entity_name": "alice"}]
    quota = {"entity": entity, "ops": [{"key": "controller_mutation_rate", "value": 2.5, "remove": False}]}
    feature = {"feature": "metadata.version", "max_version_level": 26, "upgrade_type": 1}
    return [
        (19, {**_TIME, "topics": [topic], "validate_only": False}),
        (20, {**_TIME, "topics": [{"name": "new"}, {"topic_id": bytes(15) + b"\x05"}]}),
        (32, {"resources": [{**settings, "configuration_keys": ["retention.ms"]}], "include_synonyms": True}),
        (
            33,
            {"resources": [{**settings, "configs": [{"name": "retention.ms", "value": "5"}]}], "validate_only": False},
        ),
        (37, {**_TIME, "topics": [more], "validate_only": False}),
        (43, {**_TIME, "election_type": 0, "topic_partitions": [{"topic": "orders", "partitions": [0, 1]}]}),
        (44, {"resources": [{**settings, "configs": configs}], "validate_only": False}),
        (45, {**_TIME, "topics": [target]}),
        (46, {**_TIME, "topics": [{"name": "orders", "partition_indexes": [0]}]}),
        (49, {"entries": [quota], "validate_only": False}),
        (57, {**_TIME, "feature_updates": [feature], "validate_only": False}),
        (64, {"broker_id": 7}),
    ]


def _of_security() -> list[tuple[int, dict[str, Any]]]:
    upsertion = {"name": "eve", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": bytes(32)}
    return [
        (18, {"client_software_name": "a", "client_software_version": "1"}),
        (29, _FILTER),
        (30, {"creations": [{**_ACL, "resource_pattern_type": 3, "permission_type": 3}]}),
        (31, {"filters": [_FILTER]}),
        (38, {"owner_principal_type": "User", "owner_principal_name": "alice", "renewers": [], "max_lifetime": -1}),
        (39, {"hmac": bytes(32), "renew_period": 1}),
        (40, {"hmac": bytes(32), "expiry_time_period": 1}),
        (51, {"deletions": [{"name": "alice", "mechanism": 2}], "upsertions": [upsertion]}),
    ]
