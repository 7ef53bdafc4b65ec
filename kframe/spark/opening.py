"""Fleets as frames: what ``ingest`` wrote, or straight from sources. Also the inputs of their clusters."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from kframe.snapshot.manifest import FileEntry
from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import FLEET, inputs_of, is_fleet, read_fleet, records
from kframe.spark.inputs import ClusterInput, brokers_of, with_mapped_racks
from kframe.spark.reading import WHOLE_TABLES, unpack_tables
from kframe.spark.schema import BROKERS, WHOLE, FleetTable
from kframe.spark.sources import SnapshotSource, find_sources
from kframe.spark.tasks import map_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Fleet:
    """The tables of a fleet by name. It also has the requested fingerprints of the clusters' inputs, and where one task
    can read each cluster completely."""

    tables: Mapping[str, DataFrame]
    inputs: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, ClusterInput] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Why clusters were rejected when they were ingested, by name. They have no rows."""

    def names(self) -> set[str]:
        """The names of all clusters. A Spark job is run only where no input names them."""
        if self.clusters or self.rejected or "clusters" not in self.tables:
            return set(self.clusters)
        return set(self.tables["clusters"].select("cluster").toArrow()["cluster"].to_pylist())

    def brokers(self) -> pa.Table:
        """The rows of BROKERS of all clusters. A Spark job is run only for what was not ingested."""
        if self.clusters and all(cluster.ingested for cluster in self.clusters.values()):
            return brokers_of(self.clusters.values())
        return self.tables["brokers"].toArrow()


class _LazyFrames(Mapping[str, "DataFrame"]):
    """Frames by table name, made when they are first asked for: to list the files of a table takes Spark its time."""

    def __init__(self, names: Iterable[str], make: Callable[[], Mapping[str, DataFrame]]) -> None:
        self._names = tuple(names)
        self._make = functools.cache(make)

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._names:
            raise KeyError(name)
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_fleet(
    spark: SparkSession, root: str, tables: Iterable[FleetTable] = FLEET, *, fingerprints: bool = False,
    racks: FleetRackMap | None = None,
) -> Fleet:  # fmt: skip
    """The tables of a fleet that ``ingest`` wrote, or of snapshot files and directories.

    Brokers without a rack have that of ``racks``. Only ``fingerprints`` are read now. An unreadable file, or an entry
    of ``racks`` that contradicts a cluster, fails the query that needs it. Raises InputError.
    """
    fleet = _opened(spark, root, tables, fingerprints=fingerprints)
    return fleet if racks is None else _with_racks(fleet, racks)


def _with_racks(fleet: Fleet, racks: FleetRackMap) -> Fleet:
    """The fleet with the racks of a map; its fingerprints are of inputs and racks."""

    def tables() -> dict[str, DataFrame]:
        frames = dict(fleet.tables)
        if BROKERS.name in frames:
            frames[BROKERS.name] = frames[BROKERS.name].mapInArrow(mapped, BROKERS.ddl)
        return frames

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (with_mapped_racks(batch, racks) for batch in batches)

    return Fleet(
        _LazyFrames(fleet.tables, tables),
        {name: _fingerprint_with_racks(text, racks.of(name)) for name, text in fleet.inputs.items()},
        {name: replace(cluster, racks=racks.only(name)) for name, cluster in fleet.clusters.items()},
        fleet.rejected,
    )


def _opened(spark: SparkSession, root: str, tables: Iterable[FleetTable], *, fingerprints: bool) -> Fleet:
    requested = tuple(tables)
    names = [table.name for table in requested]
    if is_fleet(Path(root)):
        complete = records(Path(root))
        return Fleet(
            _LazyFrames(names, lambda: {table.name: read_fleet(spark, root, table) for table in requested}),
            {record.cluster: fingerprint(record.outputs) for record in complete},
            {
                record.cluster: ClusterInput.of_record(Path(root), record)
                for record in complete
                if record.rejected is None
            },
            {record.cluster: record.rejected for record in complete if record.rejected is not None},
        )
    sources = find_sources([root])
    return Fleet(
        _LazyFrames(names, lambda: read_sources(spark, sources, requested)),
        _fingerprints(spark, sources) if fingerprints else {},
        {source.cluster: ClusterInput.of_source(source) for source in sources},
    )


def read_sources(
    spark: SparkSession, sources: Iterable[SnapshotSource], tables: Iterable[FleetTable]
) -> dict[str, DataFrame]:
    """Tables of a fleet straight from its sources, named as they are.

    Texts, which can only be read whole, are read once for all tables and kept by Spark until the session ends.
    """
    from kframe.spark import register

    register(spark)
    reader = spark.read.format("kframe")
    texts = [source.path for source in sources if not source.is_directory]
    directories = [source.path for source in sources if source.is_directory]
    packed = reader.option("table", WHOLE.name).load(texts).persist() if texts else None
    frames = {}
    for table in tables:
        packed_only = packed is not None and table in WHOLE_TABLES
        paths = directories if packed_only else [*directories, *texts]
        parts = [reader.option("table", table.name).load(paths)] if paths else []
        if packed is not None and packed_only:
            parts.append(packed.where(f"name = '{table.name}'").mapInArrow(unpack_tables, table.ddl))
        frames[table.name] = functools.reduce(lambda left, right: left.union(right), parts)
    return frames


def fingerprint(files: Mapping[str, FileEntry]) -> str:
    """One text for files with their names, sizes and hashes."""
    return hashlib.sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()


def _fingerprint_with_racks(text: str, racks: Mapping[int, str]) -> str:
    return hashlib.sha256(text.encode() + msgspec.json.encode(sorted(racks.items()))).hexdigest()


def _fingerprints(spark: SparkSession, sources: Sequence[SnapshotSource]) -> dict[str, str]:
    """The fingerprint of each source, by its cluster. Tasks compute them, because every byte is read."""

    def work(inputs: Iterator[SnapshotSource]) -> Iterator[pa.RecordBatch]:
        for source in inputs:
            digest = fingerprint(inputs_of(source.path))
            yield pa.RecordBatch.from_pydict({"cluster": [source.cluster], "fingerprint": [digest]})

    fingerprints_ = map_inputs(spark, sources, work, "cluster string, fingerprint string").toArrow()
    return dict(zip(fingerprints_["cluster"].to_pylist(), fingerprints_["fingerprint"].to_pylist(), strict=True))


def without(table: DataFrame, clusters: Iterable[str]) -> DataFrame:
    """Rows of other clusters: files of these are not opened."""
    from pyspark.sql import functions as f

    names = sorted(clusters)
    return table.where(~f.col("cluster").isin(names)) if names else table
