"""The effects of a step, in the form of trace files (``kframe.trace/v1``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kframe.embedded.describe import describe_partition
from kframe.model.cluster import ClusterState

SCHEMA: Final = "kframe.trace/v1"
#: The stored partitions, as ``stored_entries`` returns them.
Stored: TypeAlias = Mapping[str, Mapping[str, Any]]


def stored_entries(cluster: ClusterState) -> dict[str, dict[str, Any]]:
    """``{topic-partition: entry}`` of all stored partitions, by topic and partition."""
    views = sorted(cluster, key=lambda view: (view.topic, view.partition))
    return {f"{view.topic}-{view.partition}": describe_partition(view) for view in views}


def stored_changes(before: Stored, after: Stored) -> dict[str, dict[str, Any]]:
    """The entries of ``after`` that differ from ``before``."""
    return {name: dict(entry) for name, entry in after.items() if before.get(name) != entry}


def topic_names(cluster: ClusterState) -> frozenset[str]:
    """Names of the stored topics."""
    return frozenset(name for name in cluster.topics.names if name in cluster.topics)


def topics_deleted(before: Iterable[str], after: frozenset[str]) -> list[str]:
    """Names that are no longer stored."""
    return sorted(name for name in before if name not in after)
