"""A snapshot and the controller context created from it are equal."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given

from kframe.model.arrays import Ragged
from kframe.model.ids import NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.snapshot import BrokerFacts, Health, PartitionFacts, Snapshot, Source, TopicFacts, generate, read_snapshot
from tests.snapshot.samples import example, facts
from tests.snapshot.strategies import snapshots


@given(snapshots(complete=True))
def test_cluster_round_trip_is_equal(snapshot: Snapshot) -> None:
    converted = Snapshot.from_cluster(snapshot.to_cluster())
    assert facts(converted) == facts(snapshot)
    assert converted.topics.names == snapshot.topics.names
    for name in ("topic_ids", "deleting"):
        assert np.array_equal(getattr(converted.topics, name), getattr(snapshot.topics, name))
    for index in range(len(snapshot.topics)):
        assert converted.topics.unclean(index) == snapshot.topics.unclean(index)
        assert converted.topics.min_insync(index) == snapshot.topics.min_insync(index)
    originals = {facts_.broker_id: facts_ for facts_ in snapshot.brokers}
    for facts_ in converted.brokers:
        original = originals[facts_.broker_id]
        assert facts_.registered == bool(original.registered)
        if original.broker_epoch is not None:
            assert (facts_.broker_epoch, facts_.endpoints, facts_.rack) == (
                original.broker_epoch,
                original.endpoints or (),
                original.rack,
            )


@given(snapshots())
def test_every_snapshot_converts_to_cluster(snapshot: Snapshot) -> None:
    cluster = snapshot.to_cluster()
    assert len(cluster) == len(snapshot)
    rows = facts(snapshot)
    for view in cluster:
        row = rows[f"{view.topic}-{view.partition}"]
        assert list(view.replicas) == row["replicas"]
        assert list(view.isr) == (row["isr"] or [])
        assert (view.partition_epoch == NO_STATE) == (row["leader"] is None or row["partition_epoch"] == NO_STATE)


def test_partition_view_of_real_cluster() -> None:
    view = read_snapshot(example("broker-4-dead", "zookeeper")).to_cluster()["clickstream.events.v1", 17]
    assert (view.replicas, view.adding_replicas, view.removing_replicas) == ((2, 1, 3, 6, 4, 5), (2, 1, 3), (6, 4, 5))
    assert (view.leader, view.isr) == (6, (6, 5))
    # The controller initializes partition and replica states when it starts.
    assert view.state is PartitionState.NON_EXISTENT
    assert set(view.replica_states) == {ReplicaState.NON_EXISTENT}


def test_indexes_ascend_by_id_and_name() -> None:
    cluster = read_snapshot(example("healthy", "zookeeper")).to_cluster()
    assert cluster.brokers.ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert cluster.topics.names == sorted(cluster.topics.names)
    assert cluster.partitions.in_topic_order


@pytest.mark.parametrize("registered", [False, None])
def test_unregistered_broker_keeps_its_last_registration(registered: bool | None) -> None:
    brokers = (BrokerFacts(1, True, 5), BrokerFacts(2, registered, 9, (), "r"))
    topics = TopicFacts((), np.empty(0, np.int32))
    cluster = Snapshot(brokers, topics, PartitionFacts(Ragged.empty(0)), Source("test", "")).to_cluster()
    assert cluster.brokers.registered_ids() == [1]
    assert cluster.brokers.broker_epoch.tolist() == [5, 9]
    assert Snapshot.from_cluster(cluster).brokers[1] == BrokerFacts(2, False, 9, (), "r")


def test_snapshot_has_rows_added_by_controller() -> None:
    cluster = generate(4, 4, partitions_per_topic=2).to_cluster()
    cluster.add_topics(["a-new-one"], np.array([1]), Ragged.of([[2, 1]]))
    cluster.topics.drop(np.array([0], np.int32))
    cluster.partitions.topic[:2] = -1
    cluster.flag_replicas(3, np.array([1]), ReplicaFlag.REMOVING)
    rows = facts(Snapshot.from_cluster(cluster))
    assert list(rows) == ["a-new-one-0", "topic-00001-0", "topic-00001-1"]
    assert (rows["a-new-one-0"]["partition_epoch"], rows["a-new-one-0"]["isr"]) == (NO_STATE, [])
    assert rows["topic-00001-1"]["removing_replicas"] == [1]


def test_row_without_state_has_no_leader_or_isr() -> None:
    cluster = generate(2, 3, partitions_per_topic=2).to_cluster()
    cluster.partitions.partition_epoch[1] = NO_STATE
    row = facts(Snapshot.from_cluster(cluster))["topic-00000-1"]
    assert (row["leader"], row["leader_epoch"], row["controller_epoch"], row["isr"]) == (-1, -1, -1, [])


def test_cluster_does_not_share_snapshot_memory() -> None:
    snapshot = generate(20, 5, health=Health(under_replicated=0.5))
    before = snapshot.digest()
    partitions = snapshot.to_cluster().partitions
    for column in (partitions.leader, partitions.isr, partitions.replica, partitions.leader_epoch):
        column[:] = 0
    assert snapshot.digest() == before


def test_caller_sets_cluster_identity() -> None:
    snapshot = Snapshot.from_cluster(generate(2, 3).to_cluster(), cluster_id="c", controller_id=1, controller_epoch=9)
    assert (snapshot.cluster_id, snapshot.controller_id, snapshot.controller_epoch) == ("c", 1, 9)


@pytest.mark.parametrize(
    "changed, sentence",
    [
        ({"leader_epoch": None}, "partitions.leader_epoch unknown (why): taken as 0"),
        ({"partition_epoch": None}, "partitions.partition_epoch unknown: taken as 0"),
        ({"adding_replicas": None}, "partitions.adding_replicas unknown: nothing is being reassigned"),
        ({"leader": None, "isr": None}, "partitions.leader unknown: partitions have no leadership state yet"),
    ],
)
def test_assumptions_are_listed(changed: dict[str, None], sentence: str) -> None:
    base = generate(2, 3)
    partitions = dataclasses.replace(base.partitions, **changed)  # type: ignore[arg-type]
    snapshot = dataclasses.replace(base, partitions=partitions, provenance={"partitions.leader_epoch": "why"})
    assert any(assumption.startswith(sentence) for assumption in snapshot.assumptions), snapshot.assumptions
