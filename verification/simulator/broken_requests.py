"""Simulations at rest whose requests or topics break an invariant."""

from __future__ import annotations

from typing import Any

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.events import ControlledShutdownRequested
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import LeaderAndIsr
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.invariants import requests, topics
from kframe_simulator.simulation.observations import ChannelOpened, ControlledShutdownCompleted
from verification.simulator.at_rest import KEY, ViolationCase, assigned, ended, metadata, queued, sent, stop, topic


def shutdown(simulation: Simulation, broker_epoch: int, *remaining: tuple[str, int]) -> ControlledShutdownCompleted:
    """The controller responds to the controlled shutdown of broker 1 with the partitions that it still leads."""
    response = ControlledShutdownResponseData(ErrorCode.NONE, remaining)
    return ControlledShutdownCompleted(simulation.controllers[0], ControlledShutdown(1, broker_epoch), response)


def _roles_first(simulation: Simulation) -> Any:
    simulation.watch.started.clear()
    return queued(simulation, LeaderAndIsr(1000, 1, 1, {}))


def _sends_to_dead_broker(simulation: Simulation) -> Any:
    brokers = simulation.controllers[0].loop.controller.cluster.brokers
    brokers.unregister(np.array([brokers.find(1)], np.int32))
    return queued(simulation, metadata(simulation))


def _added_partitions_with_reassignment(simulation: Simulation) -> Any:
    now = simulation.ensemble.topic_partitions("t")
    grown = now | {0: now[0]._replace(replicas=(4, 2, 3)), 2: now[1]._replace(key=("t", 2))}
    simulation.watch.requested_targets[KEY].add((4, 2, 3))
    return topic(simulation, after=grown)


def _original_stopped(simulation: Simulation) -> Any:
    now = simulation.ensemble.topic_partitions("t")
    after = now | {0: now[0]._replace(replicas=(4, 1, 2, 3), adding=(4,), removing=(1, 2, 3))}
    simulation.watch.reassignments.topic_written(topic(simulation, now, after))
    return queued(simulation, stop(simulation))


#: The invariant that must fail, and the function that breaks it.
VIOLATIONS_OF_REQUESTS: list[ViolationCase] = [
    (
        requests.leaders_that_shut_down_are_notified,
        lambda simulation: ended(simulation, ControlledShutdownRequested(1, -1), unsent=((KEY, 1),)),
    ),
    (requests.shutdown_response_lists_led_partitions, lambda simulation: shutdown(simulation, -1)),
    (requests.stale_shutdown_is_refused, lambda simulation: shutdown(simulation, 0, KEY)),
    (requests.single_request_in_flight, lambda simulation: sent(simulation, metadata(simulation))),
    (requests.first_request_is_update_metadata, _roles_first),
    (requests.for_current_registration, lambda simulation: sent(simulation, metadata(simulation, broker_epoch=3))),
    (requests.failure_precedes_startup, lambda simulation: ChannelOpened(simulation.controllers[0], 1, 14)),
    (requests.requests_go_to_registered_brokers, _sends_to_dead_broker),
    (requests.deletions_keep_target_and_isr, lambda simulation: queued(simulation, stop(simulation))),
    (topics.deletion_was_confirmed, lambda simulation: topic(simulation, after={})),
    (topics.topic_id_is_constant, lambda simulation: topic(simulation, topic_id=b"x" * 16)),
    (
        topics.requests_name_the_topic,
        lambda simulation: queued(simulation, LeaderAndIsr(1000, 1, 1, {}, {"t": b"x" * 16})),
    ),
    (topics.reassignments_were_requested, lambda simulation: assigned(simulation, replicas=(4, 2, 3))),
    (requests.original_replicas_wait_for_target, _original_stopped),
    (topics.partitions_stay, lambda simulation: topic(simulation, after={0: simulation.ensemble.rows[KEY]})),
    (topics.added_partitions_keep_replicas, _added_partitions_with_reassignment),
]
