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
from kframe_simulator import INVARIANTS, Simulation
from kframe_simulator.broker.messages import ControlResponse
from kframe_simulator.invariants import events, rest, roles, states
from kframe_simulator.simulation.observations import Answered, Claimed, Replied, Trigger, Written
from kframe_simulator.simulation.watch import Watch
from kframe_simulator.testing.at_rest import KEY, edit, ended, metadata, post, state
from kframe_simulator.testing.broken import BROKEN_BY_FACTS
from kframe_simulator.testing.broken_records import BROKEN_RECORDS
from kframe_simulator.testing.broken_requests import BROKEN_REQUESTS


def rested(**changes: Any) -> Callable[[Simulation], tuple[Trigger, Any]]:
    def broken(simulation: Simulation) -> tuple[Trigger, Any]:
        edit(simulation, **changes)
        return Trigger.RESTED, None

    return broken


def _second_owner(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.CLAIMED, Claimed(simulation.controllers[1], 1)


def _others_epoch(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.SENT, post(simulation, metadata(simulation, 7))


def _obeys_older(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.watch.memory[1].controller_epoch = 9
    return Trigger.ANSWERED, Answered(
        simulation.brokers[1], post(simulation, metadata(simulation)).request, ControlResponse()
    )


def _unfenced(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].store.claimed_epoch = 5
    return Trigger.WRITTEN, Written(simulation.controllers[0], "write_states")


def _sends_after_loss(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].store.lost_role = True
    return Trigger.SENT, post(simulation, metadata(simulation))


def _writes_after_loss(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].store.lost_role = True
    return Trigger.WRITTEN, Written(simulation.controllers[0], "write_states")


def _chooses_the_dead(simulation: Simulation) -> tuple[Trigger, Any]:
    brokers = simulation.controllers[0].loop.controller.cluster.brokers
    brokers.unregister(np.array([brokers.find(2)], np.int32))
    return Trigger.STATE, state(simulation, leader=2)


def _keeps_unassigned_member(simulation: Simulation) -> tuple[Trigger, Any]:
    before = {0: simulation.ensemble.rows[KEY]._replace(replicas=(1, 2, 4))}
    edit(simulation, isr=(1, 2, 4))
    return Trigger.EVENT, ended(simulation, written=(KEY,), topics={"t": before})


def _chooses_out_of_sync(simulation: Simulation) -> tuple[Trigger, Any]:
    edit(simulation, isr=(1, 2))
    return Trigger.STATE, state(simulation, leader=3, isr=(3,))


def _unclean_with_company(simulation: Simulation) -> tuple[Trigger, Any]:
    edit(simulation, isr=(1,))
    return Trigger.STATE, state(simulation, leader=3, isr=(3, 2))


def _proposal_raises_epoch(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.STATE, state(simulation, leader_epoch=simulation.ensemble.rows[KEY].leader_epoch + 2)


def _forgets_version(simulation: Simulation) -> tuple[Trigger, Any]:
    edit(simulation, partition_epoch=9)
    simulation.watch.last_writer[KEY] = simulation.controllers[0]
    return Trigger.EVENT, ended(simulation, written=(KEY,))


def _old_metadata(simulation: Simulation) -> tuple[Trigger, Any]:
    del simulation.watch.memory[4].metadata[KEY]
    return Trigger.RESTED, None


def _old_address(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.brokers[2].registration = replace(simulation.brokers[2].registration, endpoints=())
    simulation.ensemble.modify_broker(simulation.brokers[2].registration)
    return Trigger.QUIESCENT, None


def _brokers_other_id(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.watch.memory[2].topic_ids["t"] = b"x" * 16
    return Trigger.RESTED, None


def _wrong_gauge(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].loop.controller.context.gauges.rows.totals[0] += 1
    return Trigger.EVENT, ended(simulation)


def _online_without_leader(simulation: Simulation) -> tuple[Trigger, Any]:
    partitions = simulation.controllers[0].loop.controller.cluster.partitions
    partitions.state[0], partitions.leader[0] = PartitionState.ONLINE, -1
    return Trigger.EVENT, ended(simulation)


def _answered_twice(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.REPLIED, Replied("an election", 2, True)


def _answered_in_part(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.REPLIED, Replied("an election", 1, False)


def _repeat_writes(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.EVENT, ended(simulation, written=(KEY,), repeated=True)


def _fails_by_itself(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].loop.controller.failures += 1
    return Trigger.EVENT, ended(simulation)


def _endless(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].effects = 1_000
    return Trigger.EVENT, ended(simulation)


def _no_active_controller(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].crash()
    return Trigger.RESTED, None


def _record_left(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.ensemble.records.create(1, REASSIGN_PARTITIONS)
    return Trigger.RESTED, None


def _waits(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.controllers[0].transport.channels[1].waiting.append(post(simulation, metadata(simulation)).request)
    return Trigger.RESTED, None


#: The invariant that must fail, and the function that breaks it.
BROKEN: list[tuple[Callable[[Watch, Any], str | None], Callable[[Simulation], tuple[Trigger, Any]]]] = [
    (roles.epoch_has_single_owner, _second_owner),
    (roles.request_has_own_epoch, _others_epoch),
    (roles.brokers_go_forward, _obeys_older),
    (roles.writes_are_fenced, _unfenced),
    (roles.sends_end_with_the_role, _sends_after_loss),
    (roles.writes_end_with_the_role, _writes_after_loss),
    (states.leader_is_sound, lambda simulation: (Trigger.STATE, state(simulation, isr=(2, 3)))),
    (states.leader_is_sound, _chooses_the_dead),
    (states.leader_is_sound, lambda simulation: (Trigger.STATE, state(simulation, leader=4, isr=(4, 2)))),
    (states.isr_is_sound, lambda simulation: (Trigger.STATE, state(simulation, leader=-1, isr=()))),
    (states.isr_is_sound, lambda simulation: (Trigger.STATE, state(simulation, isr=(1, 2, 2)))),
    (states.isr_is_assigned, _keeps_unassigned_member),
    (states.election_is_clean, _chooses_out_of_sync),
    (states.election_is_clean, lambda simulation: (Trigger.STATE, state(simulation, leader=3, isr=(1, 2, 3)))),
    (states.unclean_leader_is_alone, _unclean_with_company),
    (states.leader_epoch_goes_up, _proposal_raises_epoch),
    (states.leader_epoch_goes_up, lambda simulation: (Trigger.STATE, state(simulation, leader_epoch=-1))),
    (states.states_are_a_chain, lambda simulation: (Trigger.STATE, state(simulation, partition_epoch=7))),
    (states.own_writes_are_known, _forgets_version),
    (rest.brokers_know_their_roles, rested(leader_epoch=7)),
    (rest.brokers_know_the_cluster, _old_metadata),
    (rest.brokers_know_the_cluster, _old_address),
    (rest.ids_are_known, _brokers_other_id),
    (events.gauges_are_recounts, _wrong_gauge),
    (rest.context_is_storage, rested(isr=(1,))),
    (events.states_fit_columns, _online_without_leader),
    (events.answered_once, _answered_twice),
    (events.answered_once, _answered_in_part),
    (events.repeats_change_nothing, _repeat_writes),
    (events.failures_are_explained, _fails_by_itself),
    (events.steps_are_bounded, _endless),
    (rest.led_where_possible, rested(leader=-1)),
    (rest.single_controller, _no_active_controller),
    (rest.nothing_is_left, _record_left),
    (rest.nothing_is_left, rested(adding=(3,))),
    (rest.no_request_waits, _waits),
    (rest.in_sync_again, rested(isr=(1, 2))),
    *BROKEN_BY_FACTS,
    *BROKEN_RECORDS,
    *BROKEN_REQUESTS,
]


@pytest.mark.parametrize(("invariant", "break_it"), BROKEN)
def test_invariant_reports_violation(
    simulation: Simulation,
    invariant: Callable[[Watch, Any], str | None],
    break_it: Callable[[Simulation], tuple[Trigger, Any]],
) -> None:
    trigger, what = break_it(simulation)
    assert trigger in [rule.trigger for rule in INVARIANTS if rule.broken is invariant]
    assert invariant(simulation.watch, what)


def test_every_invariant_has_a_violation_case() -> None:
    assert {rule.broken for rule in INVARIANTS} == {invariant for invariant, _ in BROKEN}


def test_valid_changes_violate_no_invariant(simulation: Simulation) -> None:
    for change in ({}, {"leader": 2, "isr": (2, 3)}, {"leader": -1, "isr": (1,)}):
        simulation.watch.look(Trigger.STATE, state(simulation, **change))
    simulation.watch.look(Trigger.EVENT, ended(simulation, AlterPartitionRequested.__name__))
    broken = {violation.number for violation in simulation.watch.violations}
    assert broken == {"I6"}, "leader 2 was chosen while 1, the first of the replicas, lives"
