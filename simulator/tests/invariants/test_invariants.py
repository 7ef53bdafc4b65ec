"""Every invariant is seen to fail: a world at rest, in which one thing is broken on purpose."""

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
from kframe_simulator import INVARIANTS, World
from kframe_simulator.broker.messages import (
    ControlResponse,
    Fetched,
    LeaderAndIsr,
    Record,
    RecordKind,
)
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponse
from kframe_simulator.invariants import events, records, requests, rest, roles, states, topics
from kframe_simulator.simulation.values import Value
from kframe_simulator.simulation.watch import (
    Answered,
    Claimed,
    Connected,
    Leaving,
    Led,
    Logged,
    Moment,
    Read,
    Replied,
    Watch,
    Written,
)
from kframe_simulator.testing.at_rest import KEY, edit, ended, letter, log, metadata, promise, state, stop, topic, write
from kframe_simulator.testing.broken import BROKEN_BY_FACTS


def rested(**changes: Any) -> Callable[[World], tuple[Moment, Any]]:
    def broken(world: World) -> tuple[Moment, Any]:
        edit(world, **changes)
        return Moment.RESTED, None

    return broken


def _second_owner(world: World) -> tuple[Moment, Any]:
    return Moment.CLAIMED, Claimed(world.controllers[1], 1)


def _others_epoch(world: World) -> tuple[Moment, Any]:
    return Moment.SENT, letter(world, metadata(world, 7))


def _obeys_older(world: World) -> tuple[Moment, Any]:
    world.watch.memory[1].controller_epoch = 9
    return Moment.ANSWERED, Answered(world.brokers[1], letter(world, metadata(world)).letter, ControlResponse())


def _unfenced(world: World) -> tuple[Moment, Any]:
    world.controllers[0].store.claimed_epoch = 5
    return Moment.WRITTEN, Written(world.controllers[0], "write_states")


def _sends_after_loss(world: World) -> tuple[Moment, Any]:
    world.controllers[0].store.lost_role = True
    return Moment.SENT, letter(world, metadata(world))


def _writes_after_loss(world: World) -> tuple[Moment, Any]:
    world.controllers[0].store.lost_role = True
    return Moment.WRITTEN, Written(world.controllers[0], "write_states")


def _chooses_the_dead(world: World) -> tuple[Moment, Any]:
    brokers = world.controllers[0].loop.controller.cluster.brokers
    brokers.unregister(np.array([brokers.find(2)], np.int32))
    return Moment.STATE, state(world, leader=2)


def _leaves_stranger(world: World) -> tuple[Moment, Any]:
    before = {0: world.ensemble.rows[KEY]._replace(replicas=(1, 2, 4))}
    edit(world, isr=(1, 2, 4))
    return Moment.EVENT, ended(world, written=(KEY,), topics={"t": before})


def _chooses_out_of_sync(world: World) -> tuple[Moment, Any]:
    edit(world, isr=(1, 2))
    return Moment.STATE, state(world, leader=3, isr=(3,))


def _unclean_with_company(world: World) -> tuple[Moment, Any]:
    edit(world, isr=(1,))
    return Moment.STATE, state(world, leader=3, isr=(3, 2))


def _proposal_raises_epoch(world: World) -> tuple[Moment, Any]:
    return Moment.STATE, state(world, leader_epoch=world.ensemble.rows[KEY].leader_epoch + 2)


def _forgets_version(world: World) -> tuple[Moment, Any]:
    edit(world, partition_epoch=9)
    world.watch.last_writer[KEY] = world.controllers[0]
    return Moment.EVENT, ended(world, written=(KEY,))


def _old_metadata(world: World) -> tuple[Moment, Any]:
    del world.watch.memory[4].metadata[KEY]
    return Moment.RESTED, None


def _old_address(world: World) -> tuple[Moment, Any]:
    world.brokers[2].registration = replace(world.brokers[2].registration, endpoints=())
    world.ensemble.modify_broker(world.brokers[2].registration)
    return Moment.LULL, None


