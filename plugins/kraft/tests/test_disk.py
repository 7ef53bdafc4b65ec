"""The files of a node: snapshots, segments, transactions, the committed end, and directories that a node is writing."""

from __future__ import annotations

import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest
from kframe_kraft.batches import BatchPosition, encode_control_batch, encode_data_batch, read_batches
from kframe_kraft.disk import (
    CheckpointWriter,
    CommittedEnd,
    LogHistory,
    MetaProperties,
    QuorumState,
    SnapshotId,
    committed_end,
    read_checkpoint,
    read_history,
    read_properties,
    read_quorum_state,
    write_properties,
    write_quorum_state,
)
from kframe_kraft.disk.names import segments_in, snapshots_in
from kframe_kraft.disk.segments import read_segments
from kframe_kraft.errors import LogError
from kframe_kraft.replay.image import image_of
from kframe_kraft.replay.transactions import TransactionFilter

from kframe.plugin.kraft import RecordAndVersion, control, records
from verification.kraft.written_log import write_snapshot

NOW = 1_700_000_000_000
BEGIN = RecordAndVersion(records.BeginTransactionRecord(), 0)
END = RecordAndVersion(records.EndTransactionRecord(), 0)
ABORT = RecordAndVersion(records.AbortTransactionRecord(), 0)


def topic(number: int) -> RecordAndVersion:
    return RecordAndVersion(records.TopicRecord(name=f"topic-{number}", topic_id=UUID(int=1000 + number)), 0)


def names(history: LogHistory, end: int | None = None) -> list[str]:
    return image_of(history, end).metadata.topics.names


class Segment:
    """Writes a segment batch by batch."""

    def __init__(self, directory: Path, base: int = 0, epoch: int = 1) -> None:
        self.path = directory / f"{base:020}.log"
        self.offset, self.epoch, self.data = base, epoch, b""

    def add(self, *versioned: RecordAndVersion) -> Segment:
        return self._add(encode_data_batch(versioned, BatchPosition(self.offset, self.epoch, NOW)), len(versioned))

    def lead(self, voters: Sequence[int]) -> Segment:
        """The first record of an epoch."""
        members = tuple(control.LeaderChangeVoter(voter_id=voter) for voter in voters)
        record = control.LeaderChangeMessage(leader_id=voters[0], voters=members)
        return self._add(encode_control_batch([record], BatchPosition(self.offset, self.epoch, NOW)), 1)

    def _add(self, batch: bytes, count: int) -> Segment:
        self.data += batch
        self.offset += count
        self.path.write_bytes(self.data)
        return self


def test_snapshot_round_trip(tmp_path: Path) -> None:
    voters = control.VotersRecord(voters=(control.Voter(voter_id=1, voter_directory_id=UUID(int=500)),))
    snapshot_id = SnapshotId(9, 2)
    path = tmp_path / snapshot_id.file_name
    with CheckpointWriter(path, snapshot_id, timestamp=5, now=NOW, kraft_version=1, voters=voters) as writer:
        writer.add_records([topic(1), topic(2)])
        assert writer.finish() == path
    snapshot = read_checkpoint(path)
    assert (snapshot.timestamp, snapshot.kraft_version, snapshot.voters) == (5, 1, voters)
    assert snapshot.records() == [topic(1), topic(2)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_large_snapshot_has_several_batches(tmp_path: Path) -> None:
    token = RecordAndVersion(records.RemoveDelegationTokenRecord(token_id="n" * 30_000), 0)
    path = write_snapshot(tmp_path, SnapshotId(900, 1), *[token] * 400)
    snapshot = read_checkpoint(path)
    assert len(list(snapshot.batches)) == 3
    assert snapshot.records() == [token] * 400
    headers = [batch.header for batch in read_batches(path.read_bytes())]
    assert [header.base_offset for header in headers[1:]] == [header.next_offset for header in headers[:-1]]


def test_unfinished_snapshot_leaves_no_file(tmp_path: Path) -> None:
    with CheckpointWriter(tmp_path / SnapshotId(9, 2).file_name, SnapshotId(9, 2), timestamp=0, now=NOW) as writer:
        writer.add_records([topic(1)])
    assert list(tmp_path.iterdir()) == []


def test_torn_snapshot_is_refused(tmp_path: Path) -> None:
    data = write_snapshot(tmp_path, SnapshotId(9, 2), topic(1)).read_bytes()
    torn = tmp_path / "torn"
    ends = {sum(batch.header.size for batch in list(read_batches(data))[:count]) for count in range(3)}
    for size in range(len(data)):
        torn.write_bytes(data[:size])
        with pytest.raises(LogError, match="no header|no footer" if size in ends else "torn, byte"):
            read_checkpoint(torn)


@pytest.mark.parametrize("directory_id", [None, UUID(int=12345)])
def test_meta_properties_round_trip(tmp_path: Path, directory_id: UUID | None) -> None:
    properties = MetaProperties("cluster", 3, directory_id)
    write_properties(tmp_path, properties)
    assert read_properties(tmp_path) == properties


def test_meta_properties_of_kafka_are_read(tmp_path: Path) -> None:
    text = (
        "#\n#Tue Nov 24 02:00:00 UTC 2026\nnode.id=2\ndirectory.id=J8aAPcfLQt2bqs1JT_rMgQ\nversion=1\ncluster.id=abc\n"
    )
    (tmp_path / "meta.properties").write_text(text)
    properties = read_properties(tmp_path)
    assert (properties.node_id, properties.cluster_id) == (2, "abc")
    assert properties.directory_id == UUID("27c6803d-c7cb-42dd-9baa-cd494ffacc81")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version=0\nbroker.id=1\n",
        "version=1\nnode.id=1\n",
        "version=1\ncluster.id=a\nnode.id=x\n",
        "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
        "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=short\n",
    ],
)
def test_malformed_meta_properties_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(LogError):
        read_properties(tmp_path)


