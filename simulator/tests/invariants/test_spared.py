"""What invariants spare, seed by seed: what looked like a defect of kframe and was none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe.model.events import BrokersChanged, Event, TopicModified
from kframe.model.ids import NO_STATE
from kframe_simulator import World
from kframe_simulator.broker.messages import (
    ControlResponse,
    LeaderAndIsr,
)
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponse
from kframe_simulator.invariants import events, records, requests, rest, topics
from kframe_simulator.simulation.watch import (
    Answered,
    Led,
)
from kframe_simulator.testing.at_rest import KEY, edit, ended, letter, metadata, promise, state, topic, write


def test_a_leader_that_hears_late_of_an_earlier_epoch_need_not_have_what_came_after(world: World) -> None:
    write(world, 2, 3)
    promise(world)
    assert records.leaders_have_what_was_promised(world.watch, Led(world.brokers[1], KEY, 0))
    assert records.leaders_have_what_was_promised(world.watch, Led(world.brokers[1], KEY, -1)) is None


def test_what_cannot_be_read_is_spared_until_a_leader_epoch_after_that(world: World) -> None:
    """Seed 5093: a controller that knew the topic gave it a leader epoch while nobody could read it; its successor did
    not know it, and refused a proposal under that epoch for good."""
    world.watch.unreadable.add(KEY)
    world.ensemble.malform(0, 0)
    spared = []
    for _ in range(2):
        raised = state(world)
        world.state_written(KEY, raised.before, raised.after, None, None)
        spared.append(KEY in world.watch.unreadable)
        world.ensemble.mend()
    assert spared == [True, False]


@pytest.mark.parametrize(
    ("broker_id", "ended_before", "spared"),
    [(1, True, True), (4, True, False), (1, False, False)],
    ids=["log-of-an-earlier-topic", "no-log", "first-topic-of-the-name"],
)
def test_a_broker_that_refuses_a_topic_for_the_leader_epoch_of_an_earlier_one_is_spared(
    world: World, broker_id: int, ended_before: bool, spared: bool
) -> None:
    """Seed 2684: before topic ids a log that was left behind is known by its leader epoch alone."""
    if ended_before:
        world.watch.ledger.topic_gone("t", (0, 1))
    sent = letter(world, LeaderAndIsr(1000, 1, world.brokers[broker_id].registration.broker_epoch, {}, {}, ()))
    refusal = ControlResponse(ErrorCode.NONE, {KEY: ErrorCode.STALE_CONTROLLER_EPOCH})
    world.watch.answered(Answered(world.brokers[broker_id], sent.letter, refusal))
    assert ("t" in world.watch.dark) is spared


@pytest.mark.parametrize(
    ("unreadable", "unconfirmed", "spared"), [(True, 3, True), (True, 2, False), (False, 3, False)]
)
def test_a_deletion_waits_for_nobody_whose_move_ended_where_that_could_not_be_stored(
    world: World, unreadable: bool, unconfirmed: int, spared: bool
) -> None:
    """Seed 6258: storage still had the replica that a move had dropped, since its topic could not be read."""
    row = world.ensemble.rows[KEY]._replace(removing=(3,))
    world.watch.confirmed = {(KEY, replica) for replica in row.replicas if replica != unconfirmed}
    world.watch.unreadable = {KEY} if unreadable else set()
    assert (topics.deletion_was_confirmed(world.watch, topic(world, {0: row}, {})) is None) is spared


@pytest.mark.parametrize(("partition_epoch", "spared"), [(-1, True), (0, False)])
def test_a_partition_that_was_added_while_its_topic_was_deleted_was_told_to_nobody(
    world: World, partition_epoch: int, spared: bool
) -> None:
    """Seed 9844: somebody added a partition a moment before the topic went."""
    row = world.ensemble.rows[KEY]
    world.watch.confirmed = {(KEY, replica) for replica in row.replicas}
    added = row._replace(key=("t", 1), partition_epoch=partition_epoch)
    assert (topics.deletion_was_confirmed(world.watch, topic(world, {0: row, 1: added}, {})) is None) is spared


@pytest.mark.parametrize(
    ("doomed", "leader", "spared"), [(True, 9, True), (True, 1, False), (False, 9, False)],
    ids=["nobody-told-of-it", "the-leader-lives", "an-election-reads-it"],
)  # fmt: skip
def test_the_last_isr_of_a_doomed_topic_may_be_unread(
    world: World, monkeypatch: pytest.MonkeyPatch, doomed: bool, leader: int, spared: bool
) -> None:
    """Seed 11582: before 2.7-IV2 a leader stored an ISR, and died before it told of it."""
    monkeypatch.setattr(world.ensemble, "record_names", lambda path: ["t"] if doomed else [])
    edit(world, leader=leader, partition_epoch=7)
    assert (rest.context_is_storage(world.watch, None) is None) is spared


@pytest.mark.parametrize(
    ("leaves", "isr", "spared"), [(True, (2, 3), True), (True, (1, 2, 3), False), (False, (2, 3), False)]
)
def test_who_is_shutting_down_is_told_nothing_of_topics_made_since(
    world: World, leaves: bool, isr: tuple[int, ...], spared: bool
) -> None:
    """Seeds 30548 and 30633: the first LeaderAndIsr of a broker that had nothing came when it was shutting down, and
    left out what had been made meanwhile."""
    cluster = world.controllers[0].loop.controller.cluster
    p, index = cluster.partitions, cluster.brokers.find(1)
    cluster.brokers.shutting_down[index] = leaves
    for start in p.slot_start:
        p.isr[start : start + len(isr)] = cluster.brokers.look_up(np.array(isr))
    p.isr_count[:] = len(isr)
    epoch = world.brokers[1].registration.broker_epoch
    world.watch.started.clear()
    requests.first_is_metadata(world.watch, letter(world, metadata(world)))
    sent = letter(world, LeaderAndIsr(1000, 1, epoch, {}, {}, ()))
    assert (requests.first_is_metadata(world.watch, sent) is None) is spared


@pytest.mark.parametrize(("believed", "had_it", "spared"), [(1, True, True), (0, True, False), (1, False, False)])
def test_who_lost_its_log_when_its_leader_had_heard_that_it_was_whole_is_no_witness(
    world: World, believed: int, had_it: bool, spared: bool
) -> None:
    """Seed 41907: a log directory died while the Fetch that took its broker into the ISR was under way."""
    write(world, 1, 3)
    promise(world)
    joins = state(world, isr=(1, 3, 2))._replace(before=world.ensemble.rows[KEY]._replace(isr=(1, 3)))
    world.brokers[1].model.partitions[KEY].replicas[2].end = believed
    if had_it:
        world.watch.ledger.gone[KEY].add(2)
    world.watch.ledger.state_written(joins)
    assert (records.in_sync_is_complete(world.watch, joins) is None) is spared


@pytest.mark.parametrize("written", [True, False], ids=["state-written", "nothing-written"])
@pytest.mark.parametrize(("anew", "spared"), [((1, 2), True), ((1,), False)], ids=["all", "all-but-one"])
def test_where_all_members_registered_anew_epochs_do_not_say_who_lost_its_log(
    world: World, anew: tuple[int, ...], spared: bool, written: bool
) -> None:
    """Seeds 341 and 485: the leader came back without its log and the other member with another registration, before a
    controller took over. It removes members that registered anew only where another member did not."""
    write(world, 1, 2, 3)
    promise(world)
    world.watch.ledger.state_written(state(world))
    edit(world, isr=(1, 2), leader_epoch=world.ensemble.rows[KEY].leader_epoch + 1)
    del world.brokers[1].model.disks.logs[KEY]
    world.watch.ledger.logs_lost(1, (KEY,))
    for registration in anew:
        broker = world.brokers[registration]
        broker.registration = replace(broker.registration, broker_epoch=broker.registration.broker_epoch + 100)
    if written:
        world.watch.ledger.state_written(state(world, isr=(1, 2)))
    world.watch.ledger.leadership_taken(KEY, 1)
    led = Led(world.brokers[1], KEY, world.ensemble.rows[KEY].leader_epoch + 1)
    assert (records.leaders_have_what_was_promised(world.watch, led) is None) is spared


@pytest.mark.parametrize(("remaining", "spared"), [((), True), ((KEY,), False), (None, False)])
def test_crash_after_a_granted_controlled_shutdown_cannot_be_told_from_its_end(
    world: World, remaining: tuple[tuple[str, int], ...] | None, spared: bool
) -> None:
    """Seed 505: the last in-sync replica requested a controlled shutdown, was not granted it, and crashed."""
    world.options = replace(world.options, hold_last=True)
    broker = world.brokers[2]
    if remaining is not None:
        request = ControlledShutdown(2, broker.registration.broker_epoch)
        response = ControlledShutdownResponse(ErrorCode.NONE, remaining)
        world.watch.observed.shutdown_answered(world.controllers[0], request, response)
    edit(world, isr=(2,), leader=-1)
    broker.bounce()
    elected = state(world, leader=2, isr=(2,))
    assert (records.last_replicas_wait_for_consent(world.watch, elected) is None) is spared


@pytest.mark.parametrize(("remaining", "orderly"), [((), True), ((KEY,), False)])
def test_only_a_granted_controlled_shutdown_is_orderly(
    world: World, remaining: tuple[tuple[str, int], ...], orderly: bool
) -> None:
    broker, observed = world.brokers[2], world.watch.observed
    request = ControlledShutdown(2, broker.registration.broker_epoch)
    observed.shutdown_answered(world.controllers[0], request, ControlledShutdownResponse(ErrorCode.NONE, remaining))
    observed.stopped_in_order(2)
    assert observed.leads_again(2) is orderly


@pytest.mark.parametrize(
    ("event", "told", "spared"), [(BrokersChanged(), (1, 2), True), (BrokersChanged(), (1,), False),
                                  (TopicModified("t"), (), True)],
    ids=["all-that-stay", "one-is-left-out", "stored-late"],
)  # fmt: skip
def test_assignments_stored_late_and_removed_replicas_need_no_leader_and_isr(
    world: World, event: Event, told: tuple[int, ...], spared: bool
) -> None:
    """Seeds 28, 49 and 191: a record could not be read when its reassignment ended, and was written once it could."""
    before = world.ensemble.topic_partitions("t")
    edit(world, removing=(3,))
    epochs = {(KEY, broker): world.ensemble.rows[KEY].leader_epoch for broker in told}
    changed = ended(world, event, topics={"t": before}, epochs_told=epochs)
    assert (requests.new_assignments_are_told(world.watch, changed) is None) is spared


@pytest.mark.parametrize(("event", "spared"), [(BrokersChanged(), False), (TopicModified("t"), True)])
def test_assignment_stored_late_may_drop_a_broker_that_registered_since(
    world: World, event: Event, spared: bool
) -> None:
    before = world.ensemble.topic_partitions("t")
    edit(world, replicas=(1, 2))
    assert (
        requests.whoever_leaves_is_told_to_delete(world.watch, ended(world, event, topics={"t": before})) is None
    ) is spared


@pytest.mark.parametrize(("partition_epoch", "spared"), [(NO_STATE, True), (0, False)])
def test_reassignment_of_a_partition_without_a_state_is_taken_out_of_storage(
    world: World, partition_epoch: int, spared: bool
) -> None:
    """Seed 13: the reassignment is reported as failed, as in Kafka, and begins with the first leader."""
    edit(world, replicas=(4, 1), adding=(4,), removing=(1,), partition_epoch=partition_epoch)
    changed = ended(world, calls={"write_reassignments": 1}, reassignments={KEY: (4,)})
    assert (events.moves_left_in_storage_stay(world.watch, changed) is None) is spared
