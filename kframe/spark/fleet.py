"""A fleet on disk: Parquet tables by cluster, as Spark reads them anywhere, and a record of each complete cluster.

    DIR/partitions/cluster=east/part-0.parquet      likewise brokers, topics, clusters and quarantine
    DIR/_done/east.json                             written last, removed first

A cluster without its record is incomplete. ``read_fleet`` skips it, and the next ``ingest`` writes it again. DIR must
be the same directory for the driver and all executors.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from kframe.errors import InputError, SnapshotError
from kframe.model.texts import short_repr
from kframe.snapshot.content import Mode
from kframe.snapshot.decode import decode
from kframe.snapshot.files import check_regular
from kframe.snapshot.manifest import FileEntry, file_entry
from kframe.spark.schema import CLUSTER_TABLES, CLUSTERS, QUARANTINE, FleetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FLEET: Final = (*CLUSTER_TABLES, QUARANTINE)
#: Fleets of other versions have other columns: their clusters are to be ingested again.
_SCHEMA: Final = "kframe.spark-cluster/v4"
_DONE: Final = "_done"
_STAGED: Final = "_staged"
_ROW_GROUP_ROWS: Final = 131_072
#: What Spark writes as %XX in the directory of a partition (``ExternalCatalogUtils.escapePathName``).
_ESCAPED: Final = str.maketrans({sign: f"%{ord(sign):02X}" for sign in "\"#%'*/:=?\\{[]^\x7f"})


class ClusterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a finished cluster, and their results. ``inputs`` are by name with size and hash."""

    schema: str = _SCHEMA
    cluster: str
    source: str
    inputs: dict[str, FileEntry]
    outputs: dict[str, FileEntry]
    partitions: int
    topics: int
    brokers: int
    quarantined: int
    rejected: str | None
    """Why the source was rejected; None if it was ingested."""
    mode: Mode = "zookeeper"
    stated_mode: Mode | None = None
    """The mode that the user stated for a source that does not show it."""
    stated_controllers: tuple[int, ...] = ()
    """Ids of instances of kframe that the user stated for a source that does not show them."""
    stated_racks: dict[int, str] = {}
    """The rack by broker id that the user stated for brokers whose source does not show it."""


class _Version(msgspec.Struct):
    schema: str


_RECORD: Final = msgspec.json.Decoder(ClusterRecord)
_VERSION: Final = msgspec.json.Decoder(_Version)


def read_fleet(spark: SparkSession, root: str, table: FleetTable) -> DataFrame:
    """One table (of FLEET) of all clusters that are whole, in the table's schema.

    The driver looks up which these are. Raises InputError if ``root`` is no fleet.
    """
    parts = (Path(directory_of("cluster", cluster)) for cluster in finished(Path(root)))
    return read_frame(spark, Path(root) / table.name, table, parts)


def read_frame(spark: SparkSession, root: Path, table: FleetTable, parts: Iterable[Path]) -> DataFrame:
    """The rows in the directories ``parts`` below ``root``, whose names give further columns, in the table's schema."""
    paths = [str(path) for name in parts if (path := root / name).is_dir()]
    if not paths:
        return spark.createDataFrame([], table.ddl)
    reader = spark.read.schema(table.ddl).option("basePath", str(root))
    return reader.parquet(*paths).select(*table.schema.names)


def is_fleet(root: Path) -> bool:
    """Whether ``ingest`` wrote there, or has begun to."""
    return (root / _DONE).is_dir()


def finished(root: Path) -> list[str]:
    """Names of the clusters that are whole, ascending. Raises InputError if ``root`` is no fleet."""
    return [record.cluster for record in records(root)]


def records(root: Path) -> list[ClusterRecord]:
    """Of the clusters that are whole, ascending by name. Raises InputError if ``root`` is no fleet, or if another
    version wrote it."""
    if not is_fleet(root):
        raise InputError(str(root), f"no directory {_DONE}", "a directory that kframe spark ingest wrote")
    files = sorted((root / _DONE).glob("*.json"))
    return [_decode(file.read_bytes(), file) for file in files]


def check_fleet_root(root: Path) -> None:
    """Raise InputError if the directory has other content, so a fleet cannot be written to it."""
    if root.exists() and not root.is_dir():
        raise InputError(str(root), "a file", "a directory for the fleet")
    ours = {table.name for table in FLEET} | {_DONE}
    names = {entry.name for entry in root.iterdir()} if root.is_dir() else set()
    if unexpected := sorted(name for name in names - ours if not name.startswith(_STAGED)):
        raise InputError(str(root), f"{short_repr(unexpected[0])} in it", "an empty or new directory, or a fleet")


def part(root: Path, table: FleetTable, cluster: str) -> Path:
    """The directory of one cluster's part of a table."""
    return root / table.name / directory_of("cluster", cluster)


