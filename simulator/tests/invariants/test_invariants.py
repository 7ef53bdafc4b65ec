"""Every invariant reports a violation when one fact of a simulation at rest is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kframe.embedded.layout import REASSIGN_PARTITIONS
from kframe.errors import ErrorCode
from kframe.model.events import AlterPartitionRequested, ControlledShutdownRequested
from kframe.model.ids import PartitionState
from kframe_simulator import INVARIANTS, Simulation
from kframe_simulator.broker.messages import (
    ControlResponse,
    Fetched,
    LeaderAndIsr,
    Record,
    RecordKind,
)
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.invariants import events, records, requests, rest, roles, states, topics
from kframe_simulator.simulation.observations import (
    Answered,
    Claimed,
    Connected,
    Leaving,
    Led,
    Logged,
    Read,
    Replied,
    Trigger,
    Written,
)
from kframe_simulator.simulation.values import Value
from kframe_simulator.simulation.watch import Watch
from kframe_simulator.testing.at_rest import (
    KEY,
    edit,
    ended,
    log,
    metadata,
    post,
    promise,
    state,
    stop,
    topic,
    write,
)
from kframe_simulator.testing.broken import BROKEN_BY_FACTS


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


def _leader_that_shuts_down_not_notified(simulation: Simulation) -> tuple[Trigger, Any]:
    return Trigger.EVENT, ended(simulation, ControlledShutdownRequested(1, -1), unsent=((KEY, 1),))


def leaving(simulation: Simulation, broker_epoch: int, *remaining: tuple[str, int]) -> tuple[Trigger, Leaving]:
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


def _brokers_other_id(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.watch.memory[2].topic_ids["t"] = b"x" * 16
    return Trigger.RESTED, None


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


def logged(simulation: Simulation, broker_id: int) -> tuple[Trigger, Logged]:
    return Trigger.LOGGED, Logged(simulation.brokers[broker_id], KEY, log(simulation, broker_id))


def read(*records: Record, offset: int = 0, error: ErrorCode = ErrorCode.NONE) -> tuple[Trigger, Read]:
    return Trigger.READ, Read(KEY, offset, True, Fetched(error, log_end_offset=0, records=records))


def _leader_lacks(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 2, 3)
    promise(simulation)
    return Trigger.LED, Led(simulation.brokers[1], KEY, 1)


def _member_lacks(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1, 2)
    promise(simulation)
    return Trigger.STATE, state(simulation)


def _too_soon(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1)
    promise(simulation)
    return Trigger.ACKNOWLEDGED, KEY


def _gone_at_rest(simulation: Simulation) -> tuple[Trigger, Any]:
    promise(simulation)
    return Trigger.RESTED, None


def _hidden_at_rest(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1, 2, 3)
    promise(simulation)
    return Trigger.RESTED, None


def _logs_part(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1, number=1)
    write(simulation, 2, number=2)
    return logged(simulation, 2)


def _high_watermark_too_high(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1, 2, high_watermark=1)
    return logged(simulation, 1)


def _leader_out_of_sync(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.brokers[1].model.partitions[KEY].isr = (2, 3)
    return logged(simulation, 1)


def _committed_is_another(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1, high_watermark=1)
    simulation.watch.record_history.committed[KEY].records.append(Record(0, Value(0, 9)))
    return logged(simulation, 1)


def _written_twice(simulation: Simulation) -> tuple[Trigger, Any]:
    write(simulation, 1)
    write(simulation, 1, high_watermark=2)
    return logged(simulation, 1)


def _reads_another(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.watch.record_history.reads[KEY][0] = Record(0, Value(0, 1))
    return read(Record(1, Value(0, 2)))


def _reads_twice(simulation: Simulation) -> tuple[Trigger, Any]:
    same = Record(0, Value(0, 1), 0, 0, 0)
    return read(same, same)


def _read_and_gone(simulation: Simulation) -> tuple[Trigger, Any]:
    simulation.watch.record_history.reads[KEY][0] = Record(0, Value(0, 1))
    return read(offset=1, error=ErrorCode.OFFSET_OUT_OF_RANGE)


def _reads_undecided(simulation: Simulation) -> tuple[Trigger, Any]:
    return read(Record(0, Value(0, 1, transaction=1), 0, 0, 0, RecordKind.TRANSACTIONAL))


def _original_stopped(simulation: Simulation) -> tuple[Trigger, Any]:
    now = simulation.ensemble.topic_partitions("t")
    after = now | {0: now[0]._replace(replicas=(4, 1, 2, 3), adding=(4,), removing=(1, 2, 3))}
    simulation.watch.reassignments.topic_written(topic(simulation, now, after))
    return Trigger.QUEUED, post(simulation, stop(simulation))


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
    (records.leaders_have_what_was_promised, _leader_lacks),
    (records.in_sync_is_complete, _member_lacks),
    (records.acknowledged_is_in_sync, _too_soon),
    (records.acknowledged_records_stay, _gone_at_rest),
    (records.acknowledged_records_stay, _hidden_at_rest),
    (records.logs_match, _logs_part),
    (records.high_watermark_is_everywhere, _high_watermark_too_high),
    (records.high_watermark_is_everywhere, _leader_out_of_sync),
    (records.committed_stays, _committed_is_another),
    (records.committed_stays, _written_twice),
    (records.reads_are_repeatable, _reads_another),
    (records.reads_are_repeatable, _reads_twice),
    (records.reads_are_repeatable, _read_and_gone),
    (records.undecided_is_hidden, _reads_undecided),
    (rest.brokers_know_their_roles, rested(leader_epoch=7)),
    (rest.brokers_know_the_cluster, _old_metadata),
    (rest.brokers_know_the_cluster, _old_address),
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
    (rest.ids_are_known, _brokers_other_id),
    (topics.moves_were_asked_for, _moved_unasked),
    (requests.originals_wait_for_the_target, _original_stopped),
    (topics.partitions_stay, _lost_partition),
    (topics.expansion_moves_nothing, _grown_and_moved),
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
]


@pytest.mark.parametrize(("invariant", "break_it"), BROKEN)
def test_an_invariant_complains_when_it_is_broken(
    simulation: Simulation,
    invariant: Callable[[Watch, Any], str | None],
    break_it: Callable[[Simulation], tuple[Trigger, Any]],
) -> None:
    trigger, what = break_it(simulation)
    assert trigger in [rule.trigger for rule in INVARIANTS if rule.broken is invariant]
    assert invariant(simulation.watch, what)


def test_every_invariant_is_broken_above() -> None:
    assert {rule.broken for rule in INVARIANTS} == {invariant for invariant, _ in BROKEN}


def test_what_is_right_passes(simulation: Simulation) -> None:
    for change in ({}, {"leader": 2, "isr": (2, 3)}, {"leader": -1, "isr": (1,)}):
        simulation.watch.look(Trigger.STATE, state(simulation, **change))
    simulation.watch.look(Trigger.EVENT, ended(simulation, AlterPartitionRequested.__name__))
    broken = {violation.number for violation in simulation.watch.violations}
    assert broken == {"I6"}, "leader 2 was chosen while 1, the first of the replicas, lives"
