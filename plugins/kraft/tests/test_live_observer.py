"""An observer against scripted controllers: leaders, divergence, snapshots in parts, and malformed responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from kframe_kafka_wire.connections.node import NodeConnection
from kframe_kafka_wire.protocol.codec import encode_response
from kframe_kafka_wire.protocol.errors import PermanentFailure
from kframe_kraft.batches import read_batches
from kframe_kraft.disk import SnapshotId
from kframe_kraft.errors import BatchError, LogError
from kframe_kraft.live import QuorumObserver, observer
from kframe_kraft.live.calls import FETCH, FETCH_SNAPSHOT, Address
from kframe_kraft.live.followed_log import FollowedLog
from kframe_kraft.replay.image import image_of

from kframe.plugin import StoreError
from kframe.plugin.kraft import RecordAndVersion
from verification.kraft.scripted_quorum import ScriptedController, ScriptedState, connect
from verification.kraft.written_log import batch, register, write_snapshot

Start = Callable[..., ScriptedController]


@pytest.fixture
def state() -> ScriptedState:
    return ScriptedState(batches=[batch(offset) for offset in range(4)], high_watermark=3)


@pytest.fixture
def start(state: ScriptedState) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(node_id: int, **options: bool) -> ScriptedController:
            return stack.enter_context(ScriptedController(node_id, state, **options))

        yield started


@pytest.fixture
def follow() -> Iterator[Callable[..., QuorumObserver]]:
    with ExitStack() as stack:

        def opened(*controllers: ScriptedController, reply_bytes_max: int = 2**22) -> QuorumObserver:
            node = partial(connect, reply_bytes_max=reply_bytes_max)
            follower = QuorumObserver([each.address for each in controllers], node, pause=lambda _seconds: None)
            stack.callback(follower.close)
            return follower

        yield opened


def offsets(follower: QuorumObserver) -> list[int]:
    return [each.header.base_offset for each in follower.history().log.batches]


def test_only_records_below_the_high_watermark_are_committed(
    start: Start, follow: Callable[..., QuorumObserver], state: ScriptedState
) -> None:
    follower = follow(start(1))
    assert follower.poll() == 3
    assert (follower.log.end, offsets(follower)) == (4, [0, 1, 2])
    assert follower.history().committed.offset == 3
    state.high_watermark = 4
    follower.poll()
    assert offsets(follower) == [0, 1, 2, 3]


def test_observer_finds_leader_by_fetch_response(
    start: Start, follow: Callable[..., QuorumObserver], state: ScriptedState
) -> None:
    state.leader_id = 2
    other, leader = start(1), start(2)
    follower = follow(other)
    follower.catch_up()
    assert offsets(follower) == [0, 1, 2]
    assert (follower.leader.leader_id, other.requests[FETCH]) == (2, 1)
    assert leader.requests[FETCH] >= 1


def test_observer_finds_leader_by_describe_quorum_of_broker(
    start: Start, follow: Callable[..., QuorumObserver]
) -> None:
    broker, leader = start(7, is_broker=True), start(1)
    follower = follow(broker)
    follower.catch_up()
    assert offsets(follower) == [0, 1, 2]
    assert (broker.requests[FETCH], leader.requests[FETCH] > 0) == (0, True)
    assert image_of(follower.history()).voters == (1,)


def test_new_leader_is_followed_after_leader_stops(
    start: Start, follow: Callable[..., QuorumObserver], state: ScriptedState
) -> None:
    leader, _ = start(1), start(2)
    follower = follow(leader)
    follower.catch_up()
    leader.stop()
    state.leader_id, state.leader_epoch = 2, 5
    state.batches[3:] = [batch(3, epoch=5), batch(4, epoch=5)]
    state.diverging, state.high_watermark = (1, 3), 5
    follower.catch_up()
    assert (follower.leader.leader_id, follower.leader.leader_epoch) == (2, 5)
    history = follower.history()
    assert [each.header.leader_epoch for each in history.log.batches] == [1, 1, 1, 5, 5]
    assert image_of(history).leader_id == 2


def test_truncation_of_a_committed_record_is_an_error(
    start: Start, follow: Callable[..., QuorumObserver], state: ScriptedState
) -> None:
    follower = follow(start(1))
    follower.catch_up()
    state.diverging = (1, 2)
    with pytest.raises(LogError, match="an offset from 3 on, the committed end"):
        follower.poll()


def test_lower_high_watermark_is_ignored(
    start: Start, follow: Callable[..., QuorumObserver], state: ScriptedState
) -> None:
    follower = follow(start(1))
    follower.catch_up()
    state.high_watermark = 1
    follower.poll()
    assert offsets(follower) == [0, 1, 2]


class TestSnapshots:
    @pytest.fixture
    def content(self, tmp_path: Path, state: ScriptedState) -> bytes:
        snapshot_id = SnapshotId(10, 1)
        path = write_snapshot(
            tmp_path, snapshot_id, *(RecordAndVersion(register(broker), 3) for broker in range(1, 400))
        )
        state.snapshot_id, state.snapshot = snapshot_id, path.read_bytes()
        state.batches, state.high_watermark = [batch(10)], 11
        return state.snapshot

    def test_snapshot_is_fetched_in_parts(
        self, start: Start, follow: Callable[..., QuorumObserver], content: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kframe_kraft.live.calls.SNAPSHOT_PART_BYTES", 1000)
        leader = start(1)
        follower = follow(leader)
        follower.catch_up()
        assert leader.requests[FETCH_SNAPSHOT] == -(-len(content) // 1000)
        history = follower.history()
        assert (history.snapshot_id, history.log.start, history.log.end) == ((10, 1), 10, 11)
        assert len(image_of(history).metadata.brokers.registrations) == 399
        assert follower.generation == 1

    @pytest.mark.parametrize(
        "part", [{"position": 7}, {"size": -1}, {"size": 2**40}, {"unaligned_records": b""}, {"size": 10}]
    )
    def test_snapshot_part_at_other_position_is_refused(
        self,
        start: Start,
        follow: Callable[..., QuorumObserver],
        part: dict[str, object],
        content: bytes,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        right = ScriptedController._snapshot_part
        monkeypatch.setattr(ScriptedController, "_snapshot_part", lambda *call: right(*call) | part)
        with pytest.raises(StoreError, match=r"FetchSnapshot: found"):
            follow(start(1)).poll()

    def test_a_torn_snapshot_is_refused(
        self, start: Start, follow: Callable[..., QuorumObserver], content: bytes, state: ScriptedState
    ) -> None:
        first = next(read_batches(content)).header.size
        state.snapshot = content[:first]
        with pytest.raises(LogError, match="no footer"):
            follow(start(1)).poll()


class TestMalformedResponses:
    @pytest.mark.parametrize("frame", [b"\xff" * 40, b"\x00", bytes(4) + b"\x7f" * 100])
    def test_malformed_response_closes_connection_and_retries(
        self, start: Start, follow: Callable[..., QuorumObserver], frame: bytes
    ) -> None:
        leader = start(1)
        leader.raw_replies[FETCH] = [frame]
        follower = follow(leader)
        follower.catch_up()
        assert offsets(follower) == [0, 1, 2]

    def test_repeated_malformed_responses_raise_store_error(
        self, start: Start, follow: Callable[..., QuorumObserver]
    ) -> None:
        leader = start(1)
        leader.raw_replies[FETCH] = [b"\xff" * 40] * observer.ATTEMPTS
        with pytest.raises(StoreError, match=rf"no leader can be reached \(127\.0\.0\.1:{leader.address[1]}"):
            follow(leader).poll()

    def test_response_above_size_limit_is_refused(
        self, start: Start, follow: Callable[..., QuorumObserver], state: ScriptedState
    ) -> None:
        state.batches = [batch(offset, name="n" * 900) for offset in range(8)]
        with pytest.raises(StoreError, match="at most 4096 make sense"):
            follow(start(1), reply_bytes_max=4096).poll()

    def test_authorization_error_names_required_operation(
        self, start: Start, follow: Callable[..., QuorumObserver]
    ) -> None:
        leader = start(1)
        refusal = encode_response(FETCH, 17, 2, {"error_code": 31, "responses": []})[4:]
        leader.raw_replies[FETCH] = [refusal]
        with pytest.raises(StoreError, match=r"CLUSTER_AUTHORIZATION_FAILED.*ClusterAction"):
            follow(leader).poll()


class TestFollowedLog:
    def test_truncated_last_batch_is_ignored(self) -> None:
        log = FollowedLog()
        log.append(batch(0) + batch(1)[:-1], 1)
        assert log.end == 1

    @pytest.mark.parametrize(
        "content",
        [
            batch(1),
            batch(0, epoch=2),
            batch(0)[:-1],
            batch(0)[:20],
            b"\x00" * 200,
            b"\xff" * 200,
            batch(0) + batch(2),
            batch(0, epoch=1) + batch(1, epoch=0),
        ],
        ids=["gap", "later-epoch", "truncated", "short", "zeros", "ones", "gap-after", "epoch-falls"],
    )
    def test_damaged_records_change_nothing(self, content: bytes) -> None:
        log = FollowedLog()
        with pytest.raises(BatchError):
            log.append(content, 1)
        assert log.end == 0

    @pytest.mark.parametrize("seed", range(30))
    def test_changed_byte_is_refused_or_keeps_offsets(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        content = bytearray(b"".join(batch(offset) for offset in range(3)))
        content[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
        log = FollowedLog()
        try:
            log.append(bytes(content), 2)
        except BatchError:
            assert log.end == 0
        assert 0 <= log.end <= 3

    def test_diverging_epoch_at_log_end_is_refused(self) -> None:
        log = FollowedLog()
        log.append(batch(0), 1)
        with pytest.raises(LogError, match="an end before 1"):
            log.truncate(1, 1)


def test_permanent_failure_is_not_retried() -> None:
    calls = []

    def connect(address: Address) -> NodeConnection:
        calls.append(address)
        raise PermanentFailure("the broker refuses the login")

    with pytest.raises(StoreError, match="refuses the login"):
        QuorumObserver([("h", 1)], connect).poll()
    assert len(calls) == 1
