"""The recording and the counting transport beyond the contract of transports."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.embedded import Api, CountingTransport, RecordingTransport
from kframe.model.cluster import ClusterState
from kframe.testing.clusters import cluster_of, healthy, requests_of
from kframe.testing.transport_fixture import Counts, counts_of

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
        (1, "LeaderAndIsr"),
        (1, "UpdateMetadata"),
        (1, "UpdateMetadata"),
        (2, "UpdateMetadata"),
        (3, "LeaderAndIsr"),
        (3, "UpdateMetadata"),
    ]
    assert transport.take() == []


def test_recorded_partitions_are_sorted_by_topic_and_number() -> None:
    """Partition 10 comes after partition 9. The rows do not matter."""
    cluster_state = cluster_of({"z": [healthy(1)] * 11, "a-b": [healthy(1)]}, registered=[1])
    transport = RecordingTransport()
    transport.connect(cluster_state, (0,))
    names = ["z-10", "z-9", "a-b-0", "z-0"]
    batch = requests_of(
        cluster_state,
        leader_and_isr={1: names},
        metadata=([1], names),
        stop_replica={1: dict.fromkeys(names, (0, True))},
    )
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
