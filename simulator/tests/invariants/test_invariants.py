"""Every invariant reports a violation when one fact of a simulation at rest is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kframe.embedded.layout import REASSIGN_PARTITIONS
from kframe.model.events import AlterPartitionRequested
from kframe.model.ids import PartitionState
from kframe.ports.store_requests import Prepare
from kframe_simulator import INVARIANTS, Simulation
from kframe_simulator.broker.messages import ControlResponse
from kframe_simulator.invariants import events, rest, roles, states
from kframe_simulator.simulation.observations import (
    Quiescent,
    RequestCompleted,
    ResponseSent,
    Rested,
    RoleClaimed,
    StoreWritten,
)
from kframe_simulator.simulation.watch import Watch
from verification.simulator.at_rest import KEY, ViolationCase, edit, ended, metadata, request, sent, state
from verification.simulator.broken import VIOLATIONS_OF_OBSERVATIONS, lose_role
from verification.simulator.broken_records import VIOLATIONS_OF_RECORDS
from verification.simulator.broken_requests import VIOLATIONS_OF_REQUESTS


def rested(**changes: Any) -> Callable[[Simulation], Any]:
    def broken(simulation: Simulation) -> Any:
        edit(simulation, **changes)
        return Rested()

    return broken


def _accepts_older_controller_epoch(simulation: Simulation) -> Any:
    simulation.watch.memory[1].controller_epoch = 9
    return ResponseSent(simulation.brokers[1], request(simulation, metadata(simulation)), ControlResponse())


def _unfenced(simulation: Simulation) -> Any:
    simulation.controllers[0].store.claimed_epoch = 5
    return StoreWritten(simulation.controllers[0], Prepare())


def _elects_unregistered_leader(simulation: Simulation) -> Any:
    brokers = simulation.controllers[0].loop.controller.cluster.brokers
    brokers.unregister(np.array([brokers.find(2)], np.int32))
    return state(simulation, leader=2)


def _keeps_unassigned_member(simulation: Simulation) -> Any:
    before = {0: simulation.ensemble.rows[KEY]._replace(replicas=(1, 2, 4))}
    edit(simulation, isr=(1, 2, 4))
    return ended(simulation, written=(KEY,), topics={"t": before})


def _forgets_version(simulation: Simulation) -> Any:
    edit(simulation, partition_epoch=9)
    simulation.watch.last_writer[KEY] = simulation.controllers[0]
    return ended(simulation, written=(KEY,))


def _old_metadata(simulation: Simulation) -> Any:
    del simulation.brokers[4].model.metadata.partitions[KEY]
    return Rested()


def _old_address(simulation: Simulation) -> Any:
    simulation.brokers[2].registration = replace(simulation.brokers[2].registration, endpoints=())
    simulation.ensemble.modify_broker(simulation.brokers[2].registration)
    return Quiescent()


def _brokers_other_id(simulation: Simulation) -> Any:
    simulation.watch.memory[2].topic_ids["t"] = b"x" * 16
    return Rested()


def _wrong_gauge(simulation: Simulation) -> Any:
    simulation.controllers[0].loop.controller.context.gauges.rows.totals[0] += 1
    return ended(simulation)


def _online_without_leader(simulation: Simulation) -> Any:
    partitions = simulation.controllers[0].loop.controller.cluster.partitions
    partitions.set_states(np.zeros(1, np.int32), PartitionState.ONLINE)
    partitions.leader[0] = -1
    return ended(simulation)


def _fails_by_itself(simulation: Simulation) -> Any:
    simulation.controllers[0].loop.controller.failures += 1
    return ended(simulation)


def _endless(simulation: Simulation) -> Any:
    simulation.controllers[0].effects = 1_000
    return ended(simulation)


def _no_active_controller(simulation: Simulation) -> Any:
    simulation.controllers[0].crash()
    return Rested()


def _znode_is_pending(simulation: Simulation) -> Any:
    simulation.ensemble.records.create(1, REASSIGN_PARTITIONS)
    return Rested()


def _waits(simulation: Simulation) -> Any:
    simulation.controllers[0].transport.channels[1].waiting.append(request(simulation, metadata(simulation)))
    return Rested()


#: The invariant that must fail, and the function that breaks it.
BROKEN: list[ViolationCase] = [
    (roles.epoch_has_single_owner, lambda simulation: RoleClaimed(simulation.controllers[1], 1)),
    (roles.request_has_own_epoch, lambda simulation: sent(simulation, metadata(simulation, 7))),
    (roles.accepted_controller_epochs_increase, _accepts_older_controller_epoch),
    (roles.writes_are_fenced, _unfenced),
    (roles.sends_end_with_the_role, lambda simulation: sent(lose_role(simulation), metadata(simulation))),
    (roles.writes_end_with_the_role, lambda simulation: StoreWritten(lose_role(simulation).controllers[0], Prepare())),
    (states.leader_is_valid, lambda simulation: state(simulation, isr=(2, 3))),
    (states.leader_is_valid, _elects_unregistered_leader),
    (states.leader_is_valid, lambda simulation: state(simulation, leader=4, isr=(4, 2))),
    (states.isr_is_valid, lambda simulation: state(simulation, leader=-1, isr=())),
    (states.isr_is_valid, lambda simulation: state(simulation, isr=(1, 2, 2))),
    (states.isr_is_assigned, _keeps_unassigned_member),
    (states.election_is_clean, lambda simulation: state(edit(simulation, isr=(1, 2)), leader=3, isr=(3,))),
    (states.election_is_clean, lambda simulation: state(simulation, leader=3, isr=(1, 2, 3))),
    (states.unclean_leader_is_alone, lambda simulation: state(edit(simulation, isr=(1,)), leader=3, isr=(3, 2))),
    (
        states.leader_epoch_goes_up,
        lambda simulation: state(simulation, leader_epoch=simulation.ensemble.rows[KEY].leader_epoch + 2),
    ),
    (states.leader_epoch_goes_up, lambda simulation: state(simulation, leader_epoch=-1)),
    (states.partition_epochs_are_consecutive, lambda simulation: state(simulation, partition_epoch=7)),
    (states.own_writes_are_known, _forgets_version),
    (rest.brokers_know_their_roles, rested(leader_epoch=7)),
    (rest.brokers_know_the_cluster, _old_metadata),
    (rest.brokers_know_the_cluster, _old_address),
    (rest.brokers_know_topic_ids, _brokers_other_id),
    (events.gauges_equal_recount, _wrong_gauge),
    (rest.context_equals_storage, rested(isr=(1,))),
    (events.states_fit_columns, _online_without_leader),
    (events.requests_get_single_response, lambda simulation: RequestCompleted("an election", 2, True)),
    (events.requests_get_single_response, lambda simulation: RequestCompleted("an election", 1, False)),
    (events.repeated_events_write_nothing, lambda simulation: ended(simulation, written=(KEY,), repeated=True)),
    (events.failures_are_explained, _fails_by_itself),
    (events.steps_are_bounded, _endless),
    (rest.partitions_have_leaders, rested(leader=-1)),
    (rest.single_controller, _no_active_controller),
    (rest.no_operator_work_is_pending, _znode_is_pending),
    (rest.no_operator_work_is_pending, rested(adding=(3,))),
    (rest.no_request_waits, _waits),
    (rest.all_replicas_are_in_sync, rested(isr=(1, 2))),
    *VIOLATIONS_OF_OBSERVATIONS,
    *VIOLATIONS_OF_RECORDS,
    *VIOLATIONS_OF_REQUESTS,
]


@pytest.mark.parametrize(("invariant", "break_it"), BROKEN)
def test_invariant_reports_violation(
    simulation: Simulation, invariant: Callable[[Watch, Any], str | None], break_it: Callable[[Simulation], Any]
) -> None:
    observation = break_it(simulation)
    assert type(observation) in [rule.trigger for rule in INVARIANTS if rule.check is invariant]
    assert invariant(simulation.watch, observation)


def test_every_invariant_has_a_violation_case() -> None:
    assert {rule.check for rule in INVARIANTS} == {invariant for invariant, _ in BROKEN}


def test_columns_of_an_exempt_event_are_checked_after_the_next_event(simulation: Simulation) -> None:
    """Only columns that an invariant has accepted are not checked again."""
    ended = dict(BROKEN)[events.replica_states_fit_columns](simulation)
    for succeeded in (False, True, True):
        problem = events.replica_states_fit_columns(simulation.watch, replace(ended, succeeded=succeeded))
        assert (problem is not None) is succeeded


def test_valid_changes_violate_no_invariant(simulation: Simulation) -> None:
    for change in ({}, {"leader": 2, "isr": (2, 3)}, {"leader": -1, "isr": (1,)}):
        simulation.watch.check(state(simulation, **change))
    simulation.watch.check(ended(simulation, AlterPartitionRequested.__name__))
    broken = {violation.number for violation in simulation.watch.violations}
    assert broken == {"I6"}, "leader 2 was chosen while 1, the first of the replicas, lives"