def _leaver_is_not_told(world: World) -> tuple[Moment, Any]:
    return Moment.EVENT, ended(world, ControlledShutdownRequested(1, -1), untold=((KEY, 1),))


def leaving(world: World, broker_epoch: int, *remaining: tuple[str, int]) -> tuple[Moment, Leaving]:
    response = ControlledShutdownResponse(ErrorCode.NONE, remaining)
    return Moment.LEAVING, Leaving(world.controllers[0], ControlledShutdown(1, broker_epoch), response)


def _out_of_turn(world: World) -> tuple[Moment, Any]:
    return Moment.SENT, letter(world, metadata(world))


def _roles_first(world: World) -> tuple[Moment, Any]:
    world.watch.started.clear()
    return Moment.QUEUED, letter(world, LeaderAndIsr(1000, 1, 1, {}))


def _other_registration(world: World) -> tuple[Moment, Any]:
    return Moment.SENT, letter(world, metadata(world, broker_epoch=3))


def _birth_before_death(world: World) -> tuple[Moment, Any]:
    return Moment.CONNECTED, Connected(world.controllers[0], 1, 14)


def _to_the_dead(world: World) -> tuple[Moment, Any]:
    brokers = world.controllers[0].loop.controller.cluster.brokers
    brokers.unregister(np.array([brokers.find(1)], np.int32))
    return Moment.QUEUED, letter(world, metadata(world))


def _deletes_in_sync(world: World) -> tuple[Moment, Any]:
    return Moment.QUEUED, letter(world, stop(world))


def _deleted_unconfirmed(world: World) -> tuple[Moment, Any]:
    return Moment.TOPIC, topic(world, after={})


def _another_id(world: World) -> tuple[Moment, Any]:
    return Moment.TOPIC, topic(world, topic_id=b"x" * 16)


def _unknown_id(world: World) -> tuple[Moment, Any]:
    message = LeaderAndIsr(1000, 1, 1, {}, {"t": b"x" * 16})
    return Moment.QUEUED, letter(world, message)


def _brokers_other_id(world: World) -> tuple[Moment, Any]:
    world.watch.memory[2].topic_ids["t"] = b"x" * 16
    return Moment.RESTED, None


def _moved_unasked(world: World) -> tuple[Moment, Any]:
    now = world.ensemble.topic_partitions("t")
    return Moment.TOPIC, topic(world, after=now | {0: now[0]._replace(replicas=(4, 2, 3))})


def _lost_partition(world: World) -> tuple[Moment, Any]:
    now = world.ensemble.topic_partitions("t")
    return Moment.TOPIC, topic(world, after={0: now[0]})


def _grown_and_moved(world: World) -> tuple[Moment, Any]:
    now = world.ensemble.topic_partitions("t")
    grown = now | {0: now[0]._replace(replicas=(4, 2, 3)), 2: now[1]._replace(key=("t", 2))}
    world.watch.wanted[KEY].add((4, 2, 3))
    return Moment.TOPIC, topic(world, after=grown)


def _wrong_gauge(world: World) -> tuple[Moment, Any]:
    world.controllers[0].loop.controller.context.gauges.rows.totals[0] += 1
    return Moment.EVENT, ended(world)


def _online_without_leader(world: World) -> tuple[Moment, Any]:
    partitions = world.controllers[0].loop.controller.cluster.partitions
    partitions.state[0], partitions.leader[0] = PartitionState.ONLINE, -1
    return Moment.EVENT, ended(world)


def _answered_twice(world: World) -> tuple[Moment, Any]:
    return Moment.REPLIED, Replied("an election", 2, True)


def _answered_in_part(world: World) -> tuple[Moment, Any]:
    return Moment.REPLIED, Replied("an election", 1, False)


def _repeat_writes(world: World) -> tuple[Moment, Any]:
    return Moment.EVENT, ended(world, written=(KEY,), repeated=True)


def _fails_by_itself(world: World) -> tuple[Moment, Any]:
    world.controllers[0].loop.controller.failures += 1
    return Moment.EVENT, ended(world)


