"""Simulations at rest whose requests or topics break an invariant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.events import ControlledShutdownRequested
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import LeaderAndIsr
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.invariants import requests, topics
from kframe_simulator.simulation.observations import Connected, Leaving, Trigger
from kframe_simulator.simulation.watch import Watch
from kframe_simulator.testing.at_rest import KEY, ended, metadata, post, stop, topic


def _leader_that_shuts_down_not_notified(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.EVENT, ended(simulation, ControlledShutdownRequested(1, -1), unsent=((KEY, 1),))


def leaving(simulation: Simulation, broker_epoch: int, *remaining: tuple[str, int]) -> tuple[Trigger, Leaving]:
    """The controller answers the controlled shutdown of broker 1 with the partitions that it still leads."""
    response = ControlledShutdownResponseData(ErrorCode.NONE, remaining)
    return Trigger.LEAVING, Leaving(simulation.controllers[0], ControlledShutdown(1, broker_epoch), response)


def _out_of_order(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.SENT, post(simulation, metadata(simulation))


def _roles_first(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.watch.started.clear()
    return Trigger.QUEUED, post(simulation, LeaderAndIsr(1000, 1, 1, {}))


def _other_registration(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.SENT, post(simulation, metadata(simulation, broker_epoch=3))


def _birth_before_death(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.CONNECTED, Connected(simulation.controllers[0], 1, 14)


def _sends_to_dead_broker(simulation: Simulation) -> tuple[Trigger, Any]:
    brokers = simulation.controllers[0].loop.controller.cluster.brokers
    brokers.unregister(np.array([brokers.find(1)], np.int32))
    return Trigger.QUEUED, post(simulation, metadata(simulation))


def _deletes_in_sync(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.QUEUED, post(simulation, stop(simulation))


def _deleted_unconfirmed(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.TOPIC, topic(simulation, after={})


def _another_id(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.TOPIC, topic(simulation, topic_id=b"x" * 16)


def _unknown_id(simulation: Simulation) -> tuple[Trigger, Any]:
    message = LeaderAndIsr(1000, 1, 1, {}, {"t": b"x" * 16})
    return Trigger.QUEUED, post(simulation, message)


def _unrequested_reassignment(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    return Trigger.TOPIC, topic(simulation, after=now | {0: now[0]._replace(replicas=(4, 2, 3))})


def _lost_partition(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    return Trigger.TOPIC, topic(simulation, after={0: now[0]})


def _added_partitions_with_reassignment(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    grown = now | {0: now[0]._replace(replicas=(4, 2, 3)), 2: now[1]._replace(key=("t", 2))}
    simulation.watch.requested_targets[KEY].add((4, 2, 3))
    return Trigger.TOPIC, topic(simulation, after=grown)


def _original_stopped(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    after = now | {0: now[0]._replace(replicas=(4, 1, 2, 3), adding=(4,), removing=(1, 2, 3))}
    simulation.watch.reassignments.topic_written(topic(simulation, now, after))
    return Trigger.QUEUED, post(simulation, stop(simulation))


#: The invariant that must fail, and the function that breaks it.
VIOLATIONS_OF_REQUESTS: list[tuple[Callable[[Watch, Any], str | None], Callable[[Simulation], tuple[Trigger, Any]]]] = [
    (requests.leaders_that_shut_down_are_notified, _leader_that_shuts_down_not_notified),
    (requests.shutdown_response_lists_led_partitions, lambda simulation: leaving(simulation, -1)),
    (requests.stale_shutdown_is_refused, lambda simulation: leaving(simulation, 0, KEY)),
    (requests.single_request_in_flight, _out_of_order),
    (requests.first_request_is_update_metadata, _roles_first),
    (requests.for_current_registration, _other_registration),
    (requests.failure_precedes_startup, _birth_before_death),
    (requests.requests_go_to_registered_brokers, _sends_to_dead_broker),
    (requests.deletions_keep_target_and_isr, _deletes_in_sync),
    (topics.deletion_was_confirmed, _deleted_unconfirmed),
    (topics.topic_id_is_constant, _another_id),
    (topics.requests_name_the_topic, _unknown_id),
    (topics.reassignments_were_requested, _unrequested_reassignment),
    (requests.original_replicas_wait_for_target, _original_stopped),
    (topics.partitions_stay, _lost_partition),
    (topics.added_partitions_keep_replicas, _added_partitions_with_reassignment),
]
