"""Failures of brokers and controllers. Each function prepares the event and returns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from kframe.bench.clusters import RACKS
from kframe.bench.controller import TimedController
from kframe.bench.workload import Action
from kframe.model.texts import counted


def controller_failover(controller: TimedController, _partitions: int) -> Action:
    """A controller takes over."""
    controller.open()
    return controller.run_until_idle


def broker_failure(controller: TimedController, _partitions: int) -> Action:
    """The broker in the middle fails."""
    return _failing(controller, lambda brokers: [brokers // 2])


def several_brokers_failure(controller: TimedController, _partitions: int) -> Action:
    """A tenth of the brokers, at least two, fail at once: partitions without another replica go offline."""
    return _failing(controller, lambda brokers: range(brokers // 2, brokers // 2 + max(2, brokers // 10)))


def rack_failure(controller: TimedController, _partitions: int) -> Action:
    """All brokers of a rack fail at once."""
    return _failing(controller, lambda brokers: range(0, brokers, RACKS))


def expect_all_led(controller: TimedController, partitions: int) -> None:
    """Every partition has a live leader, and the controller knows all registered brokers."""
    _expect_registered_brokers(controller)
    controller.expect_led(partitions)


def expect_live_replicas_lead(controller: TimedController, partitions: int) -> None:
    """Every partition with a live replica has a live leader. All replicas were in sync before."""
    _expect_registered_brokers(controller)
    p = controller.cluster.partitions
    replicas = p.lists("replica", np.arange(partitions))
    controller.expect_led(int(np.count_nonzero(replicas.any(controller.cluster.brokers.live[replicas.values] != 0))))


def _expect_registered_brokers(controller: TimedController) -> None:
    registered = [registration.broker_id for registration in controller.ensemble.registrations()]
    known = controller.cluster.brokers.ids[controller.cluster.brokers.registered != 0]
    controller.expect(sorted(known.tolist()) == registered, counted(len(registered), "registered broker"))


def _failing(controller: TimedController, choose: Callable[[int], Iterable[int]]) -> Action:
    """``choose`` maps the number of brokers to the ids of those that fail."""
    controller.open()
    controller.run_until_idle()
    controller.ensemble.unregister_brokers(choose(len(controller.cluster.brokers)))
    return controller.run_until_idle
