"""What access to a live cluster implements, which is at least ``LiveCluster``, histories, and their records."""

from __future__ import annotations

from kframe.ports.cluster_history import ClusterHistory, Difference, HistoryPoint, HistoryRecord, LeaderCause
from kframe.ports.committed_log import CommittedBatch, CommittedLog, CommittedRecord, LoggedCluster
from kframe.ports.consumer_groups import GroupedCluster, GroupPartition, TopicGroups
from kframe.ports.live_cluster import (
    ClusterStatus,
    ControllerKind,
    LiveCluster,
    LiveCounts,
    Resignation,
    listener_addresses,
)
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.instances import Instance

__all__ = [
    "ClusterHistory",
    "ClusterStatus",
    "CommittedBatch",
    "CommittedLog",
    "CommittedRecord",
    "ControllerKind",
    "Difference",
    "GroupPartition",
    "GroupedCluster",
    "HistoryPoint",
    "HistoryRecord",
    "Instance",
    "LeaderCause",
    "LiveCluster",
    "LiveCounts",
    "LoggedCluster",
    "Progress",
    "Resignation",
    "TopicGroups",
    "ignore_progress",
    "listener_addresses",
]
