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


def _to_the_dead(simulation: Simulation) -> tuple[Trigger, Any]:
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


def _moved_unasked(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    return Trigger.TOPIC, topic(simulation, after=now | {0: now[0]._replace(replicas=(4, 2, 3))})


def _lost_partition(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    return Trigger.TOPIC, topic(simulation, after={0: now[0]})


def _grown_and_moved(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    grown = now | {0: now[0]._replace(replicas=(4, 2, 3)), 2: now[1]._replace(key=("t", 2))}
    simulation.watch.wanted[KEY].add((4, 2, 3))
    return Trigger.TOPIC, topic(simulation, after=grown)


def _original_stopped(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    after = now | {0: now[0]._replace(replicas=(4, 1, 2, 3), adding=(4,), removing=(1, 2, 3))}
    simulation.watch.reassignments.topic_written(topic(simulation, now, after))
    return Trigger.QUEUED, post(simulation, stop(simulation))


#: The invariant that must fail, and the function that breaks it.
BROKEN_REQUESTS: list[tuple[Callable[[Watch, Any], str | None], Callable[[Simulation], tuple[Trigger, Any]]]] = [
    (requests.leaders_that_shut_down_are_notified, _leader_that_shuts_down_not_notified),
    (requests.shutdown_names_what_is_led, lambda simulation: leaving(simulation, -1)),
    (requests.earlier_registrations_shut_nothing_down, lambda simulation: leaving(simulation, 0, KEY)),
    (requests.single_request_in_flight, _out_of_order),
    (requests.first_is_metadata, _roles_first),
    (requests.for_current_registration, _other_registration),
    (requests.death_before_birth, _birth_before_death),
    (requests.only_the_registered, _to_the_dead),
    (requests.only_leavers_are_deleted, _deletes_in_sync),
    (topics.deletion_was_confirmed, _deleted_unconfirmed),
    (topics.topic_id_is_constant, _another_id),
    (topics.requests_name_the_topic, _unknown_id),
    (topics.moves_were_asked_for, _moved_unasked),
    (requests.originals_wait_for_the_target, _original_stopped),
    (topics.partitions_stay, _lost_partition),
    (topics.expansion_moves_nothing, _grown_and_moved),
]
