"""What an admin API of a live cluster implements (``Administration``), and its records."""

from __future__ import annotations

from kframe.snapshot.administration import Administration, ConfigResource, LogDirReplica, Moving
from kframe.snapshot.metadata import ClusterDescription, Described, snapshot_of

__all__ = [
    "Administration",
    "ClusterDescription",
    "ConfigResource",
    "Described",
    "LogDirReplica",
    "Moving",
    "snapshot_of",
]
