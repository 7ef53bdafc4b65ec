"""What every transport must do, as tests that a plugin's author runs.

::

    from kframe.testing.transport_contract import AnsweringContract

    class TestMyTransport(AnsweringContract):
        @pytest.fixture
        def make_world(self):
            return MyWorld          # called with a cluster, gives an AnsweringWorld

``MyWorld(cluster)`` has a new transport that is not open, and brokers at the far end; it may change the endpoints in
the cluster's registrations to where its brokers listen. A transport that only counts is held to ``CountingContract``,
one whose far end can say what it has received to ``RecordingContract``, one whose far end answers to
``AnsweringContract``: each includes the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import pytest

from kframe.embedded.describe import Request
from kframe.errors import ErrorCode
from kframe.model.cluster import ClusterState
from kframe.model.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered, UpdateMetadataAnswered
from kframe.model.ports import Acknowledging, Transport
from kframe.model.requests import ControlRequests
from kframe.testing.clusters import cluster_of, healthy, requests_of, rows_of
from kframe.testing.transport_batches import big_batch, known, led, small_cluster, told

#: (requests, partitions in them) by broker id and api.
Counts: TypeAlias = dict[int, dict[str, tuple[int, int]]]


class CountingWorld(Protocol):
    """A transport, and how much has come out at its far end."""

    @property
    def transport(self) -> Transport:
        """The transport, always the same."""

    def settle(self) -> None:
        """Return when all that was sent has arrived and been answered."""

    def counts(self) -> Counts:
        """What each broker has received since the last call; those that received nothing are left out."""


class RecordingWorld(CountingWorld, Protocol):
    """A transport, and what has come out at its far end."""

    def received(self) -> Sequence[Request]:
        """What brokers have received since the last call, as a trace shows it; for one broker in order."""


class AnsweringWorld(RecordingWorld, Protocol):
    """A transport whose brokers answer every request without error."""


@dataclass(slots=True)
class Role:
    """Whether the controller that sends may act."""

    held: bool = True


def counts_of(received: Sequence[Request]) -> Counts:
    """How a RecordingWorld counts."""
    counts: Counts = {}
    for request in received:
        of_broker = counts.setdefault(request["broker"], {})
        requests, partitions = of_broker.get(request["api"], (0, 0))
        of_broker[request["api"]] = requests + 1, partitions + len(request["partitions"])
    return counts


class CountingContract:
    """Who gets how many requests, with how many partitions."""

    @pytest.fixture
    def make_world(self) -> Callable[[ClusterState], Any]:
        """To be supplied by the plugin's tests."""
        raise NotImplementedError("the subclass supplies the fixture make_world")

    @pytest.fixture
    def cluster(self) -> ClusterState:
        """The cluster that the controller has in mind."""
        return small_cluster()

    @pytest.fixture
    def heard(self) -> list[Event]:
        """What the transport notifies of."""
        return []

    @pytest.fixture
    def role(self) -> Role:
        """The role of the controller that sends."""
        return Role()

    @pytest.fixture
    def world(
        self, make_world: Callable[[ClusterState], Any], cluster: ClusterState, heard: list[Event], role: Role
    ) -> Any:
        """A world whose transport is open and connected to brokers 1 to 4."""
        world = make_world(cluster)
        world.transport.open(heard.append, lambda: role.held)
        world.transport.connect(cluster, _indexes(cluster, 1, 2, 3, 4))
        return world

    def test_is_a_transport(self, world: CountingWorld) -> None:
        """It has the methods of ``ports.Transport``."""
        assert isinstance(world.transport, Transport)

    def test_every_broker_gets_what_the_batch_says(self, world: CountingWorld, cluster: ClusterState) -> None:
        """All three requests, and metadata for all its brokers alike."""
        _send(world, cluster, big_batch(cluster))
        assert world.counts() == {
            1: {"LeaderAndIsr": (1, 1), "UpdateMetadata": (1, 3)},
            2: {"LeaderAndIsr": (1, 3), "UpdateMetadata": (1, 3), "StopReplica": (1, 1)},
            3: {"StopReplica": (1, 2)},
            4: {"UpdateMetadata": (1, 3)},
        }

    def test_batches_add_up(self, world: CountingWorld, cluster: ClusterState) -> None:
        """Nothing is lost or merged between batches."""
        for _ in range(5):
            world.transport.send(cluster, requests_of(cluster, metadata=([2, 3], ["t-1"])))
        _send(world, cluster, requests_of(cluster, leader_and_isr={3: ["t-0"]}))
        assert world.counts() == {
            2: {"UpdateMetadata": (5, 5)},
            3: {"UpdateMetadata": (5, 5), "LeaderAndIsr": (1, 1)},
        }

    def test_metadata_without_partitions_is_a_request(self, world: CountingWorld, cluster: ClusterState) -> None:
        """It tells who is registered."""
        _send(world, cluster, requests_of(cluster, metadata=([1, 3], [])))
        assert world.counts() == {1: {"UpdateMetadata": (1, 0)}, 3: {"UpdateMetadata": (1, 0)}}

    def test_empty_batch_sends_nothing(self, world: CountingWorld, cluster: ClusterState) -> None:
        """A batch for nobody is no request."""
        _send(world, cluster, requests_of(cluster))
        assert world.counts() == {}

    def test_only_connected_brokers_get_anything(self, world: CountingWorld, cluster: ClusterState) -> None:
        """Requests to others are dropped (``spec/wire.md`` section 4); the rest of the batch goes on."""
        batch = requests_of(cluster, leader_and_isr={9: ["t-1"], 1: ["t-0"], 2: ["t-0"]}, metadata=([9, 2], []),
                            stop_replica={9: {"t-2": (0, True)}})  # fmt: skip
        world.transport.disconnect(cluster, _indexes(cluster, 1))
        _send(world, cluster, batch)
        assert world.counts() == {2: {"LeaderAndIsr": (1, 1), "UpdateMetadata": (1, 0)}}
        world.transport.connect(cluster, _indexes(cluster, 1))
        _send(world, cluster, batch)
        assert world.counts()[1] == {"LeaderAndIsr": (1, 1)}

    def test_brokers_may_connect_and_go_in_any_number(self, world: CountingWorld, cluster: ClusterState) -> None:
        """Going twice, or coming twice, is no error."""
        for brokers in ((), (1,), (1, 2)):
            world.transport.disconnect(cluster, _indexes(cluster, *brokers))
        for brokers in ((), (2,), (2, 3)):
            world.transport.connect(cluster, _indexes(cluster, *brokers))
        _send(world, cluster, requests_of(cluster, metadata=([1, 2, 3, 4], [])))
        assert sorted(world.counts()) == [2, 3, 4]

    def test_closed_transport_has_no_connections(self, world: CountingWorld, cluster: ClusterState) -> None:
        """It may be opened again, and then starts with none."""
        world.transport.close()
        world.transport.open(lambda _event: None, lambda: True)
        _send(world, cluster, requests_of(cluster, metadata=([1, 2], [])))
        assert world.counts() == {}
        world.transport.connect(cluster, _indexes(cluster, 2))
        _send(world, cluster, requests_of(cluster, metadata=([1, 2], [])))
        assert world.counts() == {2: {"UpdateMetadata": (1, 0)}}

    def test_queues_are_those_of_connected_brokers(self, world: CountingWorld, cluster: ClusterState) -> None:
        """Or there are none. Once all is settled nothing waits, and every request has waited once."""
        _send(world, cluster, big_batch(cluster))
        queues = world.transport.queues()
        if queues:
            assert {broker: queue.times.count for broker, queue in queues.items()} == {1: 2, 2: 3, 3: 1, 4: 1}
            assert [queue.waiting for queue in queues.values()] == [0, 0, 0, 0]
            world.transport.disconnect(cluster, _indexes(cluster, 1))
            assert set(world.transport.queues()) == {2, 3, 4}
        world.transport.close()
        assert not world.transport.queues()

    def test_brokers_are_known_by_id_across_clusters(self, world: CountingWorld, cluster: ClusterState) -> None:
        """After a failover the same brokers may have other indexes."""
        later = cluster_of({"t": [healthy(3, 2)]}, registered=[3, 2])
        _send(world, cluster, requests_of(cluster, metadata=([2], ["t-0"])))
        _send(world, later, requests_of(later, leader_and_isr={2: ["t-0"]}, metadata=([3], ["t-0"])))
        assert world.counts() == {
            2: {"UpdateMetadata": (1, 1), "LeaderAndIsr": (1, 1)},
            3: {"UpdateMetadata": (1, 1)},
        }


