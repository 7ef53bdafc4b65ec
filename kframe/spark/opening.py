"""The clusters of a fleet that ``ingest`` wrote, or of sources of their own, and the fingerprints of their inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import fingerprint, inputs_of, is_fleet, records
from kframe.spark.inputs import ClusterInput
from kframe.spark.rows import table_of
from kframe.spark.schema import BROKERS
from kframe.spark.sources import SnapshotSource, find_sources
from kframe.spark.tasks import map_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Fleet:
    """The clusters of a fleet by name, where one task can read each, and the requested fingerprints of their inputs."""

    clusters: Mapping[str, ClusterInput]
    inputs: Mapping[str, str] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Why clusters were rejected when they were ingested, by name. They have no rows."""

    def names(self) -> set[str]:
        """The names of all clusters, without the rejected ones."""
        return set(self.clusters)

    def brokers(self, session: SparkSession) -> pa.Table:
        """The rows of BROKERS of all clusters. A Spark job is run only for what was not ingested."""
        clusters = list(self.clusters.values())
        if all(cluster.ingested for cluster in clusters):
            return pa.concat_tables([BROKERS.schema.empty_table(), *(cluster.brokers() for cluster in clusters)])

        def work(inputs: Iterator[ClusterInput]) -> Iterator[pa.RecordBatch]:
            for cluster in inputs:
                yield from cluster.brokers().to_batches()

        return table_of(map_inputs(session, clusters, work, BROKERS.ddl).toArrow().to_batches(), BROKERS)


def open_fleet(
    spark: SparkSession, root: str, *, fingerprints: bool = False, racks: FleetRackMap | None = None
) -> Fleet:
    """The clusters of a fleet that ``ingest`` wrote, or of snapshot files and directories.

    Brokers without a rack have that of ``racks``. Sources are read now only for their ``fingerprints``. Raises
    InputError.
    """
    fleet = _opened(spark, root, fingerprints=fingerprints)
    if racks is None:
        return fleet
    return Fleet(
        {name: replace(cluster, racks=racks.only(name)) for name, cluster in fleet.clusters.items()},
        {name: _fingerprint_with_racks(text, racks.of(name)) for name, text in fleet.inputs.items()},
        fleet.rejected,
    )


def _opened(spark: SparkSession, root: str, *, fingerprints: bool) -> Fleet:
    if is_fleet(Path(root)):
        complete = records(Path(root))
        return Fleet(
            {record.cluster: ClusterInput.of_record(Path(root), record) for record in complete
             if record.rejected is None},
            {record.cluster: fingerprint(record.outputs) for record in complete},
            {record.cluster: record.rejected for record in complete if record.rejected is not None},
        )  # fmt: skip
    sources = find_sources([root])
    return Fleet(
        {source.cluster: ClusterInput.of_source(source) for source in sources},
        _fingerprints(spark, sources) if fingerprints else {},
    )


def _fingerprint_with_racks(text: str, racks: Mapping[int, str]) -> str:
    return hashlib.sha256(text.encode() + msgspec.json.encode(sorted(racks.items()))).hexdigest()


def _fingerprints(spark: SparkSession, sources: Sequence[SnapshotSource]) -> dict[str, str]:
    """The fingerprint of each source, by its cluster. Tasks compute them, because every byte is read."""

    def work(inputs: Iterator[SnapshotSource]) -> Iterator[pa.RecordBatch]:
        for source in inputs:
            digest = fingerprint(inputs_of(source.path))
            yield pa.RecordBatch.from_pydict({"cluster": [source.cluster], "fingerprint": [digest]})

    fingerprints = map_inputs(spark, sources, work, "cluster string, fingerprint string").toArrow()
    return dict(zip(fingerprints["cluster"].to_pylist(), fingerprints["fingerprint"].to_pylist(), strict=True))
