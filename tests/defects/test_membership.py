"""Brokers register, fail and shut down in order: defects R19 to R25, R31."""

from __future__ import annotations

from dataclasses import replace

from kframe.core.operations.controlled_shutdown import ControlledShutdownResponse
from kframe.embedded import Api
from kframe.model.brokers import Endpoint
from kframe.model.events import BrokerModified, BrokersChanged, ControlledShutdownRequested
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.ports.store_requests import ReadBrokers
from kframe.testing.clusters import PartitionSpec, healthy, registration
from tests.core.driver import Driver, quiet, state_of
from tests.defects.controller_group import ControllerGroup


def shut_down(driver: Driver, broker_id: int) -> list[str]:
    """Send ControlledShutdown. Return the partitions that the broker still leads."""
    token = len(driver.replies) + 1
    response: ControlledShutdownResponse = driver.ask(ControlledShutdownRequested(broker_id, NO_BROKER_EPOCH, token))
    return [driver.cluster.name(row) for row in response.remaining.tolist()]


def test_r19_reregistered_broker_fails_and_starts() -> None:
    driver = quiet({"t": [healthy(2, 1, 3, leader_epoch=5)]}, (1, 2, 3))
    (epoch,) = driver.ensemble.bounce_brokers([2])
    driver.handle(BrokersChanged())
    assert state_of(driver.stored("t-0")) == (1, (1, 3), 6)
    assert driver.cluster.brokers.broker_epoch[driver.cluster.brokers.find(2)] == epoch
    to_it = [request for request in driver.requests(Api.UPDATE_METADATA) if request["broker"] == 2]
    assert "t-0" in to_it[-1]["partitions"]
    assert to_it[-1]["live_brokers"] == [1, 2, 3]
    assert 2 in driver.entries(Api.LEADER_AND_ISR, "t-0")


def test_r20_broker_that_unregisters_during_read_is_not_added() -> None:
    """The broker registers, and unregisters before the controller reads it."""
    driver = quiet({"t": [healthy(1, 2, 4)]}, (1, 2))
    driver.register_brokers(4)
    driver.before(ReadBrokers, lambda: driver.ensemble.unregister_brokers([4]))
    driver.handle(BrokersChanged())
    assert driver.cluster.brokers.registered_ids() == [1, 2]
    driver.handle(BrokersChanged())
    assert driver.cluster.brokers.registered_ids() == [1, 2]
    assert driver.requests(Api.UPDATE_METADATA) == []


def test_r20_new_and_failed_brokers_in_same_event() -> None:
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2, 3))
    driver.ensemble.unregister_brokers([3])
    driver.ensemble.register_brokers([registration(4)])
    driver.handle(BrokersChanged())
    assert driver.cluster.brokers.registered_ids() == [1, 2, 4]


def test_r21_queued_broker_changes_are_handled_together() -> None:
    cluster = ControllerGroup({"t": [healthy(1, 2)]}, (1, 2))
    cluster.wires[0].take()
    for broker_id in range(10, 60):
        cluster.ensemble.register_brokers([registration(broker_id)])
        cluster.loops[0].queue.put(BrokersChanged())
    assert cluster.loops[0].run_until_idle() == 1
    assert cluster.loops[0].controller.cluster.brokers.registered_ids() == [1, 2, *range(10, 60)]


def test_r22_changed_endpoints_of_any_broker_are_sent_to_all() -> None:
    cluster = ControllerGroup({"t": [healthy(1, 2)]}, (1, 2, 3, 4, 5))
    for broker_id in (1, 2, 3, 4, 5, 1):
        cluster.wires[0].take()
        port = 1 + cluster.loops[0].controller.cluster.brokers.registrations[0].endpoints[0].port  # type: ignore[union-attr]
        changed = replace(registration(broker_id), endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", port + broker_id),))
        cluster.ensemble.modify_broker(changed)
        cluster.run()
        recipients = [request["broker"] for request in cluster.wires[0].take() if request["api"] == Api.UPDATE_METADATA]
        assert recipients == [1, 2, 3, 4, 5]


def test_r22_changed_endpoint_is_sent_once() -> None:
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2))
    driver.ensemble.modify_broker(replace(registration(2), endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", 7),)))
    driver.handle(BrokerModified(2))
    driver.handle(BrokerModified(2))
    assert [request["broker"] for request in driver.requests(Api.UPDATE_METADATA)] == [1, 2]


def test_r23_restarted_broker_receives_all_replicas_in_first_request() -> None:
    """Broker 2 is dead. The partition that it led has no other in-sync replica."""
    driver = quiet({"t": [PartitionSpec((2, 1), None, (2,), leader_epoch=5), healthy(3, 1)]}, (3,))
    driver.start_brokers(1)
    first = next(request for request in driver.requests(Api.LEADER_AND_ISR) if request["broker"] == 1)
    assert sorted(first["partitions"]) == ["t-0", "t-1"]


def test_r24_leader_in_controlled_shutdown_is_sent_to_its_followers() -> None:
    """No other replica is in sync, so that broker 1 stays the leader. Broker 2 restarts in the meantime."""
    driver = quiet({"t": [PartitionSpec((1, 2), 1, (1,), leader_epoch=5), healthy(2, 1)]}, (1, 2))
    assert shut_down(driver, 1) == ["t-0"]
    assert driver.recipients(Api.STOP_REPLICA, "t-0") == []
    driver.forget()
    driver.bounce_brokers(2)
    requests = [
        request
        for request in driver.requests(Api.LEADER_AND_ISR)
        if request["broker"] == 2 and "t-0" in request["partitions"]
    ]
    assert [request["live_leaders"] for request in requests][-1] == [1]
    driver.ensemble.write_state("t", 0, isr=(1, 2))
    assert shut_down(driver, 1) == []
    assert driver.stored("t-0").leader == 2


def test_r24_broker_in_controlled_shutdown_is_not_elected() -> None:
    driver = quiet({"t": [healthy(1, 2, 3, leader_epoch=5)]}, (1, 2, 3))
    assert shut_down(driver, 2) == []
    driver.ensemble.write_state("t", 0, isr=(1, 2, 3))
    driver.fail_brokers(1)
    assert driver.stored("t-0").leader == 3


def test_r25_broker_in_controlled_shutdown_receives_new_leaders() -> None:
    driver = quiet({"t": [healthy(1, 2, 3, leader_epoch=5)]}, (1, 2, 3))
    assert shut_down(driver, 1) == []
    entry = driver.entries(Api.LEADER_AND_ISR, "t-0")[1]
    assert (entry["leader"], entry["leader_epoch"], entry["isr"]) == (2, 6, [2, 3])


def test_r31_failure_of_a_broker_without_replicas_is_sent_to_all() -> None:
    """With another partition offline, and without any topic."""
    for topics in ({"t": [PartitionSpec((9, 8), None, (9,))]}, {}):
        driver = quiet(topics, (1, 2, 3, 4))
        driver.fail_brokers(4)
        updates = [(request["broker"], request["live_brokers"]) for request in driver.requests(Api.UPDATE_METADATA)]
        assert updates == [(1, [1, 2, 3]), (2, [1, 2, 3]), (3, [1, 2, 3])]
