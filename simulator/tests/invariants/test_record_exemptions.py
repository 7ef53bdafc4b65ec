"""Histories of records and logs that the invariants accept: observations without a defect, by seed."""

from __future__ import annotations

from collections.abc import Callable
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
from kframe_simulator.simulation.watch import Watch
from verification.simulator.at_rest import KEY, edit, log, promise, state, write
from verification.simulator.broken import proposal


def test_leader_with_delayed_earlier_epoch_is_exempt(simulation: Simulation) -> None:
    write(simulation, 2, 3)
    promise(simulation)
    assert records.leaders_have_acknowledged_records(simulation.watch, BecameLeader(simulation.brokers[1], KEY, 0))
    assert (
        records.leaders_have_acknowledged_records(simulation.watch, BecameLeader(simulation.brokers[1], KEY, -1))
        is None
    )


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


def refuse(simulation: Simulation, isr: tuple[int, ...], error: ErrorCode, leader_epoch: int) -> None:
    """A controller refuses a proposal."""
    refused = proposal(simulation, isr, leader_epoch=np.array([leader_epoch], np.int32))
    history = simulation.watch.record_history
    history.refused_proposals.refused(refused, np.array([error.value], np.int16), simulation.watch.ids_used)


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
    simulation: Simulation,
    refused: tuple[int, ...],
    error: ErrorCode,
    leader_epoch: int,
    pending: PendingIsr | None,
    exempt: bool,
) -> None:
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


@pytest.mark.parametrize(("refused", "written"), [(True, (1, 2)), (False, (1, 2)), (True, (1, 2, 3))])
def test_committed_record_without_promise_is_lost_if_an_unknown_member_that_lacks_it_leads(
    simulation: Simulation, refused: bool, written: tuple[int, ...]
) -> None:
    """Seed 10079065: as 10020128, but no record was acknowledged with acks=all."""
    history = simulation.watch.record_history
    write(simulation, *written)
    leader = simulation.brokers[1].model.partitions[KEY]
    leader.isr, leader.pending = (1, 2), None
    assert leader.leader_log is not None
    leader.leader_log.high_watermark = 1
    assert (
        records.committed_records_stay(simulation.watch, LogChanged(simulation.brokers[1], KEY, log(simulation, 1)))
        is None
    )
    epoch = simulation.ensemble.rows[KEY].leader_epoch
    if refused:
        refuse(simulation, (1, 2, 3), INELIGIBLE, epoch)
    history.state_written(state(simulation, isr=(1, 2, 3), leader_epoch=epoch))
    history.state_written(state(simulation, leader=3, isr=(2, 3)))
    assert (KEY in history.committed) is (not refused or 3 in written)


def test_isr_member_of_which_the_leader_did_not_know_is_checked_after_it_has_caught_up(simulation: Simulation) -> None:
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.unknown_to_leader[KEY] = {3}
    history.state_written(state(simulation))
    del simulation.brokers[3].model.disks.logs[KEY]
    assert records.isr_members_have_acknowledged_records(simulation.watch, state(simulation))


@pytest.mark.parametrize(
    ("between", "retained_end", "exempt"),
    [(2, 1, True), (1, 1, False), (2, 0, False)],
    ids=["deposed", "no other leader", "end unknown"],
)
def test_isr_member_is_exempt_if_its_leader_has_kept_an_earlier_end(
    simulation: Simulation, between: int, retained_end: int, exempt: bool
) -> None:
    """Seed 799427773: a leader did not learn that another broker had led. Its follower had truncated its log."""
    history = simulation.watch.record_history
    write(simulation, 1, 2)
    for leader in (between, 1):
        written = state(simulation, leader=leader)
        history.state_written(written)
        simulation.ensemble.rows[KEY] = written.after
    partition = simulation.brokers[1].model.partitions[KEY]
    partition.leader_epoch = simulation.ensemble.rows[KEY].leader_epoch
    partition.replicas[3].end = retained_end
    assert partition.leader_log is not None
    partition.leader_log.high_watermark = 1
    promise(simulation)
    history.log_changed(KEY)
    logged = LogChanged(simulation.brokers[1], KEY, log(simulation, 1))
    assert (records.high_watermark_is_replicated(simulation.watch, logged) is None) is exempt
    assert (records.isr_members_have_acknowledged_records(simulation.watch, state(simulation)) is None) is exempt
    partition.replicas[3].end = 0
    history.log_changed(KEY)
    assert (records.high_watermark_is_replicated(simulation.watch, logged) is None) is exempt
    elected = state(simulation, leader=3, isr=(2, 3))
    history.state_written(elected)
    led = BecameLeader(simulation.brokers[3], KEY, elected.after.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt


def test_isr_member_with_an_overrated_end_is_checked_after_it_has_caught_up(simulation: Simulation) -> None:
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.overrated[KEY] = {3}
    history.log_changed(KEY)
    assert history.overrated[KEY] == set()


@pytest.mark.parametrize(
    ("broker_id", "leader_epoch", "exempt"),
    [(2, 5, True), (2, 0, False), (4, 5, False), (None, 5, False)],
    ids=["later-epoch", "same-epoch", "not-assigned", "of-this-topic"],
)
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
        ("later-epoch", (1, 2), True),
        ("unreadable", (1, 2), True),
        ("mismatched", (1, 2), True),
        ("none", (1, 2), False),
        ("later-epoch", (1, 2, 3), False),
        ("unreadable", (1, 2, 3), False),
    ],
)
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


@pytest.mark.parametrize(
    ("error", "partition_epoch", "exempt"),
    [(INELIGIBLE, 4, True), (INELIGIBLE, 5, False), (ErrorCode.INVALID_UPDATE_VERSION, 4, False)],
    ids=["behind", "knows-the-state", "another-error"],
)
@pytest.mark.parametrize("rule", [rest.all_replicas_are_in_sync, rest.no_operator_work_is_pending])
def test_isr_of_a_leader_that_does_not_know_it_cannot_grow(
    simulation: Simulation,
    rule: Callable[[Watch, None], str | None],
    error: ErrorCode,
    partition_epoch: int,
    exempt: bool,
) -> None:
    """The neighbour of seed 10020128: all later proposals get INVALID_UPDATE_VERSION."""
    edit(simulation, isr=(1, 2), adding=(3,), partition_epoch=5)
    refuse(simulation, (1, 2), error, simulation.ensemble.rows[KEY].leader_epoch)
    simulation.brokers[1].model.partitions[KEY].partition_epoch = partition_epoch
    assert (rule(simulation.watch, None) is None) is exempt