def _endless(world: World) -> tuple[Moment, Any]:
    world.controllers[0].effects = 1_000
    return Moment.EVENT, ended(world)


def _nobody_active(world: World) -> tuple[Moment, Any]:
    world.controllers[0].crash()
    return Moment.RESTED, None


def _record_left(world: World) -> tuple[Moment, Any]:
    world.ensemble.records.create(1, REASSIGN_PARTITIONS)
    return Moment.RESTED, None


def _waits(world: World) -> tuple[Moment, Any]:
    world.controllers[0].transport.channels[1].waiting.append(letter(world, metadata(world)).letter)
    return Moment.RESTED, None


def logged(world: World, broker_id: int) -> tuple[Moment, Logged]:
    return Moment.LOGGED, Logged(world.brokers[broker_id], KEY, log(world, broker_id))


def read(*records: Record, offset: int = 0, error: ErrorCode = ErrorCode.NONE) -> tuple[Moment, Read]:
    return Moment.READ, Read(KEY, offset, True, Fetched(error, log_end_offset=0, records=records))


def _leader_lacks(world: World) -> tuple[Moment, Any]:
    write(world, 2, 3)
    promise(world)
    return Moment.LED, Led(world.brokers[1], KEY, 1)


def _member_lacks(world: World) -> tuple[Moment, Any]:
    write(world, 1, 2)
    promise(world)
    return Moment.STATE, state(world)


def _too_soon(world: World) -> tuple[Moment, Any]:
    write(world, 1)
    promise(world)
    return Moment.ACKNOWLEDGED, KEY


def _gone_at_rest(world: World) -> tuple[Moment, Any]:
    promise(world)
    return Moment.RESTED, None


def _hidden_at_rest(world: World) -> tuple[Moment, Any]:
    write(world, 1, 2, 3)
    promise(world)
    return Moment.RESTED, None


def _logs_part(world: World) -> tuple[Moment, Any]:
    write(world, 1, number=1)
    write(world, 2, number=2)
    return logged(world, 2)


def _high_watermark_too_high(world: World) -> tuple[Moment, Any]:
    write(world, 1, 2, high_watermark=1)
    return logged(world, 1)


def _leader_out_of_sync(world: World) -> tuple[Moment, Any]:
    world.brokers[1].model.partitions[KEY].isr = (2, 3)
    return logged(world, 1)


def _committed_is_another(world: World) -> tuple[Moment, Any]:
    write(world, 1, high_watermark=1)
    world.watch.ledger.committed[KEY].records.append(Record(0, Value(0, 9)))
    return logged(world, 1)


def _written_twice(world: World) -> tuple[Moment, Any]:
    write(world, 1)
    write(world, 1, high_watermark=2)
    return logged(world, 1)


def _reads_another(world: World) -> tuple[Moment, Any]:
    world.watch.ledger.reads[KEY][0] = Record(0, Value(0, 1))
    return read(Record(1, Value(0, 2)))


def _reads_twice(world: World) -> tuple[Moment, Any]:
    same = Record(0, Value(0, 1), 0, 0, 0)
    return read(same, same)


def _read_and_gone(world: World) -> tuple[Moment, Any]:
    world.watch.ledger.reads[KEY][0] = Record(0, Value(0, 1))
    return read(offset=1, error=ErrorCode.OFFSET_OUT_OF_RANGE)


def _reads_undecided(world: World) -> tuple[Moment, Any]:
    return read(Record(0, Value(0, 1, transaction=1), 0, 0, 0, RecordKind.TRANSACTIONAL))


def _original_stopped(world: World) -> tuple[Moment, Any]:
    now = world.ensemble.topic_partitions("t")
    after = now | {0: now[0]._replace(replicas=(4, 1, 2, 3), adding=(4,), removing=(1, 2, 3))}
    world.watch.moves.topic_written(topic(world, now, after))
    return Moment.QUEUED, letter(world, stop(world))


