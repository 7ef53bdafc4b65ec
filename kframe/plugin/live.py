"""What access to a live cluster implements (``LiveCluster``, ``LoggedCluster``), and its records."""

from __future__ import annotations

from kframe.snapshot.committed_log import CommittedBatch, CommittedLog, CommittedRecord, LoggedCluster
from kframe.snapshot.files import Progress, ignore_progress
from kframe.snapshot.instances import Instance
from kframe.snapshot.live import ClusterStatus, ControllerKind, LiveCluster, LiveCounts, Resignation, listener_addresses

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
