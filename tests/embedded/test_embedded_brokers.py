"""Embedded brokers respond as a scenario defines, one request at a time. Their requests equal Kafka's trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kframe.embedded import SILENT, Api, EmbeddedBrokers, VirtualClock
from kframe.errors import ErrorCode, InputError
from kframe.model.events import (
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    TopicPartition,
    UpdateMetadataResponseReceived,
)
from kframe.testing.clusters import cluster_of, healthy, requests_of

NO_INDEXES = np.empty(0, np.int32)
NONE, STORAGE, STALE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.STALE_CONTROLLER_EPOCH


Errors = tuple[tuple[TopicPartition, ErrorCode], ...]


def led(
    broker_id: int, error: ErrorCode, errors: Errors = (), controller_epoch: int = 1
) -> LeaderAndIsrResponseReceived:
    """A response to LeaderAndIsr. Rows are not compared."""
    return LeaderAndIsrResponseReceived(broker_id, error, errors, controller_epoch, NO_INDEXES)


class Harness:
    """Three brokers with replicas of ``t-0`` and ``t-1``, connected to a controller that records their responses."""

    def __init__(self) -> None:
        self.clock, self.notified = VirtualClock(), list[Event]()
        self.cluster = cluster_of({"t": [healthy(1, 2, 3), healthy(2, 3, 1)]}, registered=[1, 2, 3])
        self.brokers = EmbeddedBrokers(self.clock)
        self.may_act = True
        self.brokers.open(self.notified.append, lambda: self.may_act)
        self.connect(1, 2, 3)

    def connect(self, *broker_ids: int) -> None:
        self.brokers.connect(self.cluster, tuple(self.cluster.brokers.index_of(broker_ids).tolist()))

    def disconnect(self, *broker_ids: int) -> None:
        self.brokers.disconnect(self.cluster, tuple(self.cluster.brokers.index_of(broker_ids).tolist()))

    def lead(self, broker_id: int, *names: str, controller_epoch: int = 1) -> None:
        """Send LeaderAndIsr."""
        batch = requests_of(self.cluster, leader_and_isr={broker_id: names}, controller_epoch=controller_epoch)
        self.brokers.send(self.cluster, batch)

    def update(self, broker_id: int, controller_epoch: int = 1) -> None:
        """Send UpdateMetadata without partitions."""
        batch = requests_of(self.cluster, metadata=([broker_id], []), controller_epoch=controller_epoch)
        self.brokers.send(self.cluster, batch)

    def received(self) -> list[tuple[int, str, int]]:
        """Return (broker, api, controller epoch) of the requests since the last call."""
        return [(request["broker"], request["api"], request["controller_epoch"]) for request in self.brokers.take()]


@pytest.fixture
def harness() -> Harness:
    return Harness()


ConfiguredResponse = tuple[str, Api | None, Sequence[str] | None]
BOTH = ("t-0", "t-1")
#: The configured response of broker 2, and the errors of its LeaderAndIsr response: top level, and by partition.
RESPONSES: list[tuple[str, list[ConfiguredResponse], ErrorCode, dict[str, ErrorCode], ErrorCode]] = [
    ("by itself", [], NONE, {}, NONE),
    ("top level", [("STALE_CONTROLLER_EPOCH", Api.LEADER_AND_ISR, None)], STALE, dict.fromkeys(BOTH, STALE), NONE),
    ("all apis", [("STALE_CONTROLLER_EPOCH", None, None)], STALE, dict.fromkeys(BOTH, STALE), STALE),
    ("another api", [("STALE_CONTROLLER_EPOCH", Api.UPDATE_METADATA, None)], NONE, {}, STALE),
    ("one partition", [("KAFKA_STORAGE_ERROR", Api.LEADER_AND_ISR, ["t-1"])], NONE, {"t-1": STORAGE}, NONE),
    (
        "a partition and the rest",
        [("STALE_CONTROLLER_EPOCH", Api.LEADER_AND_ISR, None), ("KAFKA_STORAGE_ERROR", Api.LEADER_AND_ISR, ["t-0"])],
        STALE,
        {"t-0": STORAGE, "t-1": STALE},
        NONE,
    ),
    (
        "the last setting applies",
        [("KAFKA_STORAGE_ERROR", None, None), ("STALE_CONTROLLER_EPOCH", Api.LEADER_AND_ISR, None)],
        STALE,
        dict.fromkeys(BOTH, STALE),
        STORAGE,
    ),
    ("restored", [("STALE_CONTROLLER_EPOCH", None, None), ("NONE", None, None)], NONE, {}, NONE),
    ("one api restored", [("STALE_CONTROLLER_EPOCH", None, None), ("NONE", Api.LEADER_AND_ISR, None)], NONE, {}, STALE),
    ("restored with its partitions", [("KAFKA_STORAGE_ERROR", None, ["t-0"]), ("NONE", None, None)], NONE, {}, NONE),
    (
        "one partition restored",
        [("KAFKA_STORAGE_ERROR", None, BOTH), ("NONE", None, ["t-0"])],
        NONE,
        {"t-1": STORAGE},
        NONE,
    ),
    (
        "a partition restored to the rest",
        [("STALE_CONTROLLER_EPOCH", None, None), ("KAFKA_STORAGE_ERROR", None, ["t-0"]), ("NONE", None, ["t-0"])],
        STALE,
        dict.fromkeys(BOTH, STALE),
        STALE,
    ),
    ("a partition that it has not", [("KAFKA_STORAGE_ERROR", None, ["u-0"])], NONE, {}, NONE),
]


@pytest.mark.parametrize(
    "configured, top, errors, metadata", [row[1:] for row in RESPONSES], ids=[row[0] for row in RESPONSES]
)
def test_configured_responses(
    harness: Harness,
    configured: list[ConfiguredResponse],
    top: ErrorCode,
    errors: dict[str, ErrorCode],
    metadata: ErrorCode,
) -> None:
    for error, api, partitions in configured:
        harness.brokers.respond_with(2, error, api, partitions)
    harness.lead(2, *BOTH)
    harness.update(2)
    harness.lead(1, *BOTH)
    expected = tuple((("t", int(name[2:])), error) for name, error in errors.items())
    assert harness.notified == [
        led(2, top, expected),
        UpdateMetadataResponseReceived(2, metadata),
        led(1, NONE),
    ]


@pytest.mark.parametrize(
    "configured, top, errors",
    [
        (None, NONE, {}),
        ([], STALE, {"t-0": STALE, "t-1": STALE}),
        (["t-0"], NONE, {"t-0": STALE}),
        (["t-1"], NONE, {"t-1": STALE}),
    ],
    ids=["by itself", "top level", "a deleted one", "a stopped one"],
)
def test_stop_replica_response_has_only_deleted_rows(
    harness: Harness, configured: list[str] | None, top: ErrorCode, errors: dict[str, ErrorCode]
) -> None:
    if configured is not None:
        harness.brokers.respond_with(2, STALE.name, Api.STOP_REPLICA, configured)
    stopped = {"t-0": (0, True), "t-1": (0, False)}
    harness.brokers.send(harness.cluster, requests_of(harness.cluster, stop_replica={2: stopped}, controller_epoch=4))
    expected = tuple((("t", int(name[2:])), error) for name, error in errors.items())
    assert harness.notified == [StopReplicaResponseReceived(2, top, expected, 4, NO_INDEXES)]
    (response,) = harness.notified
    assert isinstance(response, StopReplicaResponseReceived)
    assert response.rows.tolist() == [0]


def test_stop_replica_without_deletion_causes_no_event(harness: Harness) -> None:
    harness.brokers.send(harness.cluster, requests_of(harness.cluster, stop_replica={2: {"t-0": (0, False)}}))
    harness.update(2)
    assert harness.received() == [(2, "StopReplica", 1), (2, "UpdateMetadata", 1)]
    assert harness.notified == [UpdateMetadataResponseReceived(2, NONE)]


@pytest.mark.parametrize(
    "error, partitions",
    [("NO_SUCH_ERROR", None), ("none", None), ("", None), (SILENT, ["t-0"]), ("NO_SUCH_ERROR", ["t-0"])],
)
def test_invalid_response_is_refused_and_changes_nothing(
    harness: Harness, error: str, partitions: list[str] | None
) -> None:
    with pytest.raises(InputError, match="response of broker 2"):
        harness.brokers.respond_with(2, error, None, partitions)
    harness.lead(2, "t-0")
    assert harness.notified == [led(2, NONE)]


def test_silent_broker_blocks_only_its_own_queue(harness: Harness) -> None:
    harness.brokers.respond_with(2, SILENT, Api.LEADER_AND_ISR)
    harness.update(2, controller_epoch=1)
    harness.lead(2, "t-0", controller_epoch=2)
    harness.update(2, controller_epoch=3)
    harness.lead(2, "t-1", controller_epoch=4)
    harness.lead(1, "t-0", controller_epoch=5)
    assert harness.received() == [(1, "LeaderAndIsr", 5), (2, "UpdateMetadata", 1), (2, "LeaderAndIsr", 2)]
    assert harness.notified == [UpdateMetadataResponseReceived(2, NONE), led(1, NONE, controller_epoch=5)]
    assert {broker: queue.waiting for broker, queue in harness.brokers.queues().items() if queue.waiting} == {2: 2}


def test_broker_after_silence_responds_and_receives_queue_in_order(harness: Harness) -> None:
    harness.brokers.respond_with(2, SILENT)
    for controller_epoch in (1, 2, 3):
        harness.lead(2, "t-0", controller_epoch=controller_epoch)
        harness.update(2, controller_epoch=controller_epoch)
    assert harness.received() == [(2, "LeaderAndIsr", 1)]
    harness.brokers.respond_with(2, "NONE")
    assert harness.received() == [
        (2, "UpdateMetadata", 1),
        *((2, api, controller_epoch) for controller_epoch in (2, 3) for api in ("LeaderAndIsr", "UpdateMetadata")),
    ]
    assert harness.notified == [
        response
        for controller_epoch in (1, 2, 3)
        for response in (led(2, NONE, controller_epoch=controller_epoch), UpdateMetadataResponseReceived(2, NONE))
    ]
    assert harness.clock.pending == {}
    assert harness.brokers.queues()[2].waiting == 0


def test_queue_time_ends_when_request_is_sent(harness: Harness) -> None:
    harness.brokers.respond_with(2, SILENT)
    harness.lead(2, "t-0")
    harness.clock.advance(1.0)
    harness.update(2)
    harness.clock.advance(45.0)  # the first request is sent again in between, without a delay
    times = harness.brokers.queues()[2].times
    assert (times.count, times.quantiles((0.0, 1.0))) == (1, [0.0, 0.0])
    harness.brokers.respond_with(2, "NONE")
    assert (times.count, times.quantiles((0.0, 1.0))) == (2, [0.0, 45_000.0])


def test_resetting_one_api_keeps_other_api_silent(harness: Harness) -> None:
    harness.brokers.respond_with(2, SILENT)
    harness.lead(2, "t-0")
    harness.update(2)
    harness.update(2)
    harness.brokers.respond_with(2, "NONE", Api.UPDATE_METADATA)
    assert harness.notified == []
    harness.brokers.respond_with(2, SILENT, Api.UPDATE_METADATA)
    harness.brokers.respond_with(2, "NONE", Api.LEADER_AND_ISR)
    assert harness.notified == [led(2, NONE)]
    assert harness.received() == [(2, "LeaderAndIsr", 1), (2, "UpdateMetadata", 1)]
    assert harness.brokers.queues()[2].waiting == 1


def test_error_after_silence_keeps_response_of_received_request(harness: Harness) -> None:
    harness.brokers.respond_with(2, "KAFKA_STORAGE_ERROR", Api.LEADER_AND_ISR, ["t-0"])
    harness.brokers.respond_with(2, SILENT, Api.LEADER_AND_ISR)
    harness.lead(2, *BOTH)
    harness.lead(2, *BOTH)
    harness.brokers.respond_with(2, "STALE_CONTROLLER_EPOCH", Api.LEADER_AND_ISR)
    assert harness.notified == [
        led(2, NONE, ((("t", 0), STORAGE),)),
        led(2, STALE, ((("t", 0), STORAGE), (("t", 1), STALE))),
    ]


def test_request_to_silent_broker_is_resent_every_30_seconds(harness: Harness) -> None:
    harness.brokers.respond_with(2, SILENT)
    harness.lead(2, "t-0", controller_epoch=7)
    harness.update(2)
    harness.received()
    for seconds, times in ((29.9, 0), (0.1, 1), (29, 0), (1, 1), (95, 3)):
        harness.clock.advance(seconds)
        assert harness.received() == [(2, "LeaderAndIsr", 7)] * times, f"after {harness.clock.now_ms()} ms"
    harness.brokers.respond_with(2, "NONE")
    harness.clock.advance(300)
    assert harness.received() == [(2, "UpdateMetadata", 1)]
    assert harness.notified == [led(2, NONE, controller_epoch=7), UpdateMetadataResponseReceived(2, NONE)]


@pytest.mark.parametrize("how", ["bounce", "unregister and register"])
def test_new_registration_drops_requests_of_the_old_registration(harness: Harness, how: str) -> None:
    harness.brokers.respond_with(2, SILENT, Api.LEADER_AND_ISR)
    harness.lead(2, "t-0", controller_epoch=1)
    harness.update(2, controller_epoch=1)
    if how == "unregister and register":
        harness.disconnect(2)
        harness.update(2, controller_epoch=1)
    harness.connect(2)
    harness.received()
    harness.update(2, controller_epoch=2)
    harness.clock.advance(100)
    assert harness.received() == [(2, "UpdateMetadata", 2)]
    harness.brokers.respond_with(2, "NONE")
    assert harness.received() == []
    assert harness.notified == [UpdateMetadataResponseReceived(2, NONE)], (
        "responses to the old registration are dropped"
    )


def test_close_drops_all_queues_and_timers(harness: Harness) -> None:
    harness.brokers.respond_with(2, SILENT)
    harness.update(2)
    harness.update(2)
    harness.brokers.close()
    assert harness.clock.pending == {}
    harness.brokers.respond_with(2, "NONE")
    harness.brokers.open(harness.notified.append, lambda: True)
    harness.connect(2)
    harness.update(2, controller_epoch=2)
    assert harness.received() == [(2, "UpdateMetadata", 1), (2, "UpdateMetadata", 2)]
    assert harness.notified == [UpdateMetadataResponseReceived(2, NONE)]


def test_queued_requests_are_dropped_without_the_role(harness: Harness) -> None:
    """Neither the request timeout nor a late response of the broker sends the queued requests."""
    harness.brokers.respond_with(2, SILENT)
    harness.brokers.respond_with(3, SILENT)
    for broker_id in (2, 3):
        harness.update(broker_id)
        harness.update(broker_id)
    assert harness.received() == [(2, "UpdateMetadata", 1), (3, "UpdateMetadata", 1)]
    harness.may_act = False
    harness.clock.advance(3600.0)
    harness.brokers.respond_with(3, "NONE")
    assert (harness.received(), harness.clock.pending) == ([], {})


def test_requests_from_listener_keep_queue_order(harness: Harness) -> None:
    """A listener may send, connect and disconnect before it returns."""
    notified: list[Event] = []

    def on_event(event: Event) -> None:
        notified.append(event)
        if len(notified) == 1:
            harness.update(2, controller_epoch=9)
        if len(notified) == 3:
            harness.disconnect(2)

    harness.brokers.respond_with(2, SILENT)
    harness.brokers.open(on_event, lambda: True)
    for controller_epoch in (1, 2, 3, 4):
        harness.lead(2, "t-0", controller_epoch=controller_epoch)
    harness.brokers.respond_with(2, "NONE")
    assert harness.received() == [(2, "LeaderAndIsr", controller_epoch) for controller_epoch in (1, 2, 3)]
    assert len(notified) == 3


def test_batch_has_columns_at_time_of_send(harness: Harness) -> None:
    """Also if a response arrives and the controller continues before the last broker receives its request."""
    harness.brokers.open(lambda _event: harness.cluster.partitions.leader.fill(-1), lambda: True)
    batch = requests_of(harness.cluster, leader_and_isr={1: ["t-0"], 2: ["t-0"]}, metadata=([2], ["t-0"]))
    harness.brokers.send(harness.cluster, batch)
    assert [request["partitions"]["t-0"]["leader"] for request in harness.brokers.take()] == [1, 1, 1]
