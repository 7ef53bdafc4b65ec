"""What access to a live cluster implements (``LiveCluster``, ``LoggedCluster``), histories, and their records."""

from __future__ import annotations

from kframe.ports.cluster_history import ClusterHistory, Difference, HistoryPoint, HistoryRecord, LeaderCause
from kframe.ports.committed_log import CommittedBatch, CommittedLog, CommittedRecord, LoggedCluster
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
    "HistoryPoint",
    "HistoryRecord",
    "Instance",
    "LeaderCause",
    "LiveCluster",
    "LiveCounts",
    "LoggedCluster",
    "Progress",
    "Resignation",
    "ignore_progress",
    "listener_addresses",
]
