"""What a log must read and answer to followers: a plain model, from the batches that were appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

from kframe_kraft.disk import SnapshotId
from kframe_kraft.errors import LogError
from kframe_kraft.log import Diverged, DurableLog, FetchPosition, MemoryLog, NeedsSnapshot, Serveable
from kframe_kraft.log.epochs import LogEpochEnd, read_epochs

from verification.kraft.simulation.history import WrittenBatch

_PROBES: Final = 40
_REMAINS: Final = (".part", ".tmp", ".deleted")


def log_problems(log: DurableLog, batches: Sequence[WrittenBatch], random: Random) -> Iterator[str]:
    """Compare a log, and one in memory with the same batches, with the batches."""
    memory = MemoryLog()
    for batch in batches:
        memory.append(batch.content)
    bases = sorted(int(path.stem) for path in log.directory.glob("*.log"))
    for _ in range(_PROBES):
        offset, size = random.randint(-1, log.end + 1), random.choice((0, 1, 200, 1_000, 20_000, 1 << 30))
        yield from _read_problems(memory, batches, offset, size, bases[:0])
        yield from _read_problems(log, [each for each in batches if each.end > log.start], offset, size, bases)
        epoch = random.choice([each.epoch for each in batches]) + random.choice((-1, 0, 0, 0, 1))
        for each in (memory, log):
            expected, answered = position_of(each, batches, offset, epoch), each.check_position(offset, epoch)
            if answered != expected:
                yield f"K6: {type(each).__name__} answers {answered} to {offset} in epoch {epoch}, expected {expected}"
    yield from _file_problems(log, batches)


def _read_problems(
    log: DurableLog | MemoryLog, batches: Sequence[WrittenBatch], offset: int, size: int, bases: Sequence[int]
) -> Iterator[str]:
    try:
        read = log.read(offset, size)
    except LogError:
        if log.start <= offset <= log.end:
            yield f"K6: {type(log).__name__} refuses to read offset {offset} of {log.start} to {log.end}"
        return
    if not log.start <= offset <= log.end:
        yield f"K6: {type(log).__name__} reads offset {offset} of {log.start} to {log.end}"
        return
    expected = read_of(batches, offset, size, bases, log.end)
    if read != expected:
        yield f"K6: {type(log).__name__} reads {len(read)} bytes from {offset} of {size}, expected {len(expected)}"


def read_of(batches: Sequence[WrittenBatch], offset: int, size: int, bases: Sequence[int], end: int) -> bytes:
    """Whole batches of one segment, from the one with the offset on: as many as ``size`` allows, at least one. Segments
    begin at ``bases``, the log ends at ``end``."""
    segment = max((base for base in bases if base <= offset), default=0)
    last = min((base for base in bases if base > segment), default=end)
    content = b""
    for batch in batches:
        if batch.end > offset and batch.base < last:
            if content and len(content) + len(batch.content) > size:
                break
            content += batch.content
    return content


def position_of(log: DurableLog | MemoryLog, batches: Sequence[WrittenBatch], offset: int, epoch: int) -> FetchPosition:
    """The answer to a follower whose log ends at ``offset`` with a record of ``epoch`` (Kafka ``RaftLog``)."""
    snapshots = log.snapshots if isinstance(log, DurableLog) else ()
    if offset == 0 and snapshots and snapshots[-1] != SnapshotId(0, 0):
        return NeedsSnapshot(snapshots[-1])
    if offset == 0 and log.start == 0:
        return Serveable()
    if snapshots:
        first = snapshots[0]
        if offset < log.start or epoch < first.epoch or (offset == log.start and epoch != first.epoch):
            return NeedsSnapshot(snapshots[-1])
    stored = [batch for batch in batches if batch.end > log.start]
    earlier = [batch.epoch for batch in stored if batch.epoch <= epoch]
    later = [max(batch.base, log.start) for batch in stored if batch.epoch > epoch]
    end = LogEpochEnd(max(earlier, default=epoch), min(later, default=log.end))
    if not stored or epoch > stored[-1].epoch:
        end = LogEpochEnd(stored[-1].epoch if stored else log.last_epoch, log.end)
    if snapshots and end == LogEpochEnd(epoch, snapshots[0].offset):
        end = LogEpochEnd(snapshots[0].epoch, snapshots[0].offset)
    return Serveable() if end.epoch == epoch and offset <= end.offset else Diverged(end)


def _file_problems(log: DurableLog, batches: Sequence[WrittenBatch]) -> Iterator[str]:
    """No file of an interrupted writer is left, sizes are right, and the epochs are those of the batches."""
    yield from (f"K6: {path.name} is left" for path in log.directory.iterdir() if path.name.endswith(_REMAINS))
    size = sum(path.stat().st_size for path in log.directory.glob("*.log"))
    if size != log.size:
        yield f"K6: the segments have {size} bytes, the log says {log.size}"
    starts: dict[int, int] = {}
    for batch in batches:
        if batch.end > log.start:
            starts.setdefault(batch.epoch, max(batch.base, log.start))
    if not starts and log.start:
        starts = {batches[-1].epoch: log.start}  # All records are removed, and the epoch of the last one is kept.
    stored = dict(read_epochs(log.directory) or ())
    if stored != starts:
        yield f"K6: {log.directory.name} has the epochs {stored}, expected {starts}"


def snapshot_ids(directory: Path) -> list[SnapshotId]:
    """The snapshots in a directory, ascending."""
    names = (path.stem.split("-") for path in directory.glob("*.checkpoint"))
    return sorted(SnapshotId(int(offset), int(epoch)) for offset, epoch in names)
