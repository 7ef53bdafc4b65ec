"""A history that grows by new records is the same at each position as one that is opened anew."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kframe_kraft.batches import BatchHeader
from kframe_kraft.disk import SnapshotId
from kframe_kraft.errors import LogError
from kframe_kraft.sources.snapshots import write_snapshot
from kframe_kraft.time_travel import positions, timelines
from kframe_kraft.time_travel.history import open_history

from kframe.plugin.kraft import records
from kframe.plugin.live import ClusterHistory, HistoryPoint
from verification.kraft.written_log import WrittenLog, batch, change, small_cluster


def opened(log: WrittenLog) -> ClusterHistory:
    history = open_history(log.directory)
    assert history is not None
    return history


def extended(history: ClusterHistory) -> ClusterHistory:
    result = history.extended()
    assert result is not None
    return result


def leaders(history: ClusterHistory, point: HistoryPoint) -> list[int]:
    leaders: list[int] = history.snapshot(point).known_leaders().tolist()
    return leaders


def digests(history: ClusterHistory) -> dict[int, str]:
    return {point.end: history.snapshot(point).digest() for point in history.points(10_000)[3:]}


@pytest.mark.parametrize("seed", range(6))
def test_extended_history_is_that_of_all_files(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "TIMELINES_MAX", 5)
    rng, log = random.Random(seed), small_cluster(tmp_path)
    history = opened(log)
    for _ in range(12):
        step(log, rng)
        history = extended(history)
        fresh = opened(log)
        assert digests(history) == digests(fresh)
        assert history.points(7) == fresh.points(7)
        end = history.point("end")
        assert end == fresh.point("end")
        assert history.leader_cause("orders", 0, end) == fresh.leader_cause("orders", 0, end)
        assert history.partition_records("orders", 1, end, 9) == fresh.partition_records("orders", 1, end, 9)


def step(log: WrittenLog, rng: random.Random) -> None:
    """Write something: changes, a leader, a transaction, or the next segment."""
    match rng.randrange(5):
        case 0:
            log.lead(1, log.epoch + 1)
        case 1:
            log.roll()
            log.append(change(0, leader=3))
        case 2:
            log.append(records.BeginTransactionRecord(name="t"), change(1, leader=3))
            log.append(
                change(0, leader=2),
                rng.choice((records.EndTransactionRecord(), records.AbortTransactionRecord(reason="r"))),
            )
        case _:
            for _ in range(rng.randint(1, 9)):
                log.append(*(change(0, leader=rng.choice((1, 2, 3))) for _ in range(rng.randint(1, 4))))


def test_only_new_batches_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_cluster(tmp_path)
    for _ in range(100):
        log.append(change(0, leader=2))
    history = extended(opened(log))
    history.snapshot(history.point("end"))
    log.append(change(0, leader=3))
    history = extended(history)  # It finds the last batch of the history once.
    log.append(change(0, leader=1))
    headers: list[BatchHeader] = []
    rows = positions._rows

    def counted(batches: list[BatchHeader]) -> object:
        headers.extend(batches)
        return rows(batches)

    monkeypatch.setattr(positions, "_rows", counted)
    monkeypatch.setattr("kframe_kraft.disk.history.read_segments", None)
    later = extended(history)
    assert len(headers) == 1
    assert extended(later) is later
    snapshot = later.snapshot(later.point("end"))
    assert snapshot.known_leaders().tolist() == [1, 2]
    assert history.snapshot(history.point("end")).known_leaders().tolist() == [3, 2]


def test_incomplete_batch_waits_for_its_end(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    history, content = opened(log), batch(log.offset)
    file = log.log / f"{0:020}.log"
    with file.open("ab") as segment:
        segment.write(content[:20])
    assert extended(history) is history
    with file.open("ab") as segment:
        segment.write(content[20:])
    assert extended(history).point("end").end == log.offset + 1


def test_truncated_records_need_a_new_history(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    size, state = len(log.data), (log.data, log.offset, log.batches)
    log.append(change(0, leader=2))
    history = extended(opened(log))
    log.data, log.offset, log.batches = state
    assert len(log.data) == size
    log.lead(2, 2)
    assert history.extended() is None
    assert opened(log).point("end").end == log.offset


def test_damage_is_an_error_until_it_ends(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    history = extended(opened(log))
    good, at = log.data, len(log.data)
    log.append(change(0, leader=2))
    log.append(change(0, leader=3))
    (log.log / f"{0:020}.log").write_bytes(good + b"\xff" * 90 + log.data[at + 90 :])
    assert extended(history) is history, "a node may be truncating it"
    for _ in range(2):
        with pytest.raises(LogError):
            extended(history)
    (log.log / f"{0:020}.log").write_bytes(log.data)
    assert extended(history).point("end").end == log.offset


def test_past_offsets_are_right_after_segments_were_deleted(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    history = opened(log)
    for leader in (2, 3, 1, 2):
        log.append(change(0, leader=leader))
    history = extended(history)
    snapshot_end = log.offset
    log.roll()
    for leader in (3, 1, 3):
        log.append(change(0, leader=leader))
    history = extended(history)
    before = digests(history)
    snapshot = history.snapshot(history.point(str(snapshot_end - 1)))
    write_snapshot(snapshot, log.log / SnapshotId(snapshot_end, 1).file_name, force=False)
    assert extended(history) is history
    (log.log / f"{0:020}.log").unlink()
    assert digests(history) == before, "open files remain"
    assert history.extended() is None
    reopened = opened(log)
    log.append(change(0, leader=2))
    later = extended(reopened)
    shared = [point for point in later.points(100) if point.end in before]
    assert [point.end for point in shared] == [snapshot_end, *range(snapshot_end + 1, log.offset)]
    for point in shared:
        assert leaders(later, point) == leaders(history, point)
    assert leaders(later, later.point("end")) == [2, 2]


def test_large_cluster_retains_its_newest_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "PARTITIONS_MAX", 1)
    log = small_cluster(tmp_path)
    history = opened(log)
    for leader in (2, 3, 1):
        log.append(change(0, leader=leader))
        history = extended(history)
        end = history.point("end")
        assert history.snapshot(end).known_leaders().tolist() == [leader, 2]
        assert history._timelines.offsets == [end.end]  # type: ignore[attr-defined]
