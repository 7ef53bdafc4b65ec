"""Reads a node's directory, or a segment, snapshot or dump of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.plugin.kraft import LogError, control
from kframe_kraft.detection import is_dump, log_directory
from kframe_kraft.disk import LogHistory, MetaProperties, SnapshotId, read_history, read_properties
from kframe_kraft.disk.batch_files import PART_BYTES, BatchFile, BatchSource
from kframe_kraft.disk.checkpoints import checkpoint_of
from kframe_kraft.disk.names import BOOTSTRAP_ID, SNAPSHOT_NAME
from kframe_kraft.disk.properties import FILE_NAME
from kframe_kraft.disk.segments import MetadataLog, read_segments
from kframe_kraft.disk.temporary import TemporaryContent
from kframe_kraft.sources.dumps import read_dump
from kframe_kraft.sources.image import MetadataImage, image_of

_START_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class NodeSource:
    """A log with its node's identity, if the directory has it."""

    history: LogHistory
    properties: MetaProperties | None = None


def read_source(path: Path | BatchSource, *, from_oldest: bool = False) -> NodeSource:
    """Return the log in a node's directory, its log directory, a snapshot, a segment from offset 0, or a dump.

    The history of a directory begins with its newest snapshot, or with ``from_oldest`` as early as possible.
    A node may be writing the directory. Raises LogError if there is no such log or it is damaged.
    """
    if isinstance(path, Path) and path.is_dir():
        return read_node(path, from_oldest=from_oldest)
    try:
        path = _copied_pipe(path)
        file = BatchFile(path)
        start = file.read(0, _START_BYTES)
    except OSError as error:
        raise LogError(str(path), str(error), "a readable file") from error
    if is_dump(start):
        return NodeSource(read_dump(path))
    if _is_snapshot(file):
        return NodeSource(_snapshot_history(file))
    base = int.from_bytes(start[:8], "big")
    if base:
        raise LogError(path.name, f"a segment from offset {base}", "a segment from offset 0, or its directory")
    return NodeSource(LogHistory(BOOTSTRAP_ID, None, read_segments({0: path})))


def read_node(path: Path, *, from_oldest: bool = False) -> NodeSource:
    """Return the log in a node's directory or its log directory. Raises as ``read_source``."""
    directory = log_directory(path)
    if directory is None:
        raise LogError(str(path), "no segment or snapshot", "a directory of a KRaft node")
    properties = read_properties(directory.parent) if (directory.parent / FILE_NAME).exists() else None
    return NodeSource(read_history(directory, from_oldest=from_oldest), properties)


def read_image(path: Path | BatchSource, end: int | None = None) -> MetadataImage:
    """Return the metadata at the end of a source, or below offset ``end``. Raises LogError; see read_source."""
    return image_of(read_source(path).history, end)


def _copied_pipe(path: Path | BatchSource) -> Path | BatchSource:
    """The file, or a temporary copy of the pipe that it is: files are read more than once."""
    if not isinstance(path, Path) or not path.is_fifo():
        return path
    copy = TemporaryContent(path.name)
    with path.open("rb") as pipe:
        while part := pipe.read(PART_BYTES):
            copy.append(part)
    return copy


def _is_snapshot(file: BatchFile) -> bool:
    """Whether the first record is a snapshot's header. Raises LogError if the first batch is malformed."""
    batch = file.batch(0)
    return batch.header.is_control and isinstance(batch.control_records()[0], control.SnapshotHeaderRecord)


def _snapshot_history(file: BatchFile) -> LogHistory:
    snapshot = checkpoint_of(file)
    match = SNAPSHOT_NAME.search(file.name)
    if match:
        snapshot_id = SnapshotId(int(match[1]), int(match[2]))
    else:  # a renamed file: its own batches count from 0
        snapshot_id = SnapshotId(0, snapshot.epoch)
    return LogHistory(snapshot_id, snapshot, MetadataLog(snapshot_id.offset, snapshot_id.offset))