def read_part(root: Path, table: FleetTable, cluster: str) -> pa.Table:
    """The rows of one cluster in a table of FLEET, read here. None if the cluster has none of that table.

    Raises SnapshotError if the fleet does not know the cluster or a file cannot be read.
    """
    directory, expected = part(root, table, cluster), f"the {table.name} of cluster {cluster}"
    if table == CLUSTERS and not any(directory.glob("*.parquet")):
        raise SnapshotError(str(directory), "no such directory", expected)
    return read_files(directory, table, {"cluster": cluster}, expected)


def read_files(directory: Path, table: FleetTable, values: Mapping[str, str], expected: str) -> pa.Table:
    """The rows in the Parquet files of a directory, read here, with these values of columns that no file has.

    Raises SnapshotError for a file that cannot be read.
    """
    files = sorted(directory.glob("*.parquet"))
    if not files:
        return table.schema.empty_table()
    try:
        rows = pa.concat_tables([parquet.ParquetFile(file).read() for file in files])
        for name, value in values.items():
            rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
        return rows.select(table.schema.names).cast(table.schema)
    except (pa.ArrowException, OSError, KeyError) as problem:
        raise SnapshotError(str(directory), str(problem).splitlines()[0], expected) from problem


def directory_of(column: str, value: str) -> str:
    """The name that Spark gives the directory of one value of a column that a table is partitioned by."""
    return f"{column}={value.translate(_ESCAPED)}"


def record_of(root: Path, cluster: str) -> ClusterRecord | None:
    """The record of a complete cluster: its files have the recorded sizes. None if there is no such record."""
    path = _record_path(root, cluster)
    try:
        record = _decode(path.read_bytes(), path)
        whole = all((root / name).stat().st_size == entry.bytes for name, entry in record.outputs.items())
    except (OSError, SnapshotError):
        return None
    return record if whole else None


def _decode(raw: bytes, path: Path) -> ClusterRecord:
    version = decode(_VERSION, raw, str(path)).schema
    if version != _SCHEMA:
        raise SnapshotError(f"{path} field schema", short_repr(version), f"{_SCHEMA}: ingest the cluster again")
    return decode(_RECORD, raw, str(path))


def inputs_of(path: str) -> dict[str, FileEntry]:
    """Size and hash of a file, or of all files of a directory, by name.

    Raises SnapshotError for what cannot be read.
    """
    root = Path(path)
    try:
        if root.is_dir():
            files = sorted(file for file in root.rglob("*") if file.is_file())
            return {str(file.relative_to(root)): file_entry(file) for file in files}
        check_regular(root)
        return {root.name: file_entry(root)}
    except OSError as problem:
        reason = "a link to nothing" if root.is_symlink() and not root.exists() else problem.strerror or str(problem)
        raise SnapshotError(problem.filename or path, reason, "a file that can be read") from problem


def fingerprint(files: Mapping[str, FileEntry]) -> str:
    """One text for files with their names, sizes and hashes."""
    return hashlib.sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()


def put_cluster(
    root: Path, cluster: str, tables: Mapping[FleetTable, Iterable[pa.RecordBatch]]
) -> dict[str, FileEntry]:
    """Replace a cluster by these tables; the files written, by path below ``root``. ``finish`` then marks it complete.

    Files are written to a staging directory first; a table without rows has no file.
    """
    _record_path(root, cluster).unlink(missing_ok=True)
    with staging(root) as building:
        for table, batches in tables.items():
            _write(building / table.name, table, batches)
        outputs: dict[str, FileEntry] = {}
        for table in FLEET:
            target = part(root, table, cluster)
            shutil.rmtree(target, ignore_errors=True)
            if (building / table.name).exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                (building / table.name).rename(target)
                outputs |= {str(file.relative_to(root)): file_entry(file) for file in sorted(target.iterdir())}
    return outputs


def finish(root: Path, record: ClusterRecord) -> None:
    """Mark a cluster complete: write its record."""
    write_json(root, _record_path(root, record.cluster), record)


def write_json(root: Path, path: Path, value: object) -> None:
    """Write a file below ``root`` whose content is complete as soon as it is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with staging(root) as building:
        staged = building / path.name
        staged.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
        staged.rename(path)


def _write(directory: Path, table: FleetTable, batches: Iterable[pa.RecordBatch]) -> None:
    schema = pa.schema([field for field in table.schema if field.name != "cluster"])
    whole = pa.Table.from_batches([batch.drop_columns(["cluster"]) for batch in batches], schema)
    if whole.num_rows:
        directory.mkdir()
        parquet.write_table(whole, directory / "part-0.parquet", row_group_size=_ROW_GROUP_ROWS, compression="zstd")


def _record_path(root: Path, cluster: str) -> Path:
    return root / _DONE / f"{cluster.translate(_ESCAPED)}.json"


@contextmanager
def staging(root: Path) -> Iterator[Path]:
    """A new directory below ``root`` for files that are not whole yet. It is deleted at the end."""
    staged = root / f"{_STAGED}-{uuid.uuid4().hex}"
    staged.mkdir(parents=True)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)
