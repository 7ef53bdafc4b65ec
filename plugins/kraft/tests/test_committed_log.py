"""The committed log of a quorum for shadows: what is dropped, transactions, leaders and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from kframe_kraft.batches import read_batches
from kframe_kraft.disk import QuorumState, SnapshotId
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.errors import BatchError, LogError
from kframe_kraft.live import QuorumObserver
from kframe_kraft.live.committed_log import QuorumLog
from kframe_kraft.live.followed_log import FollowedLog

from kframe.plugin.kraft import RecordAndVersion, records
from kframe.plugin.live import CommittedBatch
from verification.kraft.scripted_quorum import ScriptedController, ScriptedState, connect
from verification.kraft.written_log import WrittenLog, change, register, small_cluster, write_snapshot

BEGIN, END = records.BeginTransactionRecord(name="work"), records.EndTransactionRecord()
ABORT = records.AbortTransactionRecord(reason="failover")


def contents(log: WrittenLog) -> list[bytes]:
    """The batches of a log."""
    return [batch.content.tobytes() for batch in read_batches(log.data)]


def registrations(brokers: int) -> list[RecordAndVersion]:
    return [RecordAndVersion(register(broker), 3) for broker in range(1, brokers + 1)]


@pytest.fixture
def written(tmp_path: Path) -> WrittenLog:
    """Batches from offsets 0 (the leader), 1, 2 and 6; the log ends at 9."""
    return small_cluster(tmp_path / "node")


class TestDrop:
    @pytest.fixture
    def log(self, written: WrittenLog) -> FollowedLog:
        log = FollowedLog()
        log.append(written.data, 1)
        log.commit(6)
        return log

    @pytest.mark.parametrize(
        "end, remaining",
        [(0, [0, 1, 2]), (1, [1, 2]), (5, [2]), (6, []), (9, [])],
        ids=["nothing", "one-batch", "within-a-batch", "all-committed", "uncommitted-remain"],
    )
    def test_only_whole_committed_batches_below_the_end_are_released(
        self, log: FollowedLog, end: int, remaining: list[int]
    ) -> None:
        log.drop(end)
        assert [batch.header.base_offset for batch in log.committed_batches(0)] == remaining
        assert (log.end, log.last_epoch, log.committed) == (9, 1, 6)

    def test_append_after_drop_continues_log(self, log: FollowedLog, written: WrittenLog) -> None:
        log.commit(9)
        log.drop(9)
        assert (log.end, log.last_epoch) == (9, 1)
        written.append(change(0, isr=(1, 2)))
        log.append(contents(written)[-1], 1)
        log.commit(10)
        assert [batch.header.base_offset for batch in log.committed_batches(9)] == [9]
        with pytest.raises(BatchError, match="expected offset 10"):
            log.append(contents(written)[-1], 1)

    def test_history_after_drop_is_refused(self, log: FollowedLog) -> None:
        assert log.history(QuorumState(1, 1)).log.end == 6
        log.drop(1)
        with pytest.raises(LogError, match="offset 1 as its start"):
            log.history(QuorumState(1, 1))

    def test_uncommitted_batches_can_be_truncated_after_drop(self, log: FollowedLog) -> None:
        log.drop(6)
        log.truncate(1, 6)
        assert log.end == 6

    @pytest.mark.parametrize("epoch, end_offset", [(1, 2), (0, 6)], ids=["shorter", "earlier-epoch"])
    @pytest.mark.parametrize("committed", [6, 9])
    def test_released_records_cannot_be_truncated(
        self, log: FollowedLog, committed: int, epoch: int, end_offset: int
    ) -> None:
        log.commit(committed)
        log.drop(6)
        with pytest.raises(LogError, match=f"{committed} on, the committed end"):
            log.truncate(epoch, end_offset)
        assert log.end == 9

    def test_history_after_drop_of_snapshot_is_refused(self, tmp_path: Path) -> None:
        log = FollowedLog()
        log.replace(SnapshotId(20, 1), BatchFile(write_snapshot(tmp_path, SnapshotId(20, 1), *registrations(3))))
        assert log.history(QuorumState(1, 1)).snapshot is not None
        log.drop(20)
        with pytest.raises(LogError, match="log"):
            log.history(QuorumState(1, 1))

    def test_replace_starts_history_at_snapshot(self, log: FollowedLog, tmp_path: Path) -> None:
        log.drop(6)
        log.replace(SnapshotId(20, 1), BatchFile(write_snapshot(tmp_path, SnapshotId(20, 1), *registrations(3))))
        assert (log.end, log.committed, log.history(QuorumState(1, 1)).snapshot_id) == (20, 20, (20, 1))


class TestQuorumLog:
    @pytest.fixture
    def state(self, written: WrittenLog) -> ScriptedState:
        return ScriptedState(batches=contents(written), high_watermark=written.offset)

    @pytest.fixture
    def log(self, state: ScriptedState) -> Iterator[QuorumLog]:
        with ScriptedController(1, state) as controller:
            log = QuorumLog(QuorumObserver([controller.address], connect, pause=lambda _seconds: None))
            yield log
            log.close()

    @pytest.fixture
    def commit(self, state: ScriptedState, written: WrittenLog) -> Callable[..., None]:
        """Appends batches and commits them."""

        def appended(*batches: tuple[records.MetadataRecord, ...]) -> None:
            for batch in batches:
                written.append(*batch)
            state.batches, state.high_watermark = contents(written), written.offset

        return appended

    def test_open_at_end_polls_new_batches(self, log: QuorumLog, commit: Callable[..., None]) -> None:
        log.open()
        assert (log.end, log.leader_id, len(log.metadata().partitions)) == (9, 1, 2)
        assert log.poll() == []
        commit((change(0, isr=(1, 2)),), (change(1, isr=(2,)),))
        batches = log.poll()
        assert [(batch.offset, batch.leader_id, batch.leader_epoch) for batch in batches] == [(9, 1, 1), (10, 1, 1)]
        assert (log.end, log.generation, log.poll()) == (11, 0, [])

    def test_open_from_start_polls_all_data_batches(self, log: QuorumLog) -> None:
        log.open(from_start=True)
        assert (log.end, len(log.metadata().partitions)) == (0, 0)
        batches = log.poll()
        assert [batch.offset for batch in batches] == [1, 2, 6]
        assert [record.offset for record in batches[1].records] == [2, 3, 4, 5]
        assert not any(batch.in_transaction for batch in batches)

    def test_uncommitted_batches_are_not_returned(
        self, log: QuorumLog, state: ScriptedState, commit: Callable[..., None]
    ) -> None:
        log.open()
        commit((change(0, isr=(1, 2)),), (change(1, isr=(2,)),))
        state.high_watermark = 10
        assert [batch.offset for batch in log.poll()] == [9]

    @pytest.mark.parametrize("opened_inside", [False, True])
    @pytest.mark.parametrize("marker, offsets", [(END, [10, 11]), (ABORT, [])])
    def test_records_of_a_transaction_are_in_the_batch_that_ends_it(
        self,
        log: QuorumLog,
        commit: Callable[..., None],
        marker: records.MetadataRecord,
        offsets: list[int],
        opened_inside: bool,
    ) -> None:
        first, second = (BEGIN, change(0, isr=(1, 2))), (change(1, isr=(2,)),)
        if opened_inside:
            commit(first)
        log.open()
        if not opened_inside:
            commit(first)
            assert shapes(log.poll()) == [(9, [], True)]
        commit(second, (marker,), (change(0, isr=(1,)),))
        assert shapes(log.poll()) == [(11, [], True), (12, offsets, True), (13, [13], False)]

    def test_returned_batches_are_released(self, log: QuorumLog, commit: Callable[..., None]) -> None:
        log.open()
        commit((change(0, isr=(1, 2)),))
        log.poll()
        assert log._observer.log.committed_batches(0) == []
        with pytest.raises(LogError, match="as its start"):
            log.metadata()

    def test_leader_is_set_by_newest_control_record(
        self, log: QuorumLog, state: ScriptedState, written: WrittenLog, commit: Callable[..., None]
    ) -> None:
        log.open()
        written.lead(3, 2)
        state.leader_epoch = 2
        commit((change(0, isr=(1, 2)),))
        batches = log.poll()
        assert [(batch.offset, batch.leader_id, batch.leader_epoch) for batch in batches] == [(10, 3, 2)]
        assert log.leader_id == 3

    def test_snapshot_that_replaces_log_increments_generation(
        self, log: QuorumLog, state: ScriptedState, tmp_path: Path
    ) -> None:
        log.open()
        later = WrittenLog(tmp_path / "later")
        later.offset = 40
        later.append(records.TopicRecord(name="later", topic_id=UUID(int=77)))
        path = write_snapshot(tmp_path, SnapshotId(40, 1), *registrations(5))
        state.snapshot_id, state.snapshot = SnapshotId(40, 1), path.read_bytes()
        state.batches, state.high_watermark = [later.data], 41
        assert log.poll() == []
        assert (log.generation, log.end, len(log.metadata().brokers.registrations)) == (1, 40, 5)
        assert [batch.offset for batch in log.poll()] == [40]


def shapes(batches: list[CommittedBatch]) -> list[tuple[int, list[int], bool]]:
    return [(batch.offset, [record.offset for record in batch.records], batch.in_transaction) for batch in batches]
