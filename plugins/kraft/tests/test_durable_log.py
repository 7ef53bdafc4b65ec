"""The log that this node writes: appends, reads, positions of followers, retention, and what a crash leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from kframe_kraft.batches import BatchPosition, encode_data_batch, read_batches
from kframe_kraft.disk import CheckpointWriter, SnapshotId, read_history
from kframe_kraft.disk.names import segments_in
from kframe_kraft.errors import LogError, LogWriteError
from kframe_kraft.log import (
    DirectoryLock,
    Diverged,
    DurableLog,
    FetchPosition,
    LogSettings,
    NeedsSnapshot,
    OpenedLog,
    RetentionSettings,
    Serveable,
    clean,
    open_log,
)
from kframe_kraft.log.epochs import LogEpochEnd, read_epochs

from kframe.plugin.kraft import RecordAndVersion, records
from verification.kraft.faulty_files import Faults, FaultyFiles, Stopped

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
    kept = [item for item in written if next(read_batches(item)).header.next_offset <= offset]
    log.truncate(offset)
    assert log.end == log.synced_end == next((next(read_batches(item)).header.next_offset for item in kept[::-1]), 0)
    assert everything(log) == b"".join(kept)
    following = write(log, 7, 2)
    assert everything(open_log(log.directory, SMALL).log) == b"".join(kept + following)


def test_snapshot_above_the_end_replaces_the_log(log: DurableLog) -> None:
    write(log, 1, 5, 5)
    snapshot(log, 100, 3)
    opened = open_log(log.directory, SMALL)
    assert (opened.log.start, opened.log.end, opened.log.last_epoch) == (100, 100, 3)
    assert list(segments_in(log.directory)) == [100]
    write(opened.log, 4, 1)
    assert everything(open_log(log.directory, SMALL).log) == batch(100, 4)


# -- crashes


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _hole(path: Path) -> None:
    data = bytearray(path.read_bytes())
    size = next(read_batches(bytes(data))).header.size
    data[2 * size + 30 : 2 * size + 40] = bytes(10)
    path.write_bytes(data)


@pytest.mark.parametrize(("change", "end"), [(_torn, 4), (_hole, 2)], ids=["torn", "hole before a complete batch"])
def test_incomplete_records_that_were_not_acknowledged_are_cut(tmp_path: Path, change: object, end: int) -> None:
    log = open_log(tmp_path).log
    written = write(log, 1, 1, 1)
    log.sync()
    written += write(log, 1, 1, 1, 1)
    assert callable(change)
    change(tmp_path / f"{0:020}.log")
    opened = open_log(tmp_path)
    assert everything(opened.log) == b"".join(written[:end])
    assert opened.cut_bytes > 0
    assert "byte" in opened.cut_reason
    write(opened.log, 2, 1)
    assert open_log(tmp_path).cut_bytes == 0


@pytest.mark.parametrize(
    "change",
    [_torn, _hole, lambda path: path.write_bytes(b""), lambda path: path.unlink()],
    ids=["torn", "hole", "empty", "removed"],
)
def test_log_without_acknowledged_records_is_refused(tmp_path: Path, change: object) -> None:
    log = open_log(tmp_path).log
    write(log, 1, 1, 1, 1, 1)
    log.sync()
    assert callable(change)
    change(tmp_path / f"{0:020}.log")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(LogError, match=r"at least 4, which this node has acknowledged|CRC"):
        open_log(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_segments_before_a_gap_are_removed(log: DurableLog) -> None:
    """As Kafka may leave them, which deletes segments in no order."""
    written = write(log, 1, 5, 5, 5, 5, 5)
    bases = list(segments_in(log.directory))
    snapshot(log, bases[2], 1)
    (log.directory / f"{bases[1]:020}.log").unlink()
    opened = open_log(log.directory, SMALL)
    assert list(segments_in(log.directory)) == bases[2:]
    assert (opened.log.start, everything(opened.log)) == (bases[2], b"".join(written[bases[2] // 5 :]))
    assert dict(read_epochs(log.directory) or ()) == {1: bases[2]}


def test_damage_in_an_earlier_segment_is_refused(log: DurableLog) -> None:
    write(log, 1, 5, 5, 5, 5)
    first = log.directory / f"{0:020}.log"
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    with pytest.raises(LogError, match="CRC"):
        open_log(log.directory, SMALL)


def history(files: FaultyFiles, written: list[bytes], synced: list[int], random: Random) -> None:
    """Open a log, append, sync, write snapshots and clean; notes what was appended, and what was acknowledged."""
    log = open_log(files.directory, SMALL, files).log
    epoch = log.last_epoch + 1
    for _ in range(random.randint(3, 12)):
        data = batch(log.end, epoch, random.randint(1, 6), size=random.randint(5, 60))
        written.append(data)
        log.append(data)
        if random.random() < 0.5:
            synced[0] = log.sync()
        if random.random() < 0.1:
            snapshot(log, log.sync(), epoch)
            clean(log, RetentionSettings(random.choice((0, 1000)), -1), NOW)


def appended_until(end: int, written: list[bytes]) -> Iterator[bytes]:
    """The batches of the log that ends at ``end``: of those with the same offset, the last one that was appended."""
    by_offset = {next(read_batches(item)).header.base_offset: item for item in written}
    offset = 0
    while offset < end:
        yield (item := by_offset[offset])
        offset = next(read_batches(item)).header.next_offset


@pytest.mark.parametrize("loses_unsynced", [False, True], ids=["killed", "power failure"])
@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(20, 200))]
)
def test_crash_at_any_operation_keeps_what_was_acknowledged(tmp_path: Path, seed: int, loses_unsynced: bool) -> None:
    """Several processes, one after another, stop at a random operation, which may happen in part."""
    random = Random(seed)
    written: list[bytes] = []
    synced = [0]
    for _ in range(random.randint(1, 4)):
        faults = Faults(random, stop_at=random.randint(1, 40), loses_unsynced=loses_unsynced)
        try:
            history(FaultyFiles(tmp_path, faults), written, synced, random)
        except Stopped:
            faults.crash()
    opened = open_log(tmp_path, SMALL)
    assert opened.log.end >= synced[0]
    kept = list(appended_until(opened.log.end, written))
    ends = [next(read_batches(item)).header for item in kept]
    expected = [item for item, header in zip(kept, ends, strict=True) if header.next_offset > opened.log.start]
    assert everything(opened.log) == b"".join(expected)
    assert read_history(tmp_path).log.end == opened.log.end


def test_disk_that_ignores_syncs_is_noticed(tmp_path: Path) -> None:
    """A power failure on such a disk loses acknowledged records: the log is refused, not served."""
    faults = Faults(Random(1), loses_unsynced=True, ignores_syncs=True)
    log = open_log(tmp_path, files=FaultyFiles(tmp_path, faults)).log
    write(log, 1, *(1,) * 30)
    log.sync()
    faults.crash()
    with pytest.raises(LogError, match="at least 30, which this node has acknowledged"):
        open_log(tmp_path)


def test_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    log = open_log(tmp_path, files=FaultyFiles(tmp_path, faults)).log
    written = write(log, 1, 3)
    faults.bytes_max = 50
    with pytest.raises(LogWriteError, match="No space left on device"):
        log.append(batch(log.end, 2, 4))
    assert (log.end, log.last_epoch, log.sync()) == (3, 1, 3)
    assert everything(log) == b"".join(written)
    faults.bytes_max = None
    written += write(log, 2, 4)
    assert everything(open_log(tmp_path).log) == b"".join(written)


def test_failed_sync_ends_writing(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    log = open_log(tmp_path, files=FaultyFiles(tmp_path, faults)).log
    written = write(log, 1, 3)
    faults.fails_syncs = True
    with pytest.raises(LogWriteError, match="Input/output error"):
        log.sync()
    faults.fails_syncs = False
    for action in (log.sync, lambda: log.append(batch(3)), lambda: log.truncate(0)):
        with pytest.raises(LogWriteError, match="not written any more after a failure"):
            action()
    assert log.synced_end == 0
    assert everything(log) == b"".join(written)


def test_remains_of_an_interrupted_writer_are_removed(log: DurableLog) -> None:
    for name in ("00000000000000000009-0000000001.checkpoint.part", "quorum-state.tmp", f"{0:020}.log.deleted"):
        (log.directory / name).touch()
    opened: OpenedLog = open_log(log.directory, SMALL)
    assert opened.log.end == 0
    assert {path.suffix for path in log.directory.iterdir()}.isdisjoint({".part", ".tmp", ".deleted"})


def test_lock_is_held_by_one_process(tmp_path: Path) -> None:
    attempt = "import sys, pathlib, kframe_kraft.log as log; log.DirectoryLock(pathlib.Path(sys.argv[1]))"
    command = (sys.executable, "-c", attempt, str(tmp_path))
    lock = DirectoryLock(tmp_path)
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "a lock of another process" in refused.stderr
    lock.release()
    lock.release()
    assert subprocess.run(command, check=False).returncode == 0
