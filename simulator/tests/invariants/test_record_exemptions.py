"""Histories of records and logs that the invariants accept: observations without a defect, by seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import Produce, ProduceResponse
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.broker.partition import PendingIsr
from kframe_simulator.invariants import records, rest
from kframe_simulator.simulation.observations import BecameLeader, LogChanged, RecordAcknowledged
from kframe_simulator.simulation.record_history import Value
from kframe_simulator.testing.at_rest import KEY, edit, log, promise, state, write
from kframe_simulator.testing.broken import close_channel, proposal


def register_again(simulation: Simulation, broker_id: int, known: bool = True) -> None:
    """Change the registration of a broker. ``known``: the controller has read it."""
    broker = simulation.brokers[broker_id]
    broker.registration = replace(broker.registration, broker_epoch=broker.registration.broker_epoch + 100)
    if known:
        channel = simulation.controllers[0].transport.channels[broker_id]
        channel.broker_epoch = broker.registration.broker_epoch


def test_leader_with_delayed_earlier_epoch_is_exempt(simulation: Simulation) -> None:
    write(simulation, 2, 3)
    promise(simulation)
    assert records.leaders_have_acknowledged_records(simulation.watch, BecameLeader(simulation.brokers[1], KEY, 0))
    assert (
        records.leaders_have_acknowledged_records(simulation.watch, BecameLeader(simulation.brokers[1], KEY, -1))
        is None
    )


@pytest.mark.parametrize(("believed", "had_it", "exempt"), [(1, True, True), (0, True, False), (1, False, False)])
def test_log_lost_after_a_complete_fetch_is_exempt(
    simulation: Simulation, believed: int, had_it: bool, exempt: bool
) -> None:
    """Seed 41907: a log directory failed while the Fetch that added its broker to the ISR was in flight."""
    write(simulation, 1, 3)
    promise(simulation)
    joins = state(simulation, isr=(1, 3, 2))._replace(before=simulation.ensemble.rows[KEY]._replace(isr=(1, 3)))
    simulation.brokers[1].model.partitions[KEY].replicas[2].end = believed
    if had_it:
        simulation.watch.record_history.brokers_with_lost_logs[KEY].add(2)
    simulation.watch.record_history.state_written(joins)
    assert (records.isr_members_have_acknowledged_records(simulation.watch, joins) is None) is exempt


@pytest.mark.parametrize(("believed", "had_it", "exempt"), [(1, True, True), (0, True, False), (1, False, False)])
def test_log_lost_after_a_fetch_is_exempt_before_the_isr_is_stored(
    simulation: Simulation, believed: int, had_it: bool, exempt: bool
) -> None:
    """Seed 360001523: a broker lost its disks while a Fetch was in flight, for which the leader then proposed it."""
    write(simulation, 1, 3, high_watermark=1)
    simulation.brokers[1].model.partitions[KEY].replicas[2].end = believed
    if had_it:
        simulation.watch.record_history.brokers_with_lost_logs[KEY].add(2)
    changed = LogChanged(simulation.brokers[1], KEY, log(simulation, 1))
    assert (records.high_watermark_is_replicated(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize("written", [True, False], ids=["state-written", "nothing-written"])
@pytest.mark.parametrize(("anew", "exempt"), [((1, 2), True), ((1,), False)], ids=["all", "all-but-one"])
def test_lost_log_is_exempt_if_all_isr_members_reregistered(
    simulation: Simulation, anew: tuple[int, ...], exempt: bool, written: bool
) -> None:
    """Seeds 341 and 485: before a failover the leader restarted without its log, and the other member registered again.
    The controller removes members that registered again only if another member did not."""
    write(simulation, 1, 2, 3)
    promise(simulation)
    simulation.watch.record_history.state_written(state(simulation))
    edit(simulation, isr=(1, 2), leader_epoch=simulation.ensemble.rows[KEY].leader_epoch + 1)
    del simulation.brokers[1].model.disks.logs[KEY]
    simulation.watch.record_history.logs_lost(1, (KEY,))
    for broker_id in anew:
        register_again(simulation, broker_id)
    if written:
        simulation.watch.record_history.state_written(state(simulation, isr=(1, 2)))
    simulation.watch.record_history.became_leader(KEY, 1)
    led = BecameLeader(simulation.brokers[1], KEY, simulation.ensemble.rows[KEY].leader_epoch + 1)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt


@pytest.mark.parametrize(
    ("unknown", "exempt"), [((2,), True), ((), False)], ids=["the-other-is-unknown", "the-other-is-registered"]
)
def test_lost_log_is_exempt_if_all_registered_isr_members_reregistered(
    simulation: Simulation, unknown: tuple[int, ...], exempt: bool
) -> None:
    """Seeds 349281303 and 341: the leader restarted without its log, another member registered again. The third had
    failed, or its registration was unreadable. The controller raised the leader epoch, and removed the third after
    that."""
    write(simulation, 1, 2, 3)
    promise(simulation)
    history = simulation.watch.record_history
    history.state_written(state(simulation))
    del simulation.brokers[1].model.disks.logs[KEY]
    history.logs_lost(1, (KEY,))
    for broker_id in (1, 3):
        register_again(simulation, broker_id)
    for broker_id in unknown:
        close_channel(simulation, broker_id)
    raised = state(simulation)
    history.state_written(raised)
    led = BecameLeader(simulation.brokers[1], KEY, raised.after.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt


@pytest.mark.parametrize(
    ("earlier", "anew", "exempt"),
    [((), (2, 3), True), ((), (2,), False), ((3,), (2,), False)],
    ids=["all", "all-but-one", "one-while-the-leader-led"],
)
def test_lost_log_is_exempt_if_a_state_without_a_leader_comes_first(
    simulation: Simulation, earlier: tuple[int, ...], anew: tuple[int, ...], exempt: bool
) -> None:
    """Seed 10012780: there was no controller. The leader failed, and the other members registered again, one with an
    empty disk. The failover removed the leader in a write of its own, before it elected the next one."""
    write(simulation, 1, 2, 3)
    promise(simulation)
    history = simulation.watch.record_history
    for broker_id in earlier:
        register_again(simulation, broker_id)
    history.state_written(state(simulation))
    del simulation.brokers[2].model.disks.logs[KEY]
    history.logs_lost(2, (KEY,))
    for broker_id in anew:
        register_again(simulation, broker_id)
    close_channel(simulation, 1)
    removed = state(simulation, leader=-1, isr=(2, 3))
    history.state_written(removed)
    simulation.ensemble.rows[KEY] = removed.after
    elected = state(simulation, leader=2)
    history.state_written(elected)
    led = BecameLeader(simulation.brokers[2], KEY, elected.after.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt


@pytest.mark.parametrize(("remaining", "exempt"), [((), True), ((KEY,), False), (None, False)])
def test_crash_after_granted_controlled_shutdown_is_exempt(
    simulation: Simulation, remaining: tuple[tuple[str, int], ...] | None, exempt: bool
) -> None:
    """Seed 505: the last in-sync replica requested a controlled shutdown, was not granted it, and crashed."""
    simulation.options = replace(simulation.options, hold_last=True)
    broker = simulation.brokers[2]
    if remaining is not None:
        request = ControlledShutdown(2, broker.registration.broker_epoch)
        response = ControlledShutdownResponseData(ErrorCode.NONE, remaining)
        simulation.watch.observed.on_shutdown_response(simulation.controllers[0], request, response)
    edit(simulation, isr=(2,), leader=-1)
    broker.bounce()
    elected = state(simulation, leader=2, isr=(2,))
    assert (records.last_replicas_wait_for_consent(simulation.watch, elected) is None) is exempt


@pytest.mark.parametrize(
    ("rewritten", "exempt"),
    [("unchanged", True), ("isr", True), ("never", False), ("again", False), ("before-the-loss", False)],
)
def test_lost_log_is_exempt_if_a_rewritten_state_masks_the_registration(
    simulation: Simulation, rewritten: str, exempt: bool
) -> None:
    """Seed 40002255: the leader restarted without its log, and another client rewrote the state. No controller ran.
    Before 2.7-IV2 the other client may be a leader that writes an ISR."""
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.state_written(state(simulation))
    del simulation.brokers[1].model.disks.logs[KEY]
    if rewritten != "before-the-loss":
        history.logs_lost(1, (KEY,))
    register_again(simulation, 1)
    row = simulation.ensemble.rows[KEY]
    if rewritten != "never":
        changes = {"isr": (1, 2)} if rewritten == "isr" else {}
        history.state_written(state(simulation, leader_epoch=row.leader_epoch, **changes)._replace(process=None))
    if rewritten == "again":
        register_again(simulation, 1)
    if rewritten == "before-the-loss":
        history.logs_lost(1, (KEY,))
    history.became_leader(KEY, 1)
    led = BecameLeader(simulation.brokers[1], KEY, row.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt
    assert history.watched(KEY) is not exempt


@pytest.mark.parametrize(("known", "exempt"), [(False, True), (True, False)], ids=["not-known", "known"])
def test_lost_log_is_exempt_if_a_controller_wrote_the_state_without_the_registration(
    simulation: Simulation, known: bool, exempt: bool
) -> None:
    """The neighbour of seed 40002255: a controller wrote the state before it handled the registration, and crashed. Its
    write has a new leader epoch, so that logs are compared further."""
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.state_written(state(simulation))
    del simulation.brokers[1].model.disks.logs[KEY]
    history.logs_lost(1, (KEY,))
    register_again(simulation, 1, known)
    written = state(simulation)
    history.state_written(written)
    assert history.promises[KEY]
    simulation.ensemble.rows[KEY] = written.after
    history.became_leader(KEY, 1)
    led = BecameLeader(simulation.brokers[1], KEY, written.after.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt
    assert history.watched(KEY)


@pytest.mark.parametrize(
    ("anew", "later", "exempt"),
    [((1, 2, 3), (), True), ((1, 2), (), False), ((1, 2, 3), (2,), False)],
    ids=["all", "all-but-one", "once-more"],
)
def test_lost_log_is_exempt_if_its_broker_leads_after_the_first_leader(
    simulation: Simulation, anew: tuple[int, ...], later: tuple[int, ...], exempt: bool
) -> None:
    """The neighbour of seed 349281303: all ISR members had registered again, a follower with an empty disk. The leader
    got a new leader epoch, and failed before the follower had caught up."""
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.state_written(state(simulation))
    del simulation.brokers[2].model.disks.logs[KEY]
    history.logs_lost(2, (KEY,))
    for broker_id in anew:
        register_again(simulation, broker_id)
    raised = state(simulation)
    history.state_written(raised)
    assert history.promises[KEY]
    simulation.ensemble.rows[KEY] = raised.after
    for broker_id in later:
        register_again(simulation, broker_id)
    elected = state(simulation, leader=2, isr=(2, 3))
    history.state_written(elected)
    led = BecameLeader(simulation.brokers[2], KEY, elected.after.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt


def refuse(simulation: Simulation, isr: tuple[int, ...], error: ErrorCode, leader_epoch: int) -> None:
    """A controller refuses a proposal."""
    refused = proposal(simulation, isr, leader_epoch=np.array([leader_epoch], np.int32))
    history = simulation.watch.record_history
    history.proposals_refused(refused, np.array([error.value], np.int16), simulation.watch.ids_used)


INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA
ADDING, SHRINKING = PendingIsr((1, 2, 3), (1, 2, 3), 0, 0), PendingIsr((1,), (1, 2), 0, 0)


@pytest.mark.parametrize(
    ("refused", "error", "leader_epoch", "pending", "exempt"),
    [
        ((1, 2, 3), INELIGIBLE, 0, None, True),
        ((1, 2, 3), ErrorCode.OPERATION_NOT_ATTEMPTED, 0, None, True),
        ((1, 2, 3), INELIGIBLE, 0, SHRINKING, True),
        ((1, 2, 3), INELIGIBLE, 0, ADDING, False),
        ((1, 2, 3), ErrorCode.INVALID_UPDATE_VERSION, 0, None, False),
        ((1, 2, 3), INELIGIBLE, 1, None, False),
        ((1, 2), INELIGIBLE, 0, None, False),
    ],
    ids=["repeated", "not-attempted", "shrinking", "awaited", "another-error", "another-leader-epoch", "another-isr"],
)
def test_isr_member_of_which_the_leader_does_not_know_is_exempt(
    simulation: Simulation, refused: tuple[int, ...], error: ErrorCode, leader_epoch: int, pending: PendingIsr | None,
    exempt: bool,
) -> None:  # fmt: skip
    """Seed 10020128: a proposal was refused, because its new member had just failed. The same request arrived again
    after the member had registered, and was accepted. The leader did not wait for it, and acknowledged records without
    the new member."""
    history = simulation.watch.record_history
    write(simulation, 1, 2)
    promise(simulation)
    leader = simulation.brokers[1].model.partitions[KEY]
    leader.isr, leader.pending = (1, 2), pending
    epoch = simulation.ensemble.rows[KEY].leader_epoch
    refuse(simulation, refused, error, epoch + leader_epoch)
    joined = state(simulation, isr=(1, 2, 3), leader_epoch=epoch)
    history.state_written(joined)
    assert (records.isr_members_have_acknowledged_records(simulation.watch, joined) is None) is exempt
    elected = state(simulation, leader=3, isr=(2, 3))
    history.state_written(elected)
    led = BecameLeader(simulation.brokers[3], KEY, elected.after.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt


@pytest.mark.parametrize("refused", [True, False])
def test_isr_member_is_exempt_if_the_refusal_arrives_after_the_repeated_request(
    simulation: Simulation, refused: bool
) -> None:
    """The neighbour of seed 10020128: the response to the first request was in flight when the second was accepted."""
    history = simulation.watch.record_history
    leader = simulation.brokers[1].model.partitions[KEY]
    leader.isr, leader.pending = (1, 2), ADDING
    epoch = simulation.ensemble.rows[KEY].leader_epoch
    if refused:
        refuse(simulation, (1, 2, 3), INELIGIBLE, epoch)
    history.state_written(state(simulation, isr=(1, 2, 3), leader_epoch=epoch))
    assert history.unknown_to_leader[KEY] == set()
    leader.pending = None
    write(simulation, 1, 2)
    produced = Produce(KEY, Value(0, 1))
    assert history.acknowledge(produced, ProduceResponse(ErrorCode.NONE, 0, epoch), 0)
    acknowledged = records.acknowledged_record_is_on_isr(simulation.watch, RecordAcknowledged(KEY))
    assert (acknowledged is None) is refused


def test_isr_member_of_which_the_leader_did_not_know_is_checked_after_it_has_caught_up(simulation: Simulation) -> None:
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.unknown_to_leader[KEY] = {3}
    history.state_written(state(simulation))
    del simulation.brokers[3].model.disks.logs[KEY]
    assert records.isr_members_have_acknowledged_records(simulation.watch, state(simulation))


@pytest.mark.parametrize(
    ("broker_id", "leader_epoch", "exempt"), [(2, 5, True), (2, 0, False), (4, 5, False), (None, 5, False)],
    ids=["later-epoch", "same-epoch", "not-assigned", "of-this-topic"],
)  # fmt: skip
def test_replica_that_follows_a_log_of_an_earlier_topic_may_stay_out_of_sync(
    simulation: Simulation, broker_id: int | None, leader_epoch: int, exempt: bool
) -> None:
    """Seed 10020068: before topic ids, a leader had missed the deletion of its replica, and had restarted. Its log had
    records of later leader epochs than that of the new topic. Its follower got OFFSET_OUT_OF_RANGE for good."""
    write(simulation, 2, leader_epoch=leader_epoch)
    if broker_id is not None:
        simulation.watch.record_history.stale_logs["t"] = {(broker_id, KEY)}
        simulation.brokers[broker_id].model.disks.logs[KEY] = log(simulation, 2)
    edit(simulation, isr=(1, 2))
    assert (rest.all_replicas_are_in_sync(simulation.watch, None) is None) is exempt


@pytest.mark.parametrize(
    ("cause", "isr", "exempt"),
    [
        ("later-epoch", (1, 2), True), ("unreadable", (1, 2), True), ("mismatched", (1, 2), True),
        ("none", (1, 2), False), ("later-epoch", (1, 2, 3), False), ("unreadable", (1, 2, 3), False),
    ],
)  # fmt: skip
def test_reassignment_whose_target_cannot_join_the_isr_may_go_on(
    simulation: Simulation, cause: str, isr: tuple[int, ...], exempt: bool
) -> None:
    """The neighbour of seed 10020068 and of L5 for unreadable topics: the target replica never catches up, or its
    leader cannot propose it."""
    edit(simulation, replicas=(1, 2, 3), adding=(3,), isr=isr)
    if cause == "later-epoch":
        write(simulation, 1, leader_epoch=5)
        simulation.watch.record_history.stale_logs["t"] = {(1, KEY)}
    elif cause == "unreadable":
        simulation.watch.unreadable.add(KEY)
    elif cause == "mismatched":
        simulation.watch.mismatched_topics.add("t")
    assert (rest.no_operator_work_is_pending(simulation.watch, None) is None) is exempt