#: The invariant that must complain, and what is broken.
BROKEN: list[tuple[Callable[[Watch, Any], str | None], Callable[[World], tuple[Moment, Any]]]] = [
    (roles.epoch_has_one_owner, _second_owner),
    (roles.letter_has_own_epoch, _others_epoch),
    (roles.brokers_go_forward, _obeys_older),
    (roles.writes_are_fenced, _unfenced),
    (roles.sends_end_with_the_role, _sends_after_loss),
    (roles.writes_end_with_the_role, _writes_after_loss),
    (states.leader_is_sound, lambda world: (Moment.STATE, state(world, isr=(2, 3)))),
    (states.leader_is_sound, _chooses_the_dead),
    (states.leader_is_sound, lambda world: (Moment.STATE, state(world, leader=4, isr=(4, 2)))),
    (states.isr_is_sound, lambda world: (Moment.STATE, state(world, leader=-1, isr=()))),
    (states.isr_is_sound, lambda world: (Moment.STATE, state(world, isr=(1, 2, 2)))),
    (states.isr_is_assigned, _leaves_stranger),
    (states.election_is_clean, _chooses_out_of_sync),
    (states.election_is_clean, lambda world: (Moment.STATE, state(world, leader=3, isr=(1, 2, 3)))),
    (states.unclean_leader_is_alone, _unclean_with_company),
    (states.leader_epoch_goes_up, _proposal_raises_epoch),
    (states.leader_epoch_goes_up, lambda world: (Moment.STATE, state(world, leader_epoch=-1))),
    (states.states_are_a_chain, lambda world: (Moment.STATE, state(world, partition_epoch=7))),
    (states.own_writes_are_known, _forgets_version),
    (records.leaders_have_what_was_promised, _leader_lacks),
    (records.in_sync_is_complete, _member_lacks),
    (records.acknowledged_is_in_sync, _too_soon),
    (records.promises_are_kept, _gone_at_rest),
    (records.promises_are_kept, _hidden_at_rest),
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
    (requests.leavers_are_told, _leaver_is_not_told),
    (requests.shutdown_names_what_is_led, lambda world: leaving(world, -1)),
    (requests.earlier_registrations_shut_nothing_down, lambda world: leaving(world, 0, KEY)),
    (requests.one_in_flight, _out_of_turn),
    (requests.first_is_metadata, _roles_first),
    (requests.for_one_registration, _other_registration),
    (requests.death_before_birth, _birth_before_death),
    (requests.only_the_registered, _to_the_dead),
    (requests.only_leavers_are_deleted, _deletes_in_sync),
    (topics.deletion_was_confirmed, _deleted_unconfirmed),
    (topics.id_is_for_life, _another_id),
    (topics.letters_name_the_topic, _unknown_id),
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
    (rest.one_controller, _nobody_active),
    (rest.nothing_is_left, _record_left),
    (rest.nothing_is_left, rested(adding=(3,))),
    (rest.nobody_waits, _waits),
    (rest.in_sync_again, rested(isr=(1, 2))),
    *BROKEN_BY_FACTS,
]


@pytest.mark.parametrize(("invariant", "break_it"), BROKEN)
def test_an_invariant_complains_when_it_is_broken(
    world: World, invariant: Callable[[Watch, Any], str | None], break_it: Callable[[World], tuple[Moment, Any]]
) -> None:
    moment, what = break_it(world)
    assert moment in [rule.moment for rule in INVARIANTS if rule.broken is invariant]
    assert invariant(world.watch, what)


def test_every_invariant_is_broken_above() -> None:
    assert {rule.broken for rule in INVARIANTS} == {invariant for invariant, _ in BROKEN}


def test_what_is_right_passes(world: World) -> None:
    for change in ({}, {"leader": 2, "isr": (2, 3)}, {"leader": -1, "isr": (1,)}):
        world.watch.look(Moment.STATE, state(world, **change))
    world.watch.look(Moment.EVENT, ended(world, AlterPartitionRequested.__name__))
    broken = {violation.number for violation in world.watch.violations}
    assert broken == {"I6"}, "leader 2 was chosen while 1, the first of the replicas, lives"