class RecordingContract(CountingContract):
    """What the requests say, and in which order each broker gets them."""

    def test_leader_and_isr_says_what_the_columns_say(self, world: RecordingWorld, cluster: ClusterState) -> None:
        """A dead leader is named, but not among ``live_leaders``; a topic being deleted is told as it is."""
        names = ["t-0", "t-1", "t-2", "t-3", "gone-0"]
        batch = requests_of(cluster, leader_and_isr={3: names}, is_new=["t-1"], controller_epoch=8)
        _send(world, cluster, batch)
        (request,) = world.received()
        assert {key: value for key, value in request.items() if key != "partitions"} == {
            "broker": 3, "api": "LeaderAndIsr", "controller_epoch": 8, "live_leaders": [1, 2],
        }  # fmt: skip
        assert request["partitions"] == {
            "gone-0": told(2, 6, [2, 1], 8, [2, 1]),
            "t-0": told(1, 4, [1, 2, 3], 0, [1, 2, 3]),
            "t-1": told(2, 7, [4, 2], 3, [2, 9, 4], is_new=True, leader_recovery_state=1),
            "t-2": told(9, 0, [9], 0, [9, 3], adding_replicas=[9], removing_replicas=[3]),
            "t-3": told(-1, 2, [3], 5, [3]),
        }

    def test_is_new_is_told_to_each_broker_by_itself(self, world: RecordingWorld, cluster: ClusterState) -> None:
        """The flags stand beside the rows of each broker, not beside partitions."""
        batch = requests_of(cluster, leader_and_isr={1: ["t-0", "t-1"], 2: ["t-0", "t-1"]})
        batch.is_new[:] = [1, 0, 0, 1]
        _send(world, cluster, batch)
        told = {request["broker"]: request["partitions"] for request in world.received()}
        assert {broker: [told[broker][name]["is_new"] for name in ("t-0", "t-1")] for broker in told} == {
            1: [True, False],
            2: [False, True],
        }

    def test_update_metadata_says_who_is_offline_and_deleted(
        self, world: RecordingWorld, cluster: ClusterState
    ) -> None:
        """Offline: broker dead or shutting down, or log directory dead. Deleted: leader -2, both epochs 0."""
        batch = requests_of(cluster, metadata=([4, 1], ["t-0", "t-1", "t-2", "gone-0"]), controller_epoch=8)
        _send(world, cluster, batch)
        expected = {
            "gone-0": known(-2, 0, [2, 1], 0, [2, 1], []),
            "t-0": known(1, 4, [1, 2, 3], 0, [1, 2, 3], [3]),
            "t-1": known(2, 7, [4, 2], 3, [2, 9, 4], [9, 4]),
            "t-2": known(9, 0, [9], 0, [9, 3], [9]),
        }
        head = {"api": "UpdateMetadata", "controller_epoch": 8, "live_brokers": [1, 2, 3, 4], "partitions": expected}
        assert _by_broker(world) == {1: [{"broker": 1, **head}], 4: [{"broker": 4, **head}]}

    def test_stop_replica_says_epoch_and_deletion(self, world: RecordingWorld, cluster: ClusterState) -> None:
        """Each partition has a leader epoch and a delete flag of its own."""
        batch = requests_of(
            cluster, stop_replica={2: {"t-1": (7, False), "gone-0": (-2, True)}, 3: {"t-3": (-1, True)}}
        )
        _send(world, cluster, batch)
        assert _by_broker(world) == {
            2: [{"broker": 2, "api": "StopReplica", "controller_epoch": 1, "partitions": {
                "gone-0": {"leader_epoch": -2, "delete_partition": True},
                "t-1": {"leader_epoch": 7, "delete_partition": False}}}],
            3: [{"broker": 3, "api": "StopReplica", "controller_epoch": 1, "partitions": {
                "t-3": {"leader_epoch": -1, "delete_partition": True}}}],
        }  # fmt: skip

    def test_order_within_a_broker(self, world: RecordingWorld, cluster: ClusterState) -> None:
        """Batch after batch; within one LeaderAndIsr, UpdateMetadata, StopReplica."""
        for controller_epoch in (1, 2):
            _send(world, cluster, big_batch(cluster, controller_epoch))
        order = {
            broker: [(one["controller_epoch"], one["api"]) for one in got] for broker, got in _by_broker(world).items()
        }
        assert order[2] == [
            (controller_epoch, api)
            for controller_epoch in (1, 2)
            for api in ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
        ]

    def test_columns_have_been_read_when_send_returns(self, world: RecordingWorld, cluster: ClusterState) -> None:
        """The controller may change them at once; what is under way does not change with them."""
        world.transport.send(cluster, requests_of(cluster, leader_and_isr={1: ["t-0"]}, metadata=([1], ["t-0"])))
        rows = rows_of(cluster, ["t-0"])
        cluster.partitions.leader[rows] = -1
        cluster.partitions.leader_epoch[rows] = 99
        cluster.partitions.isr[:] = 0
        cluster.brokers.registered[:] = 0
        world.settle()
        to_lead, metadata = world.received()
        assert to_lead["live_leaders"] == [1]
        assert to_lead["partitions"] == {"t-0": told(1, 4, [1, 2, 3], 0, [1, 2, 3])}
        assert metadata["live_brokers"] == [1, 2, 3, 4]
        assert metadata["partitions"] == {"t-0": known(1, 4, [1, 2, 3], 0, [1, 2, 3], [3])}


