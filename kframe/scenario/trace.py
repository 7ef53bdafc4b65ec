"""What a step left behind, in the form of trace files (``kframe.trace/v1``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kframe.embedded.describe import describe_partition
from kframe.model.cluster import ClusterState

SCHEMA: Final = "kframe.trace/v1"
#: What storage has, as ``stored_entries`` gives it.
Stored: TypeAlias = Mapping[str, Mapping[str, Any]]


def stored_entries(cluster: ClusterState) -> dict[str, dict[str, Any]]:
    """``{topic-partition: entry}`` of all that storage has, by topic and partition."""
    views = sorted(cluster, key=lambda view: (view.topic, view.partition))
    return {f"{view.topic}-{view.partition}": describe_partition(view) for view in views}


def stored_changes(before: Stored, after: Stored) -> dict[str, dict[str, Any]]:
    """Of ``after`` what is another than in ``before``."""
    return {name: dict(entry) for name, entry in after.items() if before.get(name) != entry}


def topic_names(cluster: ClusterState) -> frozenset[str]:
    """Names of the topics that storage has."""
    return frozenset(name for name in cluster.topics.names if name in cluster.topics)


def topics_deleted(before: Iterable[str], after: frozenset[str]) -> list[str]:
    """Names that storage does not have any more."""
    return sorted(name for name in before if name not in after)