def test_quorum_state_has_kafkas_text(tmp_path: Path) -> None:
    assert read_quorum_state(tmp_path) is None
    state = QuorumState(2, leader_id=1, voters=(1,))
    write_quorum_state(tmp_path, state)
    text = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert (tmp_path / "quorum-state").read_text() == text
    assert read_quorum_state(tmp_path) == state
    voted = QuorumState(3, voted_id=2, voted_directory_id=UUID(int=500), data_version=1)
    write_quorum_state(tmp_path, voted)
    assert read_quorum_state(tmp_path) == voted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"data_version":2}',
        '{"data_version":1,"leaderEpoch":1,"leaderId":1,"votedId":1}',
        '{"data_version":0,"leaderEpoch":true,"leaderId":1,"votedId":1,"currentVoters":[]}',
        "[" * 100_000,
    ],
)
def test_malformed_quorum_state_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    with pytest.raises(LogError):
        read_quorum_state(tmp_path)


def test_segments_are_read_in_order(tmp_path: Path) -> None:
    first = Segment(tmp_path).lead([1]).add(topic(1), topic(2)).add(topic(3))
    Segment(tmp_path, first.offset, epoch=2).lead([1]).add(topic(4))
    log = read_segments(segments_in(tmp_path))
    assert (log.start, log.end, log.last_epoch, log.torn_bytes) == (0, 6, 2, 0)
    assert [batch.header.base_offset for batch in log.batches] == [0, 1, 3, 4, 5]
    assert [batch.header.base_offset for batch in read_segments(segments_in(tmp_path), 5).batches] == [5]


def test_torn_tail_ends_the_log_at_the_last_complete_batch(tmp_path: Path) -> None:
    segment = Segment(tmp_path).lead([1]).add(topic(1))
    complete = segment.data
    segment.add(topic(2))
    for size in range(len(complete) + 1, len(segment.data)):
        segment.path.write_bytes(segment.data[:size])
        log = read_segments(segments_in(tmp_path))
        assert (log.end, log.torn_bytes) == (2, size - len(complete))
    changed = bytearray(segment.data)
    changed[-1] ^= 1
    segment.path.write_bytes(changed)
    assert read_segments(segments_in(tmp_path)).end == 2
    segment.path.write_bytes(complete + bytes(100))
    assert (read_segments(segments_in(tmp_path)).end, read_segments(segments_in(tmp_path)).torn_bytes) == (2, 100)


