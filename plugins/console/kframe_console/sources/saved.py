"""A source that was read once: a snapshot file, a directory of a KRaft node, a snapshot in memory, or no cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from kframe.plugin import ParameterError
from kframe.plugin.cluster import ClusterState
from kframe.plugin.settings import short_repr
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.reading import ClusterSource, Reading


@dataclass(frozen=True, slots=True)
class SavedSource(ClusterSource):
    """A source with a single reading."""

    name: str
    only: Reading

    @staticmethod
    def of(snapshot: Snapshot, name: str = "") -> SavedSource:
        """The source of a snapshot that has just been read."""
        return SavedSource(name or snapshot.source.name, Reading(1, snapshot, datetime.now(UTC)).prepare())

    def reading(self, position: str) -> Reading:
        """The only reading. Raises ParameterError for any position."""
        if position:
            raise ParameterError("at", short_repr(position), "none: the source has one reading")
        return self.only


def no_cluster(name: str) -> SavedSource:
    """A source without brokers and topics, for a console that shows controllers alone."""
    return SavedSource.of(Snapshot.from_cluster(ClusterState()), name)
