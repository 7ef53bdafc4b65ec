"""Brokers, topics and partitions as the controller stores them, and requests that name partitions."""

from __future__ import annotations

from kframe.core.topics.replica_assignment import table_of
from kframe.model.brokers import Endpoint, Registration
from kframe.model.cluster import UNKNOWN_ZXID, ClusterState
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, NO_STATE, RecoveryState, ReplicaFlag, ReplicaState
from kframe.model.tables import Notifications, Targets, TopicSettings, TopicTable, reassignment_flags
from kframe.model.topics import UNSET, ZERO_TOPIC_ID, topic_name_problem

__all__ = [
    "NO_BROKER_EPOCH",
    "NO_LEADER",
    "NO_STATE",
    "UNKNOWN_ZXID",
    "UNSET",
    "ZERO_TOPIC_ID",
    "ClusterState",
    "ElectionType",
    "Endpoint",
    "Notifications",
    "RecoveryState",
    "Registration",
    "ReplicaFlag",
    "ReplicaState",
    "Targets",
    "TopicPartition",
    "TopicSettings",
    "TopicTable",
    "reassignment_flags",
    "table_of",
    "topic_name_problem",
]
