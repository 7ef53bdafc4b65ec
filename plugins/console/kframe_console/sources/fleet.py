"""A fleet on Parquet. The position of a reading is the name of a cluster, which is read when it is first shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kframe.plugin import ParameterError, SnapshotError
from kframe.plugin.cluster import ClusterState
from kframe.plugin.fleet import ClusterInput, FleetRackMap, records
from kframe.plugin.settings import nearest, short_repr
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.reading import NO_CLUSTER, ClusterSource, Reading
from kframe_console.sources.reading_cache import ReadingCache


class FleetSource(ClusterSource):
    """The clusters of a folder that ``kframe spark ingest`` wrote. ``complete`` adds what users state of each, and
    ``racks`` the racks of its brokers.

    Raises InputError for a folder that is no fleet.
    """

    def __init__(self, root: Path, complete: Callable[[Snapshot], Snapshot], racks: FleetRackMap | None = None) -> None:
        self.name = str(root)
        self._root = root
        self._complete = complete
        self._racks = racks
        self._records = {record.cluster: record for record in records(root)}
        self._readings = ReadingCache()
        self._none = Reading(NO_CLUSTER, Snapshot.from_cluster(ClusterState()), datetime.now(UTC))

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of all clusters, ascending."""
        return tuple(self._records)

    def snapshot(self, cluster: str) -> Snapshot:
        """A cluster, read now from its own files. Raises InputError for unusable ones, and for a rejected cluster."""
        record = self._records[cluster]
        if record.rejected is not None:
            raise SnapshotError(f"cluster {cluster}", record.rejected, "a source that kframe spark ingest accepts")
        cluster_input = replace(ClusterInput.of_record(self._root, record), racks=self._racks)
        return self._complete(cluster_input.snapshot())

    def reading(self, position: str) -> Reading:
        """The cluster of a name; a reading without brokers if the name is empty. Raises InputError."""
        cluster = position.strip()
        if not cluster:
            return self._none
        if cluster not in self._records:
            raise ParameterError("at", short_repr(cluster), nearest(cluster, self.clusters))

        def read(number: int) -> Reading:
            return Reading(number, self.snapshot(cluster), datetime.now(UTC), cluster=cluster).prepare()

        return self._readings.get(cluster, read)