class AnsweringContract(RecordingContract):
    """How answers come back."""

    def test_answers_are_told_in_the_order_of_the_requests(
        self, world: AnsweringWorld, cluster: ClusterState, heard: list[Event]
    ) -> None:
        """One event a request; for one broker in order."""
        for _ in range(3):
            _send(world, cluster, requests_of(cluster, leader_and_isr={1: ["t-0"], 2: ["t-0"]}, metadata=([1], [])))
        of_broker_1 = [event for event in heard if getattr(event, "broker_id", None) == 1]
        assert of_broker_1 == [led(1), UpdateMetadataAnswered(1, ErrorCode.NONE)] * 3
        assert [event for event in heard if event not in of_broker_1] == [led(2)] * 3
        assert [event.rows.tolist() for event in heard if isinstance(event, LeaderAndIsrAnswered)] == [[0]] * 6

    def test_answers_name_the_controller_epoch_of_the_request(
        self, world: AnsweringWorld, cluster: ClusterState, heard: list[Event]
    ) -> None:
        """Rows are those of the controller that has sent it, so a later one must know that they are not its own."""
        for controller_epoch in (1, 5):
            batch = requests_of(cluster, leader_and_isr={1: ["t-0"]}, controller_epoch=controller_epoch)
            _send(world, cluster, batch)
        assert heard == [led(1, controller_epoch=1), led(1, controller_epoch=5)]

    def test_answers_to_update_metadata_name_the_batch(
        self, world: AnsweringWorld, cluster: ClusterState, heard: list[Event]
    ) -> None:
        """The controller answers CreateTopics once brokers know the topic, and learns that from the batch."""
        assert isinstance(world.transport, Acknowledging)
        assert world.transport.acknowledges
        for batch in (7, 8):
            requests = requests_of(cluster, metadata=([1, 2], ["t-0"]), controller_epoch=3)
            _send(world, cluster, replace(requests, batch=batch))
        answers = [(one.broker_id, one.controller_epoch, one.batch) for one in heard
                   if isinstance(one, UpdateMetadataAnswered)]  # fmt: skip
        assert sorted(answers) == [(1, 3, 7), (1, 3, 8), (2, 3, 7), (2, 3, 8)]

    def test_only_deletions_of_stop_replica_are_answered(
        self, world: AnsweringWorld, cluster: ClusterState, heard: list[Event]
    ) -> None:
        """A replica that is merely stopped tells a controller nothing (``spec/controller.md`` 10.3)."""
        _send(world, cluster, requests_of(cluster, stop_replica={1: {"t-0": (0, False)}}))
        assert heard == []
        _send(world, cluster, requests_of(cluster, stop_replica={1: {"t-0": (0, False), "t-1": (-2, True)}}))
        (answer,) = heard
        assert isinstance(answer, StopReplicaAnswered)
        assert (answer.broker_id, answer.error, answer.partition_errors) == (1, ErrorCode.NONE, ())
        assert (answer.rows.tolist(), answer.controller_epoch) == ([1], 1)

    def test_nothing_leaves_while_the_controller_may_not_act(
        self, world: AnsweringWorld, cluster: ClusterState, heard: list[Event], role: Role
    ) -> None:
        """Requests wait or are dropped while the role is uncertain, and are dropped with the role."""
        role.held = False
        _send(world, cluster, big_batch(cluster))
        assert (world.counts(), heard) == ({}, [])
        world.transport.close()
        role.held = True
        world.transport.open(heard.append, lambda: role.held)
        world.transport.connect(cluster, _indexes(cluster, 1))
        _send(world, cluster, requests_of(cluster, metadata=([1], [])))
        assert world.counts() == {1: {"UpdateMetadata": (1, 0)}}

    def test_nothing_is_told_after_close(
        self, world: AnsweringWorld, cluster: ClusterState, heard: list[Event]
    ) -> None:
        """Not even of what was under way."""
        world.transport.close()
        world.settle()
        heard.clear()
        _send(world, cluster, requests_of(cluster, metadata=([1], [])))
        assert heard == []


def _indexes(cluster: ClusterState, *broker_ids: int) -> tuple[int, ...]:
    return tuple(cluster.brokers.index_of(broker_ids).tolist())


def _send(world: CountingWorld, cluster: ClusterState, batch: ControlRequests) -> None:
    world.transport.send(cluster, batch)
    world.settle()


def _by_broker(world: RecordingWorld) -> dict[int, list[Request]]:
    requests: dict[int, list[Request]] = {}
    for request in world.received():
        requests.setdefault(request["broker"], []).append(request)
    return requests
