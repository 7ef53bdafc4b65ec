"""The source of a console that shows controllers alone, of whose cluster nothing else is known."""

from __future__ import annotations

from kframe.plugin.cluster import ClusterState
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.saved import SavedSource


def no_cluster(name: str) -> SavedSource:
    """A source without brokers and topics. Only pages of controllers may show it."""
    return SavedSource.of(Snapshot.from_cluster(ClusterState()), name)
