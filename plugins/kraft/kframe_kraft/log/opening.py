"""Opens the log in a node's directory for writing: cuts what a crash left at its end, and refuses a log that has lost
records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kraft.disk import LogHistory, read_history
from kframe_kraft.disk.atomic import sync_directory
from kframe_kraft.disk.names import segments_in
from kframe_kraft.errors import LogError
from kframe_kraft.log.acknowledged import read_acknowledged
from kframe_kraft.log.durable_log import DurableLog, LogSettings
from kframe_kraft.log.epochs import FILE_NAME as EPOCHS_NAME
from kframe_kraft.log.epochs import EpochStarts
from kframe_kraft.log.files import LogFiles
from kframe_kraft.log.segment import Segment, batches_in, segment_name

#: Files that an interrupted writer leaves, of kframe and Kafka.
_REMAINS: Final = (".part", ".tmp", ".deleted")
_PARTITION: Final = ("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log and the history in it, which begins with the newest snapshot. ``cut_bytes`` that a crash left at the end
    were removed; ``cut_reason`` says what was wrong there."""

    log: DurableLog
    history: LogHistory
    cut_bytes: int = 0
    cut_reason: str = ""


def open_log(directory: Path, settings: LogSettings | None = None, files: LogFiles | None = None) -> OpenedLog:
    """Open the log in ``directory``, the ``__cluster_metadata-0`` of a node, which no other process writes.

    Every batch from the newest snapshot on is checked. Raises LogError if the log is damaged, or shorter than what this
    node has acknowledged; OSError if the files cannot be written. Nothing is changed before these checks.
    """
    files, settings = files or LogFiles(directory), settings or LogSettings()
    if not directory.exists():
        directory.mkdir()
        sync_directory(directory.parent)
    history = _read_history(directory)
    for path in directory.iterdir():
        if path.name.endswith(_REMAINS):
            files.remove(path.name)
    if not (directory / _PARTITION[0]).exists():
        files.replace(*_PARTITION)
    segments, epochs = _open_segments(files, history)
    cut_bytes = _cut(segments[-1])
    for segment in segments:
        segment.file.sync()
    files.replace(EPOCHS_NAME, epochs.to_bytes())
    damage = history.log.damage
    reason = history.log.torn_reason if damage is None else str(damage.error)
    if cut_bytes:
        history = read_history(directory)  # The one before reads its files up to their former size.
    log = DurableLog(files, segments, epochs, settings, segments[0].base)
    return OpenedLog(log, history, cut_bytes, reason)


def _read_history(directory: Path) -> LogHistory:
    """The history, up to the first batch that a crash may have left incomplete.

    As only the last segment has records that are not durable, and none of them was acknowledged, damage anywhere else
    is an error. A power failure may leave a hole before a complete batch, which ``read_history`` calls damage.
    """
    acknowledged = read_acknowledged(directory)
    try:
        history = read_history(directory)
    except LogError as error:
        history = read_history(directory, to_damage=True)
        damage = history.log.damage
        last = max(segments_in(directory), default=0)
        if damage is None or len(history.damage) > 1 or damage.first < max(acknowledged, last):
            raise error
    if history.log.end < acknowledged:
        raise LogError(
            str(directory),
            f"a log that ends at offset {history.log.end}",
            f"at least {acknowledged}, which this node has acknowledged: brokers do not survive a log without it",
        )
    return history


def _open_segments(files: LogFiles, history: LogHistory) -> tuple[list[Segment], EpochStarts]:
    """The segments up to the end of the log, and the epochs in them.

    Without a segment, or if the snapshot replaces them, the first one is created. Segments before a gap are removed:
    the removal of those in the gap had become durable before theirs.
    """
    paths, segments, epochs = segments_in(files.directory), list[Segment](), EpochStarts()
    is_replaced = not paths or history.log.start > max(paths)
    for base, path in paths.items():
        segment = Segment(base, files.open(path.name))
        if is_replaced or (segments and segments[-1].end != base):
            _remove(files, segments)
            epochs = EpochStarts()
        segments.append(segment)
        _find_batches(segment, epochs, history.log.end)
    if is_replaced:
        _remove(files, segments)
        epochs = EpochStarts()
        base = history.snapshot_id.offset
        segments.append(Segment(base, files.create(segment_name(base))))
    return segments, epochs


def _cut(last: Segment) -> int:
    """Remove what follows the last batch. Returns the number of bytes."""
    cut_bytes = last.file.size - last.size
    if cut_bytes:
        last.file.truncate(last.size)
    return cut_bytes


def _find_batches(segment: Segment, epochs: EpochStarts, end: int) -> None:
    """Note the batches of a segment that follow one another, up to the end of the log."""
    for batch in batches_in(segment.file, 0, segment.file.size):
        if batch.base_offset != segment.end or segment.end >= end:
            return
        segment.add(batch)
        epochs.note(batch.epoch, batch.base_offset)


def _remove(files: LogFiles, segments: list[Segment]) -> None:
    for segment in segments:
        files.remove(segment.file.path.name)
    segments.clear()
