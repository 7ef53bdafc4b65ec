"""What an admin API of a live cluster implements (``Administration``), and its records."""

from __future__ import annotations

from kframe.snapshot.administration import Administration, ConfigResource, LogDirReplica, PartitionReassignment
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, snapshot_of

__all__ = [
    "Administration",
    "ClusterDescription",
    "ConfigResource",
    "DescribedPartition",
    "LogDirReplica",
    "PartitionReassignment",
    "snapshot_of",
]
