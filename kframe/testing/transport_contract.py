"""The contract of transports, as tests for plugins.

::

    from kframe.testing.transport_contract import RespondingContract

    class TestMyTransport(RespondingContract):
        @pytest.fixture
        def make_fixture(self):
            return MyFixture          # a callable that takes a cluster and returns an RespondingFixture

``MyFixture(cluster)`` has a new transport, not opened, and brokers that receive its requests. It may replace the
endpoints of the cluster's registrations by those of its brokers. ``CountingContract`` is for transports that only count
requests, ``RecordingContract`` for brokers that record them, and ``RespondingContract`` for brokers that response.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kframe.embedded.describe import Request
from kframe.errors import ErrorCode
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.model.requests import ControlRequests
from kframe.ports.transport import Acknowledging, Transport
from kframe.testing.clusters import cluster_of, healthy, requests_of, rows_of
from kframe.testing.transport_batches import (
    big_batch,
    leader_and_isr_entry,
    leader_and_isr_response,
    metadata_entry,
    small_cluster,
)
from kframe.testing.transport_fixture import CountingFixture, RecordingFixture, RespondingFixture, SenderRole


class CountingContract:
    """Number of requests and partitions that each broker receives."""

    @pytest.fixture
    def make_fixture(self) -> Callable[[ClusterState], Any]:
        """Supplied by the tests of the plugin."""
        raise NotImplementedError("the subclass supplies the fixture make_fixture")

    @pytest.fixture
    def cluster(self) -> ClusterState:
        """The cluster of the controller."""
        return small_cluster()

    @pytest.fixture
    def notified(self) -> list[Event]:
        """The events of the transport."""
        return []

    @pytest.fixture
    def role(self) -> SenderRole:
        """The role of the controller that sends."""
        return SenderRole()

    @pytest.fixture
    def fixture(
        self,
        make_fixture: Callable[[ClusterState], Any],
        cluster: ClusterState,
        notified: list[Event],
        role: SenderRole,
    ) -> Any:
        """A fixture whose transport is open and connected to brokers 1 to 4."""
        fixture = make_fixture(cluster)
        fixture.transport.open(notified.append, lambda: role.owned)
        fixture.transport.connect(cluster, _indexes(cluster, 1, 2, 3, 4))
        return fixture

    def test_is_a_transport(self, fixture: CountingFixture) -> None:
        assert isinstance(fixture.transport, Transport)

    def test_each_broker_receives_its_part_of_the_batch(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        _send(fixture, cluster, big_batch(cluster))
        assert fixture.counts() == {
            1: {"LeaderAndIsr": (1, 1), "UpdateMetadata": (1, 3)},
            2: {"LeaderAndIsr": (1, 3), "UpdateMetadata": (1, 3), "StopReplica": (1, 1)},
            3: {"StopReplica": (1, 2)},
            4: {"UpdateMetadata": (1, 3)},
        }

    def test_batch_counts_are_added(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        for _ in range(5):
            fixture.transport.send(cluster, requests_of(cluster, metadata=([2, 3], ["t-1"])))
        _send(fixture, cluster, requests_of(cluster, leader_and_isr={3: ["t-0"]}))
        assert fixture.counts() == {
            2: {"UpdateMetadata": (5, 5)},
            3: {"UpdateMetadata": (5, 5), "LeaderAndIsr": (1, 1)},
        }

    def test_metadata_without_partitions_is_a_request(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        _send(fixture, cluster, requests_of(cluster, metadata=([1, 3], [])))
        assert fixture.counts() == {1: {"UpdateMetadata": (1, 0)}, 3: {"UpdateMetadata": (1, 0)}}

    def test_empty_batch_sends_nothing(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        _send(fixture, cluster, requests_of(cluster))
        assert fixture.counts() == {}

    def test_only_connected_brokers_receive_requests(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        batch = requests_of(
            cluster,
            leader_and_isr={9: ["t-1"], 1: ["t-0"], 2: ["t-0"]},
            metadata=([9, 2], []),
            stop_replica={9: {"t-2": (0, True)}},
        )
        fixture.transport.disconnect(cluster, _indexes(cluster, 1))
        _send(fixture, cluster, batch)
        assert fixture.counts() == {2: {"LeaderAndIsr": (1, 1), "UpdateMetadata": (1, 0)}}
        fixture.transport.connect(cluster, _indexes(cluster, 1))
        _send(fixture, cluster, batch)
        assert fixture.counts()[1] == {"LeaderAndIsr": (1, 1)}

    def test_brokers_may_connect_and_disconnect_repeatedly(
        self, fixture: CountingFixture, cluster: ClusterState
    ) -> None:
        for brokers in ((), (1,), (1, 2)):
            fixture.transport.disconnect(cluster, _indexes(cluster, *brokers))
        for brokers in ((), (2,), (2, 3)):
            fixture.transport.connect(cluster, _indexes(cluster, *brokers))
        _send(fixture, cluster, requests_of(cluster, metadata=([1, 2, 3, 4], [])))
        assert sorted(fixture.counts()) == [2, 3, 4]

    def test_closed_transport_has_no_connections(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        fixture.transport.close()
        fixture.transport.open(lambda _event: None, lambda: True)
        _send(fixture, cluster, requests_of(cluster, metadata=([1, 2], [])))
        assert fixture.counts() == {}
        fixture.transport.connect(cluster, _indexes(cluster, 2))
        _send(fixture, cluster, requests_of(cluster, metadata=([1, 2], [])))
        assert fixture.counts() == {2: {"UpdateMetadata": (1, 0)}}

    def test_queues_list_connected_brokers(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        _send(fixture, cluster, big_batch(cluster))
        queues = fixture.transport.queues()
        if queues:
            assert {broker: queue.times.count for broker, queue in queues.items()} == {1: 2, 2: 3, 3: 1, 4: 1}
            assert [queue.waiting for queue in queues.values()] == [0, 0, 0, 0]
            fixture.transport.disconnect(cluster, _indexes(cluster, 1))
            assert set(fixture.transport.queues()) == {2, 3, 4}
        fixture.transport.close()
        assert not fixture.transport.queues()

    def test_brokers_are_known_by_id_across_clusters(self, fixture: CountingFixture, cluster: ClusterState) -> None:
        later = cluster_of({"t": [healthy(3, 2)]}, registered=[3, 2])
        _send(fixture, cluster, requests_of(cluster, metadata=([2], ["t-0"])))
        _send(fixture, later, requests_of(later, leader_and_isr={2: ["t-0"]}, metadata=([3], ["t-0"])))
        assert fixture.counts() == {
            2: {"UpdateMetadata": (1, 1), "LeaderAndIsr": (1, 1)},
            3: {"UpdateMetadata": (1, 1)},
        }


class RecordingContract(CountingContract):
    """The content of requests, and their order for each broker."""

    def test_leader_and_isr_matches_partition_columns(self, fixture: RecordingFixture, cluster: ClusterState) -> None:
        names = ["t-0", "t-1", "t-2", "t-3", "gone-0"]
        batch = requests_of(cluster, leader_and_isr={3: names}, is_new=["t-1"], controller_epoch=8)
        _send(fixture, cluster, batch)
        (request,) = fixture.received()
        assert {key: value for key, value in request.items() if key != "partitions"} == {
            "broker": 3,
            "api": "LeaderAndIsr",
            "controller_epoch": 8,
            "live_leaders": [1, 2],
        }
        assert request["partitions"] == {
            "gone-0": leader_and_isr_entry(2, 6, [2, 1], 8, [2, 1]),
            "t-0": leader_and_isr_entry(1, 4, [1, 2, 3], 0, [1, 2, 3]),
            "t-1": leader_and_isr_entry(2, 7, [4, 2], 3, [2, 9, 4], is_new=True, leader_recovery_state=1),
            "t-2": leader_and_isr_entry(9, 0, [9], 0, [9, 3], adding_replicas=[9], removing_replicas=[3]),
            "t-3": leader_and_isr_entry(-1, 2, [3], 5, [3]),
        }

    def test_is_new_is_per_broker(self, fixture: RecordingFixture, cluster: ClusterState) -> None:
        batch = requests_of(cluster, leader_and_isr={1: ["t-0", "t-1"], 2: ["t-0", "t-1"]})
        batch.is_new[:] = [1, 0, 0, 1]
        _send(fixture, cluster, batch)
        entries = {request["broker"]: request["partitions"] for request in fixture.received()}
        assert {broker: [entries[broker][name]["is_new"] for name in ("t-0", "t-1")] for broker in entries} == {
            1: [True, False],
            2: [False, True],
        }

    def test_update_metadata_has_offline_replicas_and_deleted_partitions(
        self, fixture: RecordingFixture, cluster: ClusterState
    ) -> None:
        batch = requests_of(cluster, metadata=([4, 1], ["t-0", "t-1", "t-2", "gone-0"]), controller_epoch=8)
        _send(fixture, cluster, batch)
        expected = {
            "gone-0": metadata_entry(-2, 0, [2, 1], 0, [2, 1], []),
            "t-0": metadata_entry(1, 4, [1, 2, 3], 0, [1, 2, 3], [3]),
            "t-1": metadata_entry(2, 7, [4, 2], 3, [2, 9, 4], [9, 4]),
            "t-2": metadata_entry(9, 0, [9], 0, [9, 3], [9]),
        }
        head = {"api": "UpdateMetadata", "controller_epoch": 8, "live_brokers": [1, 2, 3, 4], "partitions": expected}
        assert _by_broker(fixture) == {1: [{"broker": 1, **head}], 4: [{"broker": 4, **head}]}

    def test_stop_replica_has_leader_epoch_and_delete_flag(
        self, fixture: RecordingFixture, cluster: ClusterState
    ) -> None:
        batch = requests_of(
            cluster, stop_replica={2: {"t-1": (7, False), "gone-0": (-2, True)}, 3: {"t-3": (-1, True)}}
        )
        _send(fixture, cluster, batch)
        assert _by_broker(fixture) == {
            2: [
                {
                    "broker": 2,
                    "api": "StopReplica",
                    "controller_epoch": 1,
                    "partitions": {
                        "gone-0": {"leader_epoch": -2, "delete_partition": True},
                        "t-1": {"leader_epoch": 7, "delete_partition": False},
                    },
                }
            ],
            3: [
                {
                    "broker": 3,
                    "api": "StopReplica",
                    "controller_epoch": 1,
                    "partitions": {"t-3": {"leader_epoch": -1, "delete_partition": True}},
                }
            ],
        }

    def test_order_within_a_broker(self, fixture: RecordingFixture, cluster: ClusterState) -> None:
        for controller_epoch in (1, 2):
            _send(fixture, cluster, big_batch(cluster, controller_epoch))
        order = {
            broker: [(request["controller_epoch"], request["api"]) for request in requests]
            for broker, requests in _by_broker(fixture).items()
        }
        assert order[2] == [
            (controller_epoch, api)
            for controller_epoch in (1, 2)
            for api in ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
        ]

    def test_send_reads_columns_before_it_returns(self, fixture: RecordingFixture, cluster: ClusterState) -> None:
        fixture.transport.send(cluster, requests_of(cluster, leader_and_isr={1: ["t-0"]}, metadata=([1], ["t-0"])))
        rows = rows_of(cluster, ["t-0"])
        cluster.partitions.leader[rows] = -1
        cluster.partitions.leader_epoch[rows] = 99
        cluster.partitions.isr[:] = 0
        cluster.brokers.registered[:] = 0
        fixture.settle()
        to_lead, metadata = fixture.received()
        assert to_lead["live_leaders"] == [1]
        assert to_lead["partitions"] == {"t-0": leader_and_isr_entry(1, 4, [1, 2, 3], 0, [1, 2, 3])}
        assert metadata["live_brokers"] == [1, 2, 3, 4]
        assert metadata["partitions"] == {"t-0": metadata_entry(1, 4, [1, 2, 3], 0, [1, 2, 3], [3])}


class RespondingContract(RecordingContract):
    """The responses of brokers as events."""

    def test_responses_arrive_in_the_order_of_the_requests(
        self, fixture: RespondingFixture, cluster: ClusterState, notified: list[Event]
    ) -> None:
        for _ in range(3):
            _send(fixture, cluster, requests_of(cluster, leader_and_isr={1: ["t-0"], 2: ["t-0"]}, metadata=([1], [])))
        of_broker_1 = [event for event in notified if getattr(event, "broker_id", None) == 1]
        assert of_broker_1 == [leader_and_isr_response(1), UpdateMetadataResponseReceived(1, ErrorCode.NONE)] * 3
        assert [event for event in notified if event not in of_broker_1] == [leader_and_isr_response(2)] * 3
        assert [event.rows.tolist() for event in notified if isinstance(event, LeaderAndIsrResponseReceived)] == [
            [0]
        ] * 6

    def test_responses_name_the_controller_epoch_of_the_request(
        self, fixture: RespondingFixture, cluster: ClusterState, notified: list[Event]
    ) -> None:
        for controller_epoch in (1, 5):
            batch = requests_of(cluster, leader_and_isr={1: ["t-0"]}, controller_epoch=controller_epoch)
            _send(fixture, cluster, batch)
        assert notified == [
            leader_and_isr_response(1, controller_epoch=1),
            leader_and_isr_response(1, controller_epoch=5),
        ]

    def test_responses_to_update_metadata_name_the_batch(
        self, fixture: RespondingFixture, cluster: ClusterState, notified: list[Event]
    ) -> None:
        assert isinstance(fixture.transport, Acknowledging)
        assert fixture.transport.acknowledges
        for batch in (7, 8):
            requests = requests_of(cluster, metadata=([1, 2], ["t-0"]), controller_epoch=3)
            _send(fixture, cluster, replace(requests, batch=batch))
        responses = [
            (event.broker_id, event.controller_epoch, event.batch)
            for event in notified
            if isinstance(event, UpdateMetadataResponseReceived)
        ]
        assert sorted(responses) == [(1, 3, 7), (1, 3, 8), (2, 3, 7), (2, 3, 8)]

    def test_only_deletions_of_stop_replica_get_a_response_event(
        self, fixture: RespondingFixture, cluster: ClusterState, notified: list[Event]
    ) -> None:
        _send(fixture, cluster, requests_of(cluster, stop_replica={1: {"t-0": (0, False)}}))
        assert notified == []
        _send(fixture, cluster, requests_of(cluster, stop_replica={1: {"t-0": (0, False), "t-1": (-2, True)}}))
        (response,) = notified
        assert isinstance(response, StopReplicaResponseReceived)
        assert (response.broker_id, response.error, response.partition_errors) == (1, ErrorCode.NONE, ())
        assert (response.rows.tolist(), response.controller_epoch) == ([1], 1)

    def test_no_request_is_sent_without_controller_role(
        self, fixture: RespondingFixture, cluster: ClusterState, notified: list[Event], role: SenderRole
    ) -> None:
        role.owned = False
        _send(fixture, cluster, big_batch(cluster))
        assert (fixture.counts(), notified) == ({}, [])
        fixture.transport.close()
        role.owned = True
        fixture.transport.open(notified.append, lambda: role.owned)
        fixture.transport.connect(cluster, _indexes(cluster, 1))
        _send(fixture, cluster, requests_of(cluster, metadata=([1], [])))
        assert fixture.counts() == {1: {"UpdateMetadata": (1, 0)}}

    def test_closed_transport_reports_nothing(
        self, fixture: RespondingFixture, cluster: ClusterState, notified: list[Event]
    ) -> None:
        fixture.transport.close()
        fixture.settle()
        notified.clear()
        _send(fixture, cluster, requests_of(cluster, metadata=([1], [])))
        assert notified == []


def _indexes(cluster: ClusterState, *broker_ids: int) -> tuple[int, ...]:
    return tuple(cluster.brokers.index_of(broker_ids).tolist())


def _send(fixture: CountingFixture, cluster: ClusterState, batch: ControlRequests) -> None:
    fixture.transport.send(cluster, batch)
    fixture.settle()


def _by_broker(fixture: RecordingFixture) -> dict[int, list[Request]]:
    requests: dict[int, list[Request]] = {}
    for request in fixture.received():
        requests.setdefault(request["broker"], []).append(request)
    return requests
