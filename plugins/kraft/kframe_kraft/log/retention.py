"""Removes old snapshots, and the log before the oldest one that stays (Kafka ``KafkaRaftLog.maybeClean``)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kframe.plugin.kraft import control
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.errors import LogError
from kframe_kraft.log.durable_log import DurableLog


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """``metadata.max.retention.bytes`` and ``metadata.max.retention.ms``; negative values keep everything."""

    bytes_max: int = 100 * 2**20
    ms_max: int = 7 * 24 * 3_600_000


def clean(log: DurableLog, settings: RetentionSettings, now: int) -> list[SnapshotId]:
    """Remove the oldest snapshot while it is too old, or snapshots and log are too large. Returns what was removed.

    The newest snapshot stays. ``now`` is in milliseconds since the epoch. Raises LogWriteError.
    """
    removed: list[SnapshotId] = []
    ascending = log.snapshots
    paths = {snapshot_id: log.directory / snapshot_id.file_name for snapshot_id in ascending}
    sizes = {snapshot_id: path.stat().st_size for snapshot_id, path in paths.items()}
    for oldest, following in pairwise(ascending):
        is_old = 0 <= settings.ms_max < now - last_timestamp(paths[oldest])
        if not is_old and not 0 <= settings.bytes_max < log.size + sum(sizes.values()):
            break
        log.delete_before(following)
        del sizes[oldest]
        removed.append(oldest)
    return removed


def last_timestamp(path: Path) -> int:
    """The time of the last record in a snapshot, in milliseconds. Raises LogError if the file is malformed."""
    header = BatchFile(path, keep_open=False).batch(0).control_records()[0]
    if not isinstance(header, control.SnapshotHeaderRecord):
        raise LogError(path.name, "no header", "a snapshot that begins with a header")
    return header.last_contained_log_timestamp