def test_history_has_snapshot_and_following_batches(tmp_path: Path) -> None:
    write_snapshot(tmp_path, SnapshotId(2, 1), topic(7))
    write_snapshot(tmp_path, SnapshotId(3, 1), topic(8), topic(9))
    (tmp_path / "00000000000000000009-0000000001.checkpoint.part").write_bytes(b"")
    Segment(tmp_path).lead([1]).add(topic(1), topic(2)).add(topic(3)).add(topic(4))
    write_quorum_state(tmp_path, QuorumState(1, leader_id=1, voters=(1,)))
    history = read_history(tmp_path)
    assert history.snapshot_id == (3, 1)
    assert names(history) == ["topic-8", "topic-9", "topic-3", "topic-4"]
    assert names(history, 4) == ["topic-8", "topic-9", "topic-3"]
    assert (history.voters, history.committed) == ((1,), CommittedEnd(5, exact=True))
    with pytest.raises(LogError, match="offset 2"):
        names(history, 2)


def test_offset_within_a_batch_is_refused(tmp_path: Path) -> None:
    Segment(tmp_path).add(topic(1), topic(2))
    with pytest.raises(LogError, match="offset 1 within the batch"):
        names(read_history(tmp_path), 1)


def test_snapshot_replaces_log_that_ends_before_it(tmp_path: Path) -> None:
    Segment(tmp_path).add(topic(1))
    write_snapshot(tmp_path, SnapshotId(9, 2), topic(8))
    history = read_history(tmp_path)
    assert (history.log.end, names(history)) == (9, ["topic-8"])


def test_committed_end_of_several_voters_is_the_snapshot(tmp_path: Path) -> None:
    write_snapshot(tmp_path, SnapshotId(2, 1))
    Segment(tmp_path).lead([1, 2, 3]).add(topic(1)).lead([1, 2, 3]).add(topic(2))
    assert read_history(tmp_path).committed == CommittedEnd(2, exact=False)
    assert committed_end(2, 2, (1, 2, 3)) == CommittedEnd(2, exact=True)


def test_open_transactions_are_buffered_and_aborted_ones_dropped(tmp_path: Path) -> None:
    segment = Segment(tmp_path).add(topic(1), BEGIN, topic(2)).add(topic(3))
    assert names(read_history(tmp_path)) == ["topic-1"]
    segment.add(topic(4), END, topic(5), BEGIN, topic(6)).add(ABORT).add(BEGIN, topic(7), END, topic(8))
    assert names(read_history(tmp_path)) == [f"topic-{number}" for number in (1, 2, 3, 4, 5, 7, 8)]


@pytest.mark.parametrize("markers", [[END], [ABORT], [BEGIN, BEGIN], [BEGIN, END, END]])
def test_unpaired_transaction_marker_is_refused(markers: list[RecordAndVersion]) -> None:
    (batch,) = read_batches(encode_data_batch(markers, BatchPosition(40, 1, NOW)), where="segment")
    with pytest.raises(LogError, match="offset 4"):
        TransactionFilter().apply(batch)


def test_directory_of_a_running_node_is_read(tmp_path: Path) -> None:
    """A thread writes in parts, takes snapshots and deletes old files; each reading is a prefix of what it wrote."""
    rounds, stop = 40, threading.Event()

    def write() -> None:
        written: list[RecordAndVersion] = []
        for number in range(rounds):
            base = len(written)
            written += [topic(base), topic(base + 1)]
            data = encode_data_batch(written[base:], BatchPosition(base, 1, NOW))
            with (tmp_path / f"{base:020}.log").open("wb", buffering=0) as segment:
                for begin in range(0, len(data), 40):
                    segment.write(data[begin : begin + 40])
            if number % 3 == 2:
                write_snapshot(tmp_path, SnapshotId(len(written), 1), *written)
                for path in [*segments_in(tmp_path).values()][:-1] + [*snapshots_in(tmp_path).values()][:-1]:
                    path.unlink()
        stop.set()

    thread = threading.Thread(target=write)
    thread.start()
    lengths = []
    while not stop.is_set():
        replayed = names(read_history(tmp_path))
        assert replayed == [f"topic-{number}" for number in range(len(replayed))]
        lengths.append(len(replayed))
    thread.join()
    assert lengths == sorted(lengths)
    assert len(names(read_history(tmp_path))) == 2 * rounds


def test_missing_file_raises_after_retries(tmp_path: Path) -> None:
    (tmp_path / SnapshotId(5, 1).file_name).symlink_to(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        read_history(tmp_path)
