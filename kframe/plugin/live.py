"""What access to a live cluster implements (``LiveCluster``, ``LoggedCluster``), and its records."""

from __future__ import annotations

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
    "ClusterStatus",
    "CommittedBatch",
    "CommittedLog",
    "CommittedRecord",
    "ControllerKind",
    "Instance",
    "LiveCluster",
    "LiveCounts",
    "LoggedCluster",
    "Progress",
    "Resignation",
    "ignore_progress",
    "listener_addresses",
]
