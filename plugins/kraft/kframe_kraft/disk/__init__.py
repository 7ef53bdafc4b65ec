"""The files of a KRaft node: segments, snapshots, ``meta.properties`` and ``quorum-state``.

Reading takes no lock and changes nothing, so the directory of a running node can be read.
"""

from __future__ import annotations

from kframe_kraft.disk.checkpoints import Checkpoint, CheckpointWriter, read_checkpoint
from kframe_kraft.disk.committed import CommittedEnd, committed_end
from kframe_kraft.disk.history import LogHistory, read_history
from kframe_kraft.disk.names import SnapshotId
from kframe_kraft.disk.properties import MetaProperties, read_properties, write_properties
from kframe_kraft.disk.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from kframe_kraft.disk.segments import MetadataLog

__all__ = [
    "Checkpoint",
    "CheckpointWriter",
    "CommittedEnd",
    "LogHistory",
    "MetaProperties",
    "MetadataLog",
    "QuorumState",
    "SnapshotId",
    "committed_end",
    "read_checkpoint",
    "read_history",
    "read_properties",
    "read_quorum_state",
    "write_properties",
    "write_quorum_state",
]
