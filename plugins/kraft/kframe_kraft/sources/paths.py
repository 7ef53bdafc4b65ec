"""Reads a node's directory, or a segment, snapshot or dump of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.plugin import counted
from kframe.plugin.kraft import LogError, control
from kframe_kraft.disk import LogHistory, MetaProperties, SnapshotId, read_history, read_properties
from kframe_kraft.disk.batch_files import BatchFile, BatchSource
from kframe_kraft.disk.checkpoints import checkpoint_of
from kframe_kraft.disk.names import BOOTSTRAP_ID, BOOTSTRAP_NAME, SNAPSHOT_NAME
from kframe_kraft.disk.properties import FILE_NAME
from kframe_kraft.disk.segments import MetadataLog, read_segments
from kframe_kraft.replay.image import MetadataImage, image_of
from kframe_kraft.sources.copies import copied_pipe, uncompressed
from kframe_kraft.sources.detection import LOG_DIRECTORY, directory_below, is_dump, log_directory
from kframe_kraft.sources.dumps import read_dump

_START_BYTES: Final = 1 << 16
_DIRECTORY: Final = "metadata.log.dir of the node, or without it the first of log.dirs"
_INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")


@dataclass(frozen=True, slots=True, eq=False)
class NodeSource:
    """A log with its node's identity, if the directory has it."""

    history: LogHistory
    properties: MetaProperties | None = None


def read_source(path: Path | BatchSource, *, from_oldest: bool = False, to_damage: bool = False) -> NodeSource:
    """Return the log in a node's directory, its log directory, a snapshot, a segment from offset 0, or a dump.

    Files may be compressed by gzip. The history of a directory begins with its newest snapshot, or with
    ``from_oldest`` as early as possible. A node may be writing the directory. Raises LogError if there is no such log,
    if it has no record, or if it is damaged; see ``read_history`` for ``to_damage``.
    """
    if isinstance(path, Path) and path.is_dir():
        return read_node(path, from_oldest=from_oldest, to_damage=to_damage)
    try:
        path = uncompressed(copied_pipe(path))
        file = BatchFile(path)
        start = file.read(0, _START_BYTES)
    except OSError as error:
        raise LogError(str(path), str(error), "a readable file") from error
    if is_dump(start):
        return NodeSource(read_dump(path))
    if path.name.endswith(_INDEX_SUFFIXES):
        raise LogError(path.name, "an index of a segment", "the segment, a file .log")
    if start.strip() and b"\0" not in start:
        raise LogError(path.name, "a text", "output of kafka-dump-log with --cluster-metadata-decoder")
    base = int.from_bytes(start[:8], "big")
    if any(start) and _is_snapshot(file):
        return NodeSource(_snapshot_history(file))
    if base:
        raise LogError(path.name, f"a segment from offset {base}", "a segment from offset 0, or its directory")
    log = read_segments({0: path}, to_damage=to_damage)
    damage = () if log.damage is None else (str(log.damage),)
    history = LogHistory(BOOTSTRAP_ID, None, log, damage=damage)
    _require_records(path.name, history)
    return NodeSource(history)


def read_node(path: Path, *, from_oldest: bool = False, to_damage: bool = False) -> NodeSource:
    """Return the log in a node's directory or its log directory. Raises as ``read_source``."""
    directory = find_log_directory(path)
    properties = read_properties(directory.parent) if (directory.parent / FILE_NAME).exists() else None
    history = read_history(directory, from_oldest=from_oldest, to_damage=to_damage)
    _require_records(str(directory), history)
    return NodeSource(history, properties)


def find_log_directory(path: Path) -> Path:
    """The directory of the metadata log: ``path`` itself or the one in it. Raises LogError if there is neither."""
    directory = log_directory(path)
    if directory is not None:
        return directory
    if path.name == LOG_DIRECTORY or (path / LOG_DIRECTORY).is_dir():
        raise LogError(str(path), f"no segment and no snapshot in {LOG_DIRECTORY}", "the metadata log of a KRaft node")
    below = directory_below(path)
    hint = "" if below is None else f"; {below} has one"
    raise LogError(str(path), f"no {LOG_DIRECTORY}", f"{_DIRECTORY}{hint}")


def _require_records(where: str, history: LogHistory) -> None:
    """Raise LogError for a log without any record."""
    log = history.log
    if history.snapshot is not None or log.last is not None:
        return
    if history.damage:
        actual = f"no record before the damage ({history.damage[0]})"
    elif log.torn_bytes:
        actual = f"no record, and {counted(log.torn_bytes, 'byte')} without a batch ({log.torn_reason})"
    else:
        actual = "no record"
    raise LogError(where, actual, f"the log of a node that has joined its quorum, in {_DIRECTORY}")


def read_image(path: Path | BatchSource, end: int | None = None) -> MetadataImage:
    """Return the metadata at the end of a source, or below offset ``end``. Raises LogError; see read_source."""
    return image_of(read_source(path).history, end)


def _is_snapshot(file: BatchFile) -> bool:
    """Whether the first record is a snapshot's header. Raises LogError if the first batch is malformed."""
    batch = file.batch(0)
    return batch.header.is_control and isinstance(batch.control_records()[0], control.SnapshotHeaderRecord)


def _snapshot_history(file: BatchFile) -> LogHistory:
    snapshot = checkpoint_of(file)
    if file.name in (BOOTSTRAP_NAME, BOOTSTRAP_ID.file_name):
        raise LogError(file.name, "the records that a node is formatted with", "a later snapshot, or a segment")
    match = SNAPSHOT_NAME.search(file.name)
    if match:
        snapshot_id = SnapshotId(int(match[1]), int(match[2]))
    else:  # a renamed file: its own batches count from 0
        snapshot_id = SnapshotId(0, snapshot.epoch)
    return LogHistory(snapshot_id, snapshot, MetadataLog(snapshot_id.offset, snapshot_id.offset))
