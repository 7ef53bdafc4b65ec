"""What access to a live cluster implements (``LiveCluster``), and its records."""

from __future__ import annotations

from kframe.snapshot.files import Progress, ignore_progress
from kframe.snapshot.instances import Instance
from kframe.snapshot.live import ClusterStatus, ControllerKind, LiveCluster, LiveCounts, Resignation

__all__ = [
    "ClusterStatus",
    "ControllerKind",
    "Instance",
    "LiveCluster",
    "LiveCounts",
    "Progress",
    "Resignation",
    "ignore_progress",
]
