"""What a crash, a damaged file or a full disk leaves of the log that this node writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from kframe_kraft.batches import read_batches
from kframe_kraft.disk import read_history
from kframe_kraft.disk.names import segments_in
from kframe_kraft.errors import LogError, LogWriteError
from kframe_kraft.log import (
    DirectoryLock,
    DurableLog,
    OpenedLog,
    RetentionSettings,
    clean,
    open_log,
)
from kframe_kraft.log.epochs import read_epochs
from kframe_kraft.replay.image import image_of

from verification.kraft.faulty_files import Faults, FaultyFiles, Stopped
from verification.kraft.log_samples import NOW, SMALL, batch, everything, snapshot, write


@pytest.fixture
def log(tmp_path: Path) -> DurableLog:
    return open_log(tmp_path / "log", SMALL).log


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
    assert image_of(opened.history).offset == end
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
    retained = list(appended_until(opened.log.end, written))
    ends = [next(read_batches(item)).header for item in retained]
    expected = [item for item, header in zip(retained, ends, strict=True) if header.next_offset > opened.log.start]
    assert everything(opened.log) == b"".join(expected)
    assert image_of(opened.history).offset == read_history(tmp_path).log.end == opened.log.end


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
