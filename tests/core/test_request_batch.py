"""Batches by broker: Kafka's ControllerBrokerRequestBatch, rule by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.core.request_batch import RequestBatch
from kframe.embedded import Api, Request
from kframe.embedded.describe import describe_requests
from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.ids import EPOCH_DURING_DELETE, NO_EPOCH, NO_LEADER
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy


def three_topics() -> ClusterState:
    """Brokers 1, 2 and 3 are registered; broker 4 is not. Topic ``a`` has two partitions with a leader, ``b`` has one.
    The partition of ``c`` has no state."""
    stated = healthy(1, 2, leader_epoch=5)
    return cluster_of({"a": [stated, stated], "b": [stated], "c": [PartitionSpec((1, 4))]}, (1, 2, 3))


def grown() -> ClusterState:
    """The same cluster with a third partition of ``a``, appended as row 4."""
    cluster = three_topics()
    p = cluster.partitions
    values: dict[str, NDArray[Any]] = {"leader": np.zeros(1, np.int32), "partition_epoch": np.zeros(1, np.int32)}
    (row,) = p.append(np.zeros(1, np.int32), np.full(1, 2, np.int32), Ragged.of([[0, 1]]), Ragged.of([[0, 1]]), values)
    cluster.topics.note_rows(0, 2, int(row), 1)
    assert not p.in_topic_order
    return cluster


def row_array(*numbers: int) -> Int32:
    return np.array(numbers, np.int32)


def brokers(cluster: ClusterState, *broker_ids: int) -> Int32:
    return cluster.brokers.index_of(broker_ids)


def close(batch: RequestBatch) -> ControlRequests:
    return batch.close(1000, 7)


def table(cluster: ClusterState, rows: BrokerRows) -> dict[int, list[str]]:
    """Return the partition names by broker id. They are in order."""
    return {
        int(cluster.brokers.ids[broker]): [cluster.name(row) for row in rows.rows[part].tolist()]
        for broker, part in rows.slices()
    }


def requests_to(cluster: ClusterState, requests: ControlRequests, api: Api) -> list[Request]:
    return [request for request in describe_requests(cluster, requests) if request["api"] == api]


def test_is_new_stays_set() -> None:
    cluster = three_topics()
    for order in ((True, False), (False, True)):
        batch = RequestBatch(cluster)
        for is_new in order:
            batch.add_leader_and_isr(brokers(cluster, 1, 2), row_array(0, 0), row_array(0), is_new)
        batch.add_leader_and_isr(brokers(cluster, 1), row_array(1), row_array(1), is_new=False)
        requests = close(batch)
        assert table(cluster, requests.leader_and_isr) == {1: ["a-0", "a-1"], 2: ["a-0"]}
        assert requests.is_new.tolist() == [1, 0, 1]


def test_delete_stays_set_and_last_leader_epoch_is_used() -> None:
    cluster = three_topics()
    for order in ((True, False), (False, True)):
        batch = RequestBatch(cluster)
        cluster.partitions.leader_epoch[0] = 5
        batch.add_stop_replica(brokers(cluster, 2), row_array(0), order[0])
        cluster.partitions.leader_epoch[0] = 6
        batch.add_stop_replica(brokers(cluster, 2, 2), row_array(0, 1), order[1])
        requests = close(batch)
        assert table(cluster, requests.stop_replica) == {2: ["a-0", "a-1"]}
        assert requests.stop_delete.tolist() == [1, order[1]]
        assert requests.stop_leader_epoch.tolist() == [6, 5]


def test_stop_replica_has_current_leader_epoch() -> None:
    cluster = three_topics()
    cluster.topics.deleting[1] = 1
    batch = RequestBatch(cluster)
    batch.add_stop_replica(brokers(cluster, 1, 1, 1), row_array(0, 2, 3), delete=False)
    assert close(batch).stop_leader_epoch.tolist() == [5, EPOCH_DURING_DELETE, NO_EPOCH]


def test_only_registered_brokers_receive_requests() -> None:
    cluster = three_topics()
    batch = RequestBatch(cluster)
    batch.add_leader_and_isr(brokers(cluster, 4, 1), row_array(0, 0), row_array(0), is_new=True)
    batch.add_stop_replica(brokers(cluster, 4, 2), row_array(1, 1), delete=False)
    batch.add_metadata(brokers(cluster, 4, 3), row_array(2))
    cluster.brokers.unregister(brokers(cluster, 1))
    requests = close(batch)
    assert table(cluster, requests.leader_and_isr) == {}
    assert (len(requests.is_new), requests.leader_and_isr.offsets.tolist()) == (0, [0])
    assert table(cluster, requests.stop_replica) == {2: ["a-1"]}
    assert requests.stop_leader_epoch.tolist() == [5]
    assert cluster.brokers.ids_of(requests.metadata_brokers) == [2, 3]


def test_columns_are_read_when_batch_is_sent() -> None:
    cluster = three_topics()
    batch = RequestBatch(cluster)
    batch.add_leader_and_isr(brokers(cluster, 1), row_array(0), row_array(0), is_new=False)
    cluster.partitions.leader[0] = NO_LEADER
    (request,) = requests_to(cluster, close(batch), Api.LEADER_AND_ISR)
    assert request["partitions"]["a-0"]["leader"] == NO_LEADER


def test_rows_are_in_topic_order_after_append() -> None:
    cluster = grown()
    batch = RequestBatch(cluster)
    batch.add_leader_and_isr(brokers(cluster, 1, 1, 1), row_array(0, 2, 4), row_array(0, 2, 4), is_new=False)
    batch.add_stop_replica(brokers(cluster, 2, 2), row_array(2, 4), delete=False)
    requests = close(batch)
    assert table(cluster, requests.leader_and_isr) == {1: ["a-0", "a-2", "b-0"]}
    assert table(cluster, requests.stop_replica) == {2: ["a-2", "b-0"]}
    assert [cluster.name(row) for row in requests.metadata_rows.tolist()] == ["a-0", "a-2", "b-0"]
    assert requests.metadata_rows.tolist() == [0, 4, 2]
