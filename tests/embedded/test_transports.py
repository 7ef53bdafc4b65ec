"""The recording and the counting transport beyond the contract of transports."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.embedded import Api, CountingTransport, RecordingTransport
from kframe.embedded.describe import describe_partition
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration, requests_of
from kframe.testing.transport_contract import Counts, counts_of

NAMES = ("t-0", "t-1", "u-0")


def cluster() -> ClusterState:
    return cluster_of({"t": [healthy(1, 2), healthy(2, 3)], "u": [healthy(3, 1)]}, registered=[1, 2, 3])


def counted(transport: CountingTransport) -> Counts:
    counts: Counts = {}
    for api in Api:
        sent = transport.sent(api)
        for broker_id, requests, partitions in zip(sent.broker_ids, sent.requests, sent.partitions, strict=True):
            if requests:
                counts.setdefault(int(broker_id), {})[api.value] = int(requests), int(partitions)
    return counts


def test_partition_without_a_state_is_described_with_nulls() -> None:
    described = describe_partition(
        cluster_of({"t": [PartitionSpec((2, 1), removing_replicas=(1,))]}, registered=[1]).view(0)
    )
    assert described == {
        "replicas": [2, 1], "adding_replicas": [], "removing_replicas": [1], "leader": None, "isr": None,
        "leader_epoch": None, "controller_epoch": None, "leader_recovery_state": None, "partition_epoch": None,
    }  # fmt: skip


def test_take_returns_requests_once_by_broker_in_order() -> None:
    transport, cluster_state = RecordingTransport(), cluster()
    transport.connect(cluster_state, (0, 1, 2))
    transport.send(
        cluster_state,
        requests_of(cluster_state, leader_and_isr={3: ["u-0"], 1: ["t-0"]}, metadata=([3, 1, 2], ["t-0"])),
    )
    transport.send(cluster_state, requests_of(cluster_state, metadata=([1], [])))
    sent = [(request["broker"], request["api"]) for request in transport.take()]
    assert sent == [
        (1, "LeaderAndIsr"), (1, "UpdateMetadata"), (1, "UpdateMetadata"),
        (2, "UpdateMetadata"), (3, "LeaderAndIsr"), (3, "UpdateMetadata"),
    ]  # fmt: skip
    assert transport.take() == []


def test_brokers_are_sorted_by_id() -> None:
    cluster_state = cluster_of({"t": [healthy(9), healthy(1), healthy(5)]}, registered=[9])
    cluster_state.brokers.register([registration(5), registration(1)])
    assert cluster_state.brokers.ids.tolist() == [9, 1, 5]
    transport = RecordingTransport()
    transport.connect(cluster_state, (0,))
    transport.send(
        cluster_state, requests_of(cluster_state, leader_and_isr={9: ["t-0", "t-1", "t-2"]}, metadata=([9], []))
    )
    to_lead, metadata = transport.take()
    assert (to_lead["live_leaders"], metadata["live_brokers"]) == ([1, 5, 9], [1, 5, 9])


def test_recorded_partitions_are_sorted_by_topic_and_number() -> None:
    """Partition 10 comes after partition 9. The rows do not matter."""
    cluster_state = cluster_of({"z": [healthy(1)] * 11, "a-b": [healthy(1)]}, registered=[1])
    transport = RecordingTransport()
    transport.connect(cluster_state, (0,))
    names = ["z-10", "z-9", "a-b-0", "z-0"]
    batch = requests_of(cluster_state, leader_and_isr={1: names}, metadata=([1], names),
                        stop_replica={1: dict.fromkeys(names, (0, True))})  # fmt: skip
    transport.send(cluster_state, batch)
    sent = json.loads(json.dumps(transport.take()))
    assert [list(request["partitions"]) for request in sent] == [["a-b-0", "z-0", "z-9", "z-10"]] * 3


@pytest.mark.parametrize("transport", [RecordingTransport(), CountingTransport()], ids=["recording", "counting"])
def test_dropped_request_is_warned_about(
    transport: RecordingTransport | CountingTransport, caplog: pytest.LogCaptureFixture
) -> None:
    cluster_state = cluster()
    transport.connect(cluster_state, (0,))
    with caplog.at_level(logging.WARNING):
        transport.send(cluster_state, requests_of(cluster_state, metadata=([1, 2], [])))
    assert ["UpdateMetadata" in record.getMessage() for record in caplog.records] == [True]


BATCHES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([1, 2, 3]), st.lists(st.sampled_from(NAMES), unique=True, min_size=1)),
        st.lists(st.sampled_from([1, 2, 3]), unique=True),
        st.lists(st.sampled_from(NAMES), unique=True),
        st.dictionaries(
            st.sampled_from([1, 2, 3]), st.dictionaries(st.sampled_from(NAMES), st.just((0, True)), min_size=1)
        ),
    ),
    max_size=5,
)


@given(BATCHES, st.sets(st.sampled_from([0, 1, 2])))
def test_counting_and_recording_transports_agree(
    batches: list[tuple[dict[int, list[str]], list[int], list[str], dict[int, dict[str, tuple[int, bool]]]]],
    connected: set[int],
) -> None:
    cluster_state, recording, counting = cluster(), RecordingTransport(), CountingTransport()
    for transport in (recording, counting):
        transport.connect(cluster_state, tuple(connected))
        for to_lead, brokers, names, to_stop in batches:
            batch = requests_of(cluster_state, leader_and_isr=to_lead, metadata=(brokers, names), stop_replica=to_stop)
            transport.send(cluster_state, batch)
    assert counted(counting) == counts_of(recording.take())


def test_counts_are_int64() -> None:
    """A hundred brokers receive requests for a million partitions a thousand times."""
    cluster_state = ClusterState()
    brokers = cluster_state.brokers.index_of(range(100))
    rows = np.zeros(1_000_000, np.int32)
    cluster_state.add_topics(["t"], np.array([1]), Ragged.of([[0]]))
    offsets = np.arange(0, 1_000_001, 10_000, dtype=np.int32)
    batch = ControlRequests(
        controller_id=0, controller_epoch=1, leader_and_isr=BrokerRows(brokers, offsets, rows),
        is_new=np.zeros(1_000_000, np.uint8), metadata_brokers=brokers, metadata_rows=rows,
        stop_replica=BrokerRows.none(), stop_leader_epoch=np.empty(0, np.int32), stop_delete=np.empty(0, np.uint8),
    )  # fmt: skip
    transport = CountingTransport()
    transport.connect(cluster_state, tuple(range(100)))
    for _ in range(3_000):
        transport.send(cluster_state, batch)
    assert transport.sent(Api.UPDATE_METADATA).partitions.tolist() == [3_000_000_000] * 100
    assert transport.sent(Api.LEADER_AND_ISR).partitions.tolist() == [30_000_000] * 100
    assert transport.sent(Api.LEADER_AND_ISR).requests.tolist() == [3_000] * 100
    transport.reset()
    assert not transport.sent(Api.UPDATE_METADATA).requests.any()
