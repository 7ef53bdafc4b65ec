"""Batches, appends and snapshots of a log, for tests."""

from __future__ import annotations

from kframe_kraft.batches import BatchPosition, encode_data_batch, read_batches
from kframe_kraft.disk import CheckpointWriter, SnapshotId
from kframe_kraft.log import DurableLog, LogSettings

from kframe.plugin.kraft import RecordAndVersion, records

NOW = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=600)


def batch(offset: int, epoch: int = 1, count: int = 1, time: int = NOW, size: int = 20) -> bytes:
    """A batch of ``count`` records from ``offset`` on."""
    versioned = [
        RecordAndVersion(records.FeatureLevelRecord(name="f" * size, feature_level=number % 30), 0)
        for number in range(count)
    ]
    return encode_data_batch(versioned, BatchPosition(offset, epoch, time))


def write(log: DurableLog, epoch: int, *counts: int, time: int = NOW) -> list[bytes]:
    """Append a batch of each count; returns them."""
    written = []
    for count in counts:
        written.append(batch(log.end, epoch, count, time))
        log.append(written[-1])
    return written


def snapshot(log: DurableLog, offset: int, epoch: int, time: int = NOW) -> SnapshotId:
    """Write an empty snapshot at ``offset``."""
    snapshot_id = SnapshotId(offset, epoch)
    path = log.directory / snapshot_id.file_name
    with CheckpointWriter(path, snapshot_id, timestamp=time, now=time) as writer:
        writer.finish()
    log.add_snapshot(snapshot_id)
    return snapshot_id


def everything(log: DurableLog) -> bytes:
    """All bytes of the log, read from its start on."""
    parts, offset = [], log.start
    while data := log.read(offset, 1000):
        parts.append(data)
        offset = list(read_batches(data))[-1].header.next_offset
    assert offset == log.end
    return b"".join(parts)
