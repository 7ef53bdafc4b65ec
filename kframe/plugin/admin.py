"""What an admin API of a live cluster implements (``Administration``), and its records."""

from __future__ import annotations

from kframe.ports.administration import (
    Administration,
    ConfigResource,
    DirectoryLog,
    LogDirectory,
    volume_bytes,
)
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, PartitionReassignment, snapshot_of

__all__ = [
    "Administration",
    "ClusterDescription",
    "ConfigResource",
    "DescribedPartition",
    "DirectoryLog",
    "LogDirectory",
    "PartitionReassignment",
    "snapshot_of",
    "volume_bytes",
]
