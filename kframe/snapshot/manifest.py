"""The manifest of a snapshot directory: its content, its source and the hashes of its files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import msgspec

from kframe.errors import SnapshotError
from kframe.model.kraft.directory_ids import LOST, MIGRATING, UNASSIGNED
from kframe.model.texts import counted, short_repr
from kframe.snapshot.content import Mode
from kframe.snapshot.decode import Count, decode, refuse_repeated_keys
from kframe.snapshot.facts import ELR_COLUMNS, CaptureFacts, Source
from kframe.snapshot.files import LINE_BYTES_MAX, read_document

SCHEMA: Final = "kframe.snapshot/v1"
MANIFEST_FILE: Final = "manifest.json"
TABLES: Final = ("partitions", "brokers", "topics")
#: The table that only a KRaft cluster has.
RECORDS: Final = "records"
#: Columns of the tables that are null in every row of a KRaft cluster.
_ZOOKEEPER_ONLY: Final = ("partitions.controller_epoch", "topics.deleting")


class FileEntry(msgspec.Struct, frozen=True):
    """Size and hash of one file of the directory."""

    bytes: Annotated[int, msgspec.Meta(ge=0, le=2**40)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class KraftManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``KraftFacts`` without their records, which are in a table; ``has_records``: whether they are known."""

    features: dict[str, Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]] | None = None
    directory_ids: tuple[UUID, ...] = (MIGRATING, UNASSIGNED, LOST)
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    has_records: bool = False
    voters: tuple[Count, ...] | None = None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``manifest.json``.

    ``unknown`` lists the columns, as ``table.column``, that are null in every row. So are the columns that a cluster in
    this mode does not have: ELR columns unless ``mode`` is ``kraft``, and then controller epochs.
    """

    schema: str
    source: Source
    counts: dict[str, Count]
    files: dict[str, FileEntry]
    unknown: list[str]
    provenance: dict[str, str]
    cluster_id: str | None = None
    controller_id: Count | None = None
    controller_epoch: Count | None = None
    broker_default_configs: dict[str, str] | None = None
    capture: CaptureFacts | None = None
    mode: Mode = "zookeeper"
    kraft: KraftManifest | None = None
    controllers: tuple[Count, ...] = ()

    @property
    def null_columns(self) -> frozenset[str]:
        """``table.column`` of each column that is null in every row."""
        absent = _ZOOKEEPER_ONLY if self.mode == "kraft" else (f"partitions.{name}" for name in ELR_COLUMNS)
        return frozenset((*self.unknown, *absent))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the directory."""
        return (*TABLES, RECORDS) if self.kraft is not None else TABLES


class _Schema(msgspec.Struct):
    schema: str


class _Mode(msgspec.Struct):
    mode: Mode = "zookeeper"


_SCHEMA: Final = msgspec.json.Decoder(_Schema)
_MODE: Final = msgspec.json.Decoder(_Mode)
_MANIFEST: Final = msgspec.json.Decoder(Manifest)


def read_manifest(directory: Path) -> Manifest:
    """Read a directory's manifest, and check that its files exist and match its hashes.

    Raises SnapshotError.
    """
    path = directory / MANIFEST_FILE
    raw = read_document(path, LINE_BYTES_MAX)
    schema = decode(_SCHEMA, raw, str(path)).schema
    if schema != SCHEMA:
        newer = " (written by a newer kframe?)" if schema.startswith("kframe.snapshot/") else ""
        raise SnapshotError(f"{path} field schema", short_repr(schema) + newer, short_repr(SCHEMA))
    manifest = decode(_MANIFEST, raw, str(path))
    refuse_repeated_keys(raw, str(path))
    for field, entries in (("counts", manifest.counts), ("files", manifest.files)):
        tables = manifest.tables
        expected = {*tables, "replicas"} if field == "counts" else {file_of(table) for table in tables}
        if entries.keys() != expected:
            raise SnapshotError(f"{path} field {field}", short_repr(sorted(entries)), short_repr(sorted(expected)))
    for name, entry in manifest.files.items():
        _check_file(directory / name, entry)
    return manifest


def read_mode(directory: Path) -> Mode | None:
    """The mode of the cluster in a directory, by the manifest alone; None if that is unreadable."""
    try:
        return _MODE.decode(read_document(directory / MANIFEST_FILE, LINE_BYTES_MAX)).mode
    except (SnapshotError, msgspec.MsgspecError):
        return None


def manifest_bytes(manifest: Manifest) -> bytes:
    """A manifest as stored in its file. The same content has the same bytes."""
    fields = msgspec.to_builtins(manifest)
    for name in ("capture", "kraft"):
        if fields[name] is None:
            del fields[name]
    if not fields["controllers"]:
        del fields["controllers"]
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def file_of(table: str) -> str:
    """Name of a table's file."""
    return f"{table}.parquet"


def file_entry(path: Path) -> FileEntry:
    """Size and hash of an existing file."""
    with path.open("rb") as file:
        return FileEntry(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _check_file(path: Path, expected: FileEntry) -> None:
    """Compare the size first, so that no file is read beyond its expected length."""
    try:
        size = path.stat().st_size
        if size != expected.bytes:
            raise SnapshotError(str(path), counted(size, "byte"), f"the manifest's {expected.bytes:,}")
        actual = file_entry(path)
    except OSError as problem:
        raise SnapshotError(str(path), problem.strerror or str(problem), "the file that the manifest lists") from None
    if actual.sha256 != expected.sha256:
        raise SnapshotError(str(path), f"sha256 {actual.sha256}", f"the manifest's {expected.sha256}")
