"""What a step left behind, in the form of trace files (``kframe.trace/v1``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.columns import Int64, ragged_positions
from kframe.model.ids import NO_STATE

SCHEMA: Final = "kframe.trace/v1"
#: Of the stored columns, those whose change is a change of the partition.
_COMPARED: Final = (
    "leader", "leader_epoch", "controller_epoch", "partition_epoch", "recovery", "replica_count", "isr_count",
)  # fmt: skip


def changed_rows(before: ClusterState, after: ClusterState) -> Int64:
    """Rows of ``after`` whose stored state or assignment is another than in ``before``, an earlier copy of it."""
    old, new = before.partitions, after.partitions
    kept = len(old)
    changed = np.ones(len(new), np.bool_)
    changed[:kept] = False
    for name in _COMPARED:
        changed[:kept] |= getattr(old, name) != getattr(new, name)[:kept]
    for name, count in (("replica", "replica_count"), ("replica_flags", "replica_count"), ("isr", "isr_count")):
        same = np.flatnonzero(~changed[:kept])
        counts = getattr(old, count)[same]
        theirs = getattr(old, name)[ragged_positions(old.slot_start[same], counts)]
        ours = getattr(new, name)[ragged_positions(new.slot_start[same], counts)]
        changed[np.repeat(same, counts)[theirs != ours]] = True
    return np.flatnonzero(changed & (new.topic >= 0))


def stored_entry(view: PartitionView) -> dict[str, Any]:
    """A partition as storage has it; what it has no state for is null."""
    stated = view.partition_epoch != NO_STATE
    return {
        "replicas": list(view.replicas),
        "adding_replicas": list(view.adding_replicas),
        "removing_replicas": list(view.removing_replicas),
        "leader": view.leader,
        "isr": list(view.isr) if stated else None,
        "leader_epoch": view.leader_epoch if stated else None,
        "controller_epoch": view.controller_epoch if stated else None,
        "leader_recovery_state": int(view.recovery) if stated else None,
        "partition_epoch": view.partition_epoch if stated else None,
    }


def stored_changes(before: ClusterState, after: ClusterState) -> dict[str, dict[str, Any]]:
    """``{topic-partition: entry}`` of all that a step changed in storage, by topic and partition."""
    views = sorted((after.view(int(row)) for row in changed_rows(before, after)), key=lambda v: (v.topic, v.partition))
    return {f"{view.topic}-{view.partition}": stored_entry(view) for view in views}


def topics_deleted(before: ClusterState, after: ClusterState) -> list[str]:
    """Names that storage does not have any more."""
    return sorted(name for name in _names(before) if name not in after.topics)


def _names(cluster: ClusterState) -> Iterable[str]:
    return {name for name in cluster.topics.names if name in cluster.topics}
