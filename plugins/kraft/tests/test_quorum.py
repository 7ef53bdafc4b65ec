"""A quorum of one voter: its epochs, the first batch, the high watermark, and what replicas are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from kframe_kraft.disk import QuorumState, SnapshotId
from kframe_kraft.errors import LogError
from kframe_kraft.log import Diverged, FetchPosition, NeedsSnapshot, Serveable
from kframe_kraft.log.epochs import LogEpochEnd
from kframe_kraft.quorum import (
    FetchAnswer,
    FetchService,
    Leadership,
    PendingFetch,
    ReplicaFetch,
    ReplicaKey,
    SoleVoter,
    Voters,
)
from kframe_kraft.quorum.fetches import UNCOMMITTED_MAX

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import control

DIRECTORY = UUID(int=501)
NODE = ReplicaKey(1, DIRECTORY)
OTHER = UUID(int=502)
BROKER = ReplicaKey(7, UUID(int=507))


def voter(node_id: int, directory_id: UUID = DIRECTORY) -> control.Voter:
    endpoint = control.VoterEndpoint(name="CONTROLLER", host="localhost", port=9093)
    return control.Voter(voter_id=node_id, voter_directory_id=directory_id, endpoints=(endpoint,))


STATIC = Voters((voter(1),))
DYNAMIC = Voters((voter(1),), 1)


@pytest.mark.parametrize(
    ("voters", "refusal"),
    [
        (STATIC, None),
        (DYNAMIC, None),
        (Voters((voter(1, OTHER),)), None),
        (Voters((voter(1, OTHER),), 1), "node 1"),
        (Voters(()), "none"),
        (Voters((voter(2),)), "nodes 2"),
        (Voters((voter(1), voter(2))), "nodes 1, 2"),
    ],
    ids=["static", "dynamic", "static, directory unknown", "another directory", "none", "another node", "two voters"],
)
def test_only_the_only_voter_may_lead(voters: Voters, refusal: str | None) -> None:
    if refusal is None:
        assert SoleVoter(NODE, voters, None, 0).epoch == 0
        return
    with pytest.raises(LogError, match=f"voters: found .*{refusal.removeprefix('node ')}"):
        SoleVoter(NODE, voters, None, 0)


@pytest.mark.parametrize(
    ("stored", "last_epoch", "epoch"),
    [
        (None, 0, 1),
        (QuorumState(4), 4, 5),
        (QuorumState(9, leader_id=1), 4, 10),
        (QuorumState(4), 7, 8),
    ],
    ids=["new", "both", "quorum-state is ahead", "log is ahead"],
)
def test_epoch_is_above_all_that_the_directory_knows(stored: QuorumState | None, last_epoch: int, epoch: int) -> None:
    assert SoleVoter(NODE, STATIC, stored, last_epoch).stand() == QuorumState(epoch, leader_id=1, voters=(1,))
    assert SoleVoter(NODE, DYNAMIC, stored, last_epoch).stand() == QuorumState(epoch, leader_id=1, data_version=1)


@pytest.mark.parametrize(
    ("voters", "log_has_voters", "types"),
    [
        (STATIC, False, [control.LeaderChangeMessage]),
        (DYNAMIC, True, [control.LeaderChangeMessage]),
        (DYNAMIC, False, [control.LeaderChangeMessage, control.KRaftVersionRecord, control.VotersRecord]),
    ],
)
def test_first_batch_of_an_epoch(voters: Voters, log_has_voters: bool, types: Sequence[type]) -> None:
    quorum = SoleVoter(NODE, voters, None, 0)
    quorum.stand()
    content = quorum.lead(20, log_has_voters=log_has_voters)
    assert [type(record) for record in content] == types
    first = control.LeaderChangeVoter(voter_id=1)
    assert content[0] == control.LeaderChangeMessage(leader_id=1, voters=(first,), granting_voters=(first,))


def test_high_watermark_begins_behind_the_first_batch_and_never_falls() -> None:
    leadership = Leadership(5, 20)
    assert [(leadership.note_synced(end), leadership.high_watermark) for end in (10, 20, 21, 21, 30, 25)] == [
        (False, None),
        (False, None),
        (True, 21),
        (False, 21),
        (True, 30),
        (False, 30),
    ]


def test_observers_are_described_and_forgotten() -> None:
    leadership = Leadership(5, 0)
    leadership.note_fetch(BROKER, 10, 10, 1000)
    leadership.note_fetch(BROKER, 10, 15, 2000)
    leadership.note_fetch(ReplicaKey(-1), 3, 15, 2000)
    progress = leadership.observers(2000)[BROKER]
    assert (progress.end, progress.fetched_ms, progress.caught_up_ms) == (10, 2000, 1000)
    leadership.note_fetch(BROKER, 15, 20, 2500)
    progress = leadership.observers(301_999)[BROKER]
    assert (progress.end, progress.fetched_ms, progress.caught_up_ms) == (15, 2500, 2000)
    assert leadership.observers(302_500) == {}


# -- Fetch


@dataclass
class Log:
    """A log of one byte a record."""

    start: int = 0
    end: int = 21
    position: FetchPosition = field(default_factory=Serveable)

    def fetch(self, offset: int, max_bytes: int) -> bytes:
        return bytes(min(self.end - offset, max_bytes))

    def check_position(self, offset: int, epoch: int) -> FetchPosition:
        return self.position


def leader(high_watermark: int | None = 21) -> tuple[SoleVoter, Log, FetchService]:
    """The leader of epoch 5, whose first batch is record 20."""
    quorum, log = SoleVoter(NODE, STATIC, None, 4), Log()
    quorum.stand()
    quorum.lead(20, log_has_voters=False)
    assert quorum.leadership is not None
    quorum.leadership.high_watermark = high_watermark
    return quorum, log, FetchService(quorum, log)


def fetch(**fields: Any) -> ReplicaFetch:
    """A request of a broker that has everything, and knows the high watermark 21."""
    return replace(ReplicaFetch(BROKER, 5, 21, 5, 1000, 500, 21), **fields)


@pytest.mark.parametrize(
    ("request_fields", "answer"),
    [
        ({"epoch": 0, "offset": 0}, {"error": ErrorCode.FENCED_LEADER_EPOCH}),
        ({"epoch": 6}, {"error": ErrorCode.UNKNOWN_LEADER_EPOCH}),
        ({"offset": 0}, {"records": bytes(21)}),
        ({"offset": 20}, {"records": bytes(1)}),
        ({"offset": 0, "max_bytes": 7}, {"records": bytes(7)}),
        ({"high_watermark": 20}, {}),
        ({"high_watermark": -1}, {}),
        ({"high_watermark": None}, {}),
    ],
    ids=["older epoch", "newer epoch", "all", "last", "part", "high watermark", "none known", "before version 18"],
)
def test_answer_at_once(request_fields: dict[str, Any], answer: dict[str, Any]) -> None:
    _, _, service = leader()
    expected = {"high_watermark": 21, "log_start": 0} if "error" not in answer else {}
    assert service.answer(fetch(**request_fields), 0) == FetchAnswer(**{**expected, **answer})


@pytest.mark.parametrize(
    ("position", "fields"),
    [
        (Diverged(LogEpochEnd(4, 18)), {"diverged": LogEpochEnd(4, 18)}),
        (NeedsSnapshot(SnapshotId(15, 3)), {"snapshot_id": SnapshotId(15, 3)}),
    ],
)
def test_replica_with_another_history(position: FetchPosition, fields: dict[str, Any]) -> None:
    quorum, log, service = leader()
    log.position = position
    assert service.answer(fetch(), 0) == FetchAnswer(high_watermark=21, log_start=0, **fields)
    assert quorum.leadership is not None
    assert quorum.leadership.observers(0) == {}


@pytest.mark.parametrize(("wait_ms", "deadline"), [(500, 500), (100, 100), (0, 0), (-1, 0), (10_000, 500)])
def test_request_without_new_records_is_delayed(wait_ms: int, deadline: int) -> None:
    _, _, service = leader()
    pending = service.answer(fetch(wait_ms=wait_ms), 0)
    assert isinstance(pending, PendingFetch)
    assert service.deadline == deadline
    assert service.complete(deadline - 1) == []
    assert service.complete(deadline) == [(pending, FetchAnswer(high_watermark=21, log_start=0))]
    assert service.deadline is None


def test_waiting_request_is_answered_when_records_are_committed() -> None:
    quorum, log, service = leader()
    pending = service.answer(fetch(), 0)
    log.end = 24
    assert service.complete(1) == []
    assert quorum.leadership is not None
    quorum.leadership.note_synced(24)
    assert service.complete(2) == [(pending, FetchAnswer(high_watermark=24, log_start=0, records=bytes(3)))]


def test_snapshot_replaces_the_records_that_a_request_waits_for() -> None:
    quorum, log, service = leader()
    pending = service.answer(fetch(), 0)
    log.start, log.end, log.position = 23, 24, NeedsSnapshot(SnapshotId(23, 5))
    assert quorum.leadership is not None
    quorum.leadership.note_synced(24)
    expected = FetchAnswer(high_watermark=24, log_start=23, snapshot_id=SnapshotId(23, 5))
    assert service.complete(1) == [(pending, expected)]


@pytest.mark.parametrize(("records", "is_sent"), [(UNCOMMITTED_MAX, False), (UNCOMMITTED_MAX + 1, True)])
def test_many_records_are_sent_before_they_are_committed(records: int, is_sent: bool) -> None:
    _, log, service = leader()
    waiting = service.answer(fetch(max_bytes=2**20), 0)
    log.end += records
    answer = FetchAnswer(high_watermark=21, log_start=0, records=bytes(records))
    assert service.complete(1) == ([(waiting, answer)] if is_sent else [])
    assert (service.answer(fetch(max_bytes=2**20), 2) == answer) == is_sent
    assert service.complete(500)[:1] == ([] if is_sent else [(waiting, answer)])


@pytest.mark.parametrize("known", [21, None], ids=["version 18", "version 17"])
def test_waiting_request_is_answered_when_the_high_watermark_rises(known: int | None) -> None:
    """A replica that does not say what it knows is answered once, and knows the response from then on."""
    quorum, log, service = leader()
    if known is None:
        assert service.answer(fetch(high_watermark=None), 0) == FetchAnswer(high_watermark=21, log_start=0)
    log.end = 24
    pending = service.answer(fetch(offset=24, high_watermark=known), 2)
    assert isinstance(pending, PendingFetch)
    assert quorum.leadership is not None
    quorum.leadership.note_synced(24)
    assert service.complete(3) == [(pending, FetchAnswer(high_watermark=24, log_start=0))]


def test_no_high_watermark_before_the_first_batch_is_durable() -> None:
    quorum, _, service = leader(None)
    pending = service.answer(fetch(high_watermark=-1), 0)
    assert service.complete(10) == []
    assert quorum.leadership is not None
    quorum.leadership.note_synced(21)
    assert service.complete(11) == [(pending, FetchAnswer(high_watermark=21, log_start=0))]


def test_repeated_refusals_wait() -> None:
    """A broker repeats a refused request at once, hundreds of times a second."""
    _, _, service = leader()
    refused = FetchAnswer(ErrorCode.FENCED_LEADER_EPOCH)
    assert service.answer(fetch(epoch=0), 0) == refused
    pending = service.answer(fetch(epoch=0), 10)
    assert isinstance(pending, PendingFetch)
    assert service.complete(509) == []
    assert service.complete(510) == [(pending, refused)]
    assert isinstance(service.answer(fetch(epoch=5), 511), PendingFetch)
    assert service.answer(fetch(epoch=0), 1010) == refused


def test_resignation_answers_all() -> None:
    quorum, _, service = leader()
    pending = service.answer(fetch(), 0)
    quorum.resign()
    assert service.complete(1) == [(pending, FetchAnswer(ErrorCode.BROKER_NOT_AVAILABLE))]
    assert service.answer(fetch(), 1000) == FetchAnswer(ErrorCode.BROKER_NOT_AVAILABLE)
    assert service.answer(fetch(epoch=4), 2000) == FetchAnswer(ErrorCode.FENCED_LEADER_EPOCH)


def test_forgotten_requests_are_not_answered() -> None:
    _, log, service = leader()
    pending = service.answer(fetch(), 0)
    assert isinstance(pending, PendingFetch)
    service.forget(pending)
    log.end = 30
    assert service.complete(1000) == []


def test_requests_end_by_their_deadlines() -> None:
    _, _, service = leader()
    waits = [300, 100, 400, 200, 100]
    pending = [
        service.answer(fetch(replica=ReplicaKey(node_id), wait_ms=wait_ms), node_id)
        for node_id, wait_ms in enumerate(waits)
    ]
    assert isinstance(pending[1], PendingFetch)
    service.forget(pending[1])
    ended = []
    while (deadline := service.deadline) is not None:
        ended += [(deadline, pending.index(request)) for request, _ in service.complete(deadline)]
    assert ended == [(104, 4), (203, 3), (300, 0), (402, 2)]


def test_replicas_without_id_wait_for_records_alone() -> None:
    quorum, log, service = leader()
    pending = service.answer(fetch(replica=ReplicaKey(-1), high_watermark=None), 0)
    assert isinstance(pending, PendingFetch)
    log.end = 22
    assert quorum.leadership is not None
    quorum.leadership.note_synced(22)
    assert [answer.records for _, answer in service.complete(1)] == [bytes(1)]
