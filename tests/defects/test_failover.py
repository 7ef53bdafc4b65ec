"""Failover: defects R04, R09 to R12, X6, X10."""

from __future__ import annotations

from kframe.embedded import Api
from kframe.model.events import Reelect
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadPreferredElection
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import elected, standby, state_of
from tests.defects.controller_group import ControllerGroup, entries


def test_r04_next_controller_sends_stored_leader_epoch_to_all_replicas() -> None:
    """The first controller fails after its write and before its requests to brokers."""
    fixture = ControllerGroup({"t": [healthy(1, 2, 3, leader_epoch=5)]}, controllers=2)
    fixture.ensemble.unregister_brokers([3])
    fixture.wires[0].send = lambda cluster, requests: None  # type: ignore[method-assign]
    fixture.run(0)
    fixture.ensemble.drop_controller()
    fixture.run(1)
    received = entries(fixture.wires[1].take(), Api.LEADER_AND_ISR, "t-0")
    assert state_of(fixture.stored("t-0")) == (1, (1, 2), 6)
    assert {broker: (entry["leader_epoch"], entry["isr"]) for broker, entry in received} == {
        1: (6, [1, 2]),
        2: (6, [1, 2]),
    }


def test_r04_isr_shrink_is_sent_to_all_live_replicas() -> None:
    driver = elected({"t": [healthy(1, 2, 3, leader_epoch=5)]}, (1, 2, 3))
    driver.forget()
    driver.fail_brokers(3)
    assert {broker: entry["leader_epoch"] for broker, entry in driver.entries(Api.LEADER_AND_ISR, "t-0").items()} == {
        1: 6,
        2: 6,
    }


def test_r09_stored_requests_start_once_at_failover_and_are_removed() -> None:
    """A preferred election, a reassignment and a deletion."""
    topics = {
        "a": [PartitionSpec((1, 2), 2, (2, 1), leader_epoch=3)],
        "b": [healthy(1, 2)],
        "c": [healthy(1, 2)],
    }
    driver = standby(topics, (1, 2, 3))
    driver.ensemble.request_preferred_election([("a", 0)])
    driver.ensemble.request_reassignments(Targets.of([(("b", 0), (3, 2))]))
    driver.ensemble.mark_for_deletion(["c"])
    driver.handle(Reelect())
    driver.follow()
    assert state_of(driver.stored("a-0")) == (1, (2, 1), 4)
    assert driver.stored("b-0").adding_replicas == (3,)
    assert bool(driver.cluster.topics.deleting[driver.cluster.topics.find("c")])
    assert driver.store.perform(ReadPreferredElection()) is None


def test_r10_failover_elects_leader_after_leader_and_controller_fail() -> None:
    """Two leader epochs later, as in Kafka: first the replica leaves the ISR, then another leader is elected."""
    driver = elected({"t": [PartitionSpec((1, 2), 1, (1, 2), leader_epoch=5)]}, (2, 3))
    assert state_of(driver.stored("t-0")) == (2, (2,), 7)


def test_r11_failover_removes_failed_broker_from_isrs() -> None:
    driver = elected({"t": [healthy(1, 2, 3, leader_epoch=5)]}, (1, 2))
    assert state_of(driver.stored("t-0")) == (1, (1, 2), 6)
    assert {entry["offline_replicas"][0] for entry in driver.entries(Api.UPDATE_METADATA, "t-0").values()} == {3}


def test_r12_first_request_of_failover_is_update_metadata_with_live_brokers() -> None:
    driver = elected({"t": [healthy(1, 2, 3), healthy(3, 2)]}, (1, 2, 3))
    requests = [request for batch in driver.batches for request in batch]
    for broker in (1, 2, 3):
        first = next(request for request in requests if request["broker"] == broker)
        assert (first["api"], first["live_brokers"]) == (Api.UPDATE_METADATA, [1, 2, 3])


def test_r23_first_leader_and_isr_contains_all_replicas_of_broker() -> None:
    """Broker 3 is dead. The partition that it led has no other in-sync replica."""
    topics = {"t": [PartitionSpec((3, 1), 3, (3,)), healthy(1, 2)]}
    driver = elected(topics, (1, 2))
    first = next(request for request in driver.requests(Api.LEADER_AND_ISR) if request["broker"] == 1)
    assert sorted(first["partitions"]) == ["t-0", "t-1"]


def test_x06_failover_completes_with_empty_assignment() -> None:
    driver = elected({"t": [PartitionSpec((), 1, (1,)), healthy(1, 2)], "u": [PartitionSpec((1, 2), 1, (1, 2))]}, (2,))
    assert driver.controller.active
    assert driver.stored("u-0").leader == 2


def test_x10_failover_completes_preferred_election_of_leaderless_partition() -> None:
    driver = standby({"t": [PartitionSpec((9,)), PartitionSpec((1, 2), 2, (1, 2))]}, (1, 2))
    driver.ensemble.request_preferred_election([("t", 0), ("t", 1)])
    driver.handle(Reelect())
    assert driver.controller.active
    assert driver.store.perform(ReadPreferredElection()) is None
    assert driver.stored("t-1").leader == 1
    assert driver.controller.failures == 0
