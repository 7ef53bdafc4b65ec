"""What a step left behind, in the form of trace files (``kframe.trace/v1``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.ids import NO_STATE

SCHEMA: Final = "kframe.trace/v1"
#: What storage has, as ``stored_entries`` gives it.
Stored: TypeAlias = Mapping[str, Mapping[str, Any]]


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


def stored_entries(cluster: ClusterState) -> dict[str, dict[str, Any]]:
    """``{topic-partition: entry}`` of all that storage has, by topic and partition."""
    views = sorted(cluster, key=lambda view: (view.topic, view.partition))
    return {f"{view.topic}-{view.partition}": stored_entry(view) for view in views}


def stored_changes(before: Stored, after: Stored) -> dict[str, dict[str, Any]]:
    """Of ``after`` what is another than in ``before``."""
    return {name: dict(entry) for name, entry in after.items() if before.get(name) != entry}


def topic_names(cluster: ClusterState) -> frozenset[str]:
    """Names of the topics that storage has."""
    return frozenset(name for name in cluster.topics.names if name in cluster.topics)


def topics_deleted(before: Iterable[str], after: frozenset[str]) -> list[str]:
    """Names that storage does not have any more."""
    return sorted(name for name in before if name not in after)
