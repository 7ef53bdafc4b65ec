"""The log that this node writes: appends, reads, positions of followers, and retention."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from kframe_kraft.batches import read_batches
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import segments_in
from kframe_kraft.errors import LogError
from kframe_kraft.log import (
    Diverged,
    DurableLog,
    FetchPosition,
    LogSettings,
    NeedsSnapshot,
    RetentionSettings,
    Serveable,
    clean,
    open_log,
)
from kframe_kraft.log.epochs import LogEpochEnd, read_epochs

from verification.kraft.log_samples import NOW, SMALL, batch, everything, snapshot, write


@pytest.fixture
def log(tmp_path: Path) -> DurableLog:
    return open_log(tmp_path / "log", SMALL).log


def test_what_was_appended_is_read_again(log: DurableLog) -> None:
    written = write(log, 1, 1, 3, 2, 5) + write(log, 4, 1, 1)
    assert (log.start, log.end, log.last_epoch) == (0, 13, 4)
    assert log.synced_end == 0 or len(segments_in(log.directory)) > 1
    assert log.sync() == log.synced_end == 13
    assert everything(log) == b"".join(written)
    opened = open_log(log.directory, SMALL)
    assert everything(opened.log) == b"".join(written)
    assert (opened.log.end, opened.log.synced_end, opened.cut_bytes) == (13, 13, 0)
    assert opened.history.log.end == 13
    assert dict(read_epochs(log.directory) or ()) == {1: 0, 4: 11}


@pytest.mark.parametrize("offset", range(13))
@pytest.mark.parametrize("max_bytes", [1, 200, 400, 10_000])
def test_reads_begin_with_the_batch_of_the_offset(log: DurableLog, offset: int, max_bytes: int) -> None:
    write(log, 1, 1, 3, 2, 5, 1, 1)
    data = log.read(offset, max_bytes)
    fetched = log.fetch(offset, max_bytes)
    assert data == (fetched if isinstance(fetched, bytes) else fetched.read(0, len(fetched)))
    headers = [item.header for item in read_batches(data)]
    assert headers[0].base_offset <= offset < headers[0].next_offset
    assert len(data) <= max_bytes or len(headers) == 1
    assert all(before.next_offset == after.base_offset for before, after in pairwise(headers))
    assert read_batches(data) is not None
    assert log.read(log.end, max_bytes) == b""


def test_offsets_outside_the_log_are_refused(log: DurableLog) -> None:
    write(log, 1, 2)
    for offset in (-1, 3):
        with pytest.raises(LogError, match=f"offset: found {offset}, expected 0 to 2"):
            log.read(offset, 100)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (batch(6), "offset 6 in epoch 1"),
        (batch(4), "offset 4 in epoch 1"),
        (batch(5, epoch=0), "offset 5 in epoch 0"),
        (batch(5) + batch(6), "bytes from offset 5"),
    ],
    ids=["gap", "overlap", "earlier epoch", "two batches"],
)
def test_batches_that_do_not_follow_are_refused(log: DurableLog, data: bytes, problem: str) -> None:
    write(log, 1, 5)
    with pytest.raises(LogError, match=problem):
        log.append(data)
    assert log.end == 5


def test_segments_end_by_size_and_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogSettings(segment_bytes=400, segment_ms=1000)).log
    write(log, 1, 1, 1, time=NOW)
    write(log, 1, 1, time=NOW + 1000)
    assert list(segments_in(tmp_path)) == [0]
    write(log, 1, 1, time=NOW + 1001)
    assert list(segments_in(tmp_path)) == [0, 3]
    write(log, 1, 20, time=NOW + 1001)
    assert list(segments_in(tmp_path)) == [0, 3, 4]
    log = open_log(tmp_path, LogSettings(segment_ms=1000)).log
    write(log, 1, 1, time=NOW + 2002)
    assert list(segments_in(tmp_path)) == [0, 3, 4, 24]


EPOCHS = (2, 3, 5, 5, 8)


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, Serveable()),
        (10, 2, Serveable()),
        (5, 2, Serveable()),
        (11, 2, Diverged(LogEpochEnd(2, 10))),
        (20, 3, Serveable()),
        (25, 4, Diverged(LogEpochEnd(3, 20))),
        (40, 5, Serveable()),
        (41, 5, Diverged(LogEpochEnd(5, 40))),
        (45, 6, Diverged(LogEpochEnd(5, 40))),
        (50, 8, Serveable()),
        (51, 8, Diverged(LogEpochEnd(8, 50))),
        (50, 9, Diverged(LogEpochEnd(8, 50))),
        (5, 1, Diverged(LogEpochEnd(1, 0))),
    ],
)
def test_position_of_a_follower(log: DurableLog, offset: int, epoch: int, expected: FetchPosition) -> None:
    """Ten records in each of the epochs; Kafka 4.4 ``RaftLog.validateOffsetAndEpoch``."""
    for number in EPOCHS:
        write(log, number, 10)
    assert log.check_position(offset, epoch) == expected
    assert open_log(log.directory, SMALL).log.check_position(offset, epoch) == expected


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, NeedsSnapshot(SnapshotId(40, 5))),
        (19, 3, NeedsSnapshot(SnapshotId(40, 5))),
        (20, 2, NeedsSnapshot(SnapshotId(40, 5))),
        (20, 3, Serveable()),
        (30, 5, Serveable()),
        (30, 2, NeedsSnapshot(SnapshotId(40, 5))),
        (50, 8, Serveable()),
        (21, 3, Diverged(LogEpochEnd(3, 20))),
    ],
)
def test_position_of_a_follower_after_retention(
    log: DurableLog, offset: int, epoch: int, expected: FetchPosition
) -> None:
    for number in EPOCHS:
        write(log, number, 10)
    first = snapshot(log, 20, 3)
    snapshot(log, 40, 5)
    log.delete_before(first)
    assert log.start == 20
    assert log.check_position(offset, epoch) == expected


def test_retention_keeps_the_newest_snapshot(log: DurableLog) -> None:
    for number in EPOCHS:
        write(log, number, 10)
    ids = [snapshot(log, 10 * number, epoch, NOW + number) for number, epoch in enumerate(EPOCHS, start=1)]
    assert clean(log, RetentionSettings(-1, -1), NOW + 10**12) == []
    assert clean(log, RetentionSettings(-1, 100), NOW + 102) == ids[:1]
    total = log.size + sum((log.directory / item.file_name).stat().st_size for item in ids[1:])
    assert clean(log, RetentionSettings(total, -1), NOW) == []
    assert clean(log, RetentionSettings(total - 1, -1), NOW) == ids[1:2]
    assert (log.start, min(segments_in(log.directory))) == (30, 30)
    assert clean(log, RetentionSettings(0, -1), NOW) == ids[2:4]
    assert log.snapshots == (ids[4],)
    opened = open_log(log.directory, SMALL)
    assert (opened.log.start, opened.log.end, opened.history.snapshot_id) == (40, 50, ids[4])
    write(opened.log, 9, 1)
    assert opened.log.read(50, 1000) == batch(50, 9)


@pytest.mark.parametrize("offset", [0, 3, 9, 10, 20, 26, 40])
def test_truncation_keeps_whole_batches(log: DurableLog, offset: int) -> None:
    written = [item for number in EPOCHS[:4] for item in write(log, number, 3, 3, 4)]
    remaining = [item for item in written if next(read_batches(item)).header.next_offset <= offset]
    log.truncate(offset)
    assert (
        log.end == log.synced_end == next((next(read_batches(item)).header.next_offset for item in remaining[::-1]), 0)
    )
    assert everything(log) == b"".join(remaining)
    following = write(log, 7, 2)
    assert everything(open_log(log.directory, SMALL).log) == b"".join(remaining + following)


def test_snapshot_above_the_end_replaces_the_log(log: DurableLog) -> None:
    write(log, 1, 5, 5)
    snapshot(log, 100, 3)
    opened = open_log(log.directory, SMALL)
    assert (opened.log.start, opened.log.end, opened.log.last_epoch) == (100, 100, 3)
    assert list(segments_in(log.directory)) == [100]
    write(opened.log, 4, 1)
    assert everything(open_log(log.directory, SMALL).log) == batch(100, 4)
