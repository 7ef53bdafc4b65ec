"""Histories of elections, shutdowns and reassignments that the invariants accept, by seed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.changes import StoredStates
from kframe.model.events import (
    BrokersChanged,
    ControlledShutdownRequested,
    Event,
    LeaderAndIsrResponseReceived,
    RebalanceLeaders,
    TopicPartition,
    TopicSettingsChanged,
)
from kframe.model.ids import NO_STATE
from kframe.ports.store_requests import DropPreferredElection, Load, WriteReassignments
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import LeaderAndIsr, LeaderState
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.invariants import events, members, rest
from kframe_simulator.simulation.controller_facts import Assignment, Epochs
from kframe_simulator.simulation.observations import EventCompleted
from kframe_simulator.simulation.watch import Watch
from verification.simulator.at_rest import KEY, edit, ended, request, state, topic
from verification.simulator.broken import close_channel


@pytest.mark.parametrize("paused", [True, False])
def test_session_that_expires_in_a_pause_ends_no_controlled_shutdown(simulation: Simulation, paused: bool) -> None:
    """Seed 32001000: a broker shut down, started, was paused, and registered again. The controller held its partition
    back."""
    observed, broker = simulation.watch.observed, simulation.brokers[1]
    observed._orderly[1] = observed.term(simulation.controllers[0])
    if paused:
        broker.pause()
    until = simulation.scheduler.now_ms + 2 * simulation.session_timeout_ms
    simulation._run_until(lambda: simulation.scheduler.now_ms > until)
    assert (broker.registered, observed.stopped_in_current_term(1)) == (not paused, not paused)


@pytest.mark.parametrize("seen", ["never", "at-the-crash", "later"])
def test_crash_that_the_controller_has_not_seen_is_none(simulation: Simulation, seen: str) -> None:
    """Seed 10066729: a broker stopped in order, started and crashed while the controller's server lagged. It led again
    when it started once more."""
    observed, broker, process = simulation.watch.observed, simulation.brokers[1], simulation.controllers[0]
    observed._orderly[1] = observed.term(process)
    observed._incarnations[KEY] = {1: broker.incarnation}
    channel = process.transport.channels[1]
    if seen != "at-the-crash":
        channel.broker_epoch -= 1
    observed.crashed(1)
    broker.incarnation, broker.restarted_after_crash = broker.incarnation + 1, True
    if seen == "later":
        channel.broker_epoch += 1
    observed.event_ended(process, BrokersChanged())
    assert (observed.stopped_in_current_term(1), observed.crashed_since(KEY, 1)) == (seen == "never", seen != "never")


@pytest.mark.parametrize(("remaining", "orderly"), [((), True), ((KEY,), False)])
def test_only_a_granted_controlled_shutdown_is_orderly(
    simulation: Simulation, remaining: tuple[tuple[str, int], ...], orderly: bool
) -> None:
    broker, observed = simulation.brokers[2], simulation.watch.observed
    request = ControlledShutdown(2, broker.registration.broker_epoch)
    observed.on_shutdown_response(
        simulation.controllers[0], request, ControlledShutdownResponseData(ErrorCode.NONE, remaining)
    )
    observed.stopped_in_order(2)
    assert observed.stopped_in_current_term(2) is orderly


@pytest.mark.parametrize(("partition_epoch", "exempt"), [(NO_STATE, True), (0, False)])
def test_removed_reassignment_of_partition_without_state_is_exempt(
    simulation: Simulation, partition_epoch: int, exempt: bool
) -> None:
    """Seed 13: the reassignment is reported as failed, as in Kafka, and begins with the first leader."""
    edit(simulation, replicas=(4, 1), adding=(4,), removing=(1,), partition_epoch=partition_epoch)
    changed = ended(simulation, requests={WriteReassignments: 1}, reassignments={KEY: (4,)})
    assert (events.stored_reassignments_stay(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize(
    ("unread", "unreadable_topics", "announced", "exempt"),
    [({"t"}, set(), True, True), (set(), {"t"}, False, True), (set(), {"t"}, True, False), (set(), set(), True, False)],
    ids=["in-the-event", "since-the-failover", "read-later", "readable"],
)
def test_removed_reassignment_of_unread_topic_is_exempt(
    simulation: Simulation, unread: set[str], unreadable_topics: set[str], announced: bool, exempt: bool
) -> None:
    """Seed 10001288: the record was unreadable at the end of a reassignment, and repaired in the same event."""
    edit(simulation, replicas=(4, 1), adding=(4,), removing=(1,))
    term = simulation.watch.observed.of_term(simulation.controllers[0])
    term.unreadable_topics = unreadable_topics
    term.announced = {KEY: Epochs(0, 0)} if announced else {}
    changed = ended(simulation, requests={WriteReassignments: 1}, reassignments={KEY: (4,)}, unread=frozenset(unread))
    assert (events.stored_reassignments_stay(simulation.watch, changed) is None) is exempt


def test_leader_that_shuts_down_keeps_its_partitions_when_a_setting_changes(simulation: Simulation) -> None:
    """Seed 8200227: a topic allowed unclean elections while a leader waited for its controlled shutdown."""
    process, leader = simulation.controllers[0], simulation.ensemble.rows[KEY].leader
    simulation.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    simulation.watch.observed.of_term(process).leaving[leader] = simulation.brokers[leader].registration.broker_epoch
    changed = ended(simulation, TopicSettingsChanged("t"))
    assert members.settings_elect_at_once(simulation.watch, changed) is None
    edit(simulation, leader=-1)
    assert members.settings_elect_at_once(simulation.watch, changed)


@pytest.mark.parametrize(("broker_id", "exempt"), [(3, True), (1, False)], ids=["another-broker", "the-leader"])
def test_controlled_shutdown_elects_no_leaders_for_other_brokers(
    simulation: Simulation, broker_id: int, exempt: bool
) -> None:
    """Seed 8200328: the last in-sync replica waited for its controlled shutdown. Its ISR grew, and another broker
    requested a controlled shutdown."""
    process = simulation.controllers[0]
    assert simulation.ensemble.rows[KEY].leader == 1
    for leaving in {1, broker_id}:
        epoch = simulation.brokers[leaving].registration.broker_epoch
        simulation.watch.observed.of_term(process).leaving[leaving] = epoch
    epoch = simulation.brokers[broker_id].registration.broker_epoch
    shutdown = ended(simulation, ControlledShutdownRequested(broker_id, epoch))
    assert (members.in_sync_partitions_have_leaders(simulation.watch, shutdown) is None) is exempt


@pytest.mark.parametrize(("versions", "exempt"), [((-1,), True), ((0,), False), ((-1, 0), False)])
def test_lagging_server_hides_isr_members(simulation: Simulation, versions: tuple[int, ...], exempt: bool) -> None:
    """Seed 10052035: before 2.7-IV2 a leader had added a replica, and requested a controlled shutdown. The controller's
    server lagged and returned the ISR without the replica."""
    process, row = simulation.controllers[0], simulation.ensemble.rows[KEY]
    del simulation.ensemble.rows["t", 1]
    epoch = simulation.brokers[row.leader].registration.broker_epoch
    event = ControlledShutdownRequested(row.leader, epoch)
    simulation.watch.observed.event_begins(process, event)
    cluster = process.loop.controller.cluster
    rows = np.array([cluster.row(*KEY)], np.int32)
    for behind in versions:
        version = np.array([row.partition_epoch + behind], np.int32)
        read = StoredStates(rows, rows >= 0, rows, rows, rows, version, rows.astype(np.uint8), Ragged.of([[1]]))
        simulation.states_read(process.controller_id, cluster, rows, read)
    read_behind = simulation._event_of(process.controller_id).read_behind
    shutdown = ended(simulation, event, read_behind=read_behind)
    for rule in (members.failed_brokers_leave_isrs, members.in_sync_partitions_have_leaders):
        assert (rule(simulation.watch, shutdown) is None) is exempt


def storage_response(simulation: Simulation, broker_id: int, *failed: TopicPartition) -> None:
    """A broker responds to LeaderAndIsr. It reports failed log directories of these partitions."""
    process = simulation.controllers[0]
    errors = tuple((key, ErrorCode.KAFKA_STORAGE_ERROR) for key in failed)
    rows = np.array([process.loop.controller.cluster.row(*KEY)], np.int32)
    epoch = process.store.claimed_epoch
    response = LeaderAndIsrResponseReceived(broker_id, ErrorCode.NONE, errors, epoch, rows)
    simulation.watch.observed.event_begins(process, response)


@pytest.mark.parametrize(
    ("sender", "failed", "since", "exempt"),
    [
        (1, (2, 3), "", True),
        (1, (3,), "", False),
        (2, (2, 3), "", False),
        (1, (2, 3), "responded", False),
        (1, (2, 3), "registered-again", False),
        (1, (2, 3), "deleted", False),
        (1, (3,), "failed", True),
        (2, (3,), "leader-failed", False),
    ],
)
def test_leader_that_no_member_can_replace_stays_in_its_isr(
    simulation: Simulation, sender: int, failed: Collection[int], since: str, exempt: bool
) -> None:
    """Seed 10011098: the leader requested a controlled shutdown. The log directory of the other in-sync replica had
    failed after the Fetch for which the leader proposed it, and the broker crashed later."""
    observed, process = simulation.watch.observed, simulation.controllers[0]
    del simulation.ensemble.rows["t", 1]
    for broker_id in failed:
        storage_response(simulation, broker_id, KEY)
    if since == "responded":
        storage_response(simulation, 2)
    if since == "registered-again":
        process.transport.channels[2].broker_epoch += 100
    if since == "deleted":
        observed.topic_deleted([KEY])
    if since == "failed":
        close_channel(simulation, 2)
        edit(simulation, isr=(1, 3))
    if since == "leader-failed":
        close_channel(simulation, 1)
        edit(simulation, isr=(1, 3))
    epoch = simulation.brokers[sender].registration.broker_epoch
    observed.event_begins(process, ControlledShutdownRequested(sender, epoch))
    shutdown = ended(simulation, ControlledShutdownRequested(sender, epoch))
    assert (members.failed_brokers_leave_isrs(simulation.watch, shutdown) is None) is exempt


@pytest.mark.parametrize(
    ("added", "by_leader", "departed", "load", "exempt"),
    [
        ("after", True, (), 0, True),
        ("before", True, (), 0, False),
        ("after", False, (), 0, False),
        ("after", True, (3,), 0, False),
        ("after", True, (), 1, False),
        ("after-and-removed", True, (), 0, False),
    ],
)
def test_replica_that_a_leader_adds_after_its_failure_stays_in_the_isr(
    simulation: Simulation, added: str, by_leader: bool, departed: Collection[int], load: int, exempt: bool
) -> None:
    """Seed 10015850: before 2.7-IV2 a leader added a replica that had fetched all records, and then failed. The
    controller had handled the failure. Its next event was about other brokers."""
    row = simulation.ensemble.rows[KEY]
    del simulation.ensemble.rows["t", 1]
    if added != "before":
        close_channel(simulation, 3)
    joined = state(simulation)._replace(before=row._replace(isr=(1, 2)))
    simulation.watch.observed.state_written(joined._replace(process=None) if by_leader else joined)
    if added == "before":
        close_channel(simulation, 3)
    if added == "after-and-removed":
        simulation.watch.observed.state_written(state(simulation, isr=(1, 2)))
    changed = ended(simulation, requests={Load: load}, departed=frozenset(departed))
    assert (members.failed_brokers_leave_isrs(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize(
    ("event", "late", "exempt"),
    [
        (ControlledShutdownRequested(1, -1), True, True),
        (ControlledShutdownRequested(1, -1), False, False),
        (BrokersChanged(), True, False),
    ],
)
def test_controlled_shutdown_keeps_a_member_that_a_leader_has_added_after_its_failure(
    simulation: Simulation, event: Event, late: bool, exempt: bool
) -> None:
    """The neighbour of seed 10015850: the leader shut down before its follower left the ISR."""
    process, row = simulation.controllers[0], simulation.ensemble.rows[KEY]
    joined = state(simulation)._replace(before=row._replace(isr=(1, 2)), process=None)
    if late:
        close_channel(simulation, 3)
    simulation.watch.observed.state_written(joined)
    if not late:
        close_channel(simulation, 3)
    process.event = event
    simulation.watch.observed.of_term(process).leaving[1] = simulation.brokers[1].registration.broker_epoch
    elected = state(simulation, leader=2, isr=(2, 3))
    assert (members.leaders_are_live(simulation.watch, elected) is None) is exempt


@pytest.mark.parametrize(
    ("leader", "later", "deleted", "exempt"),
    [(-1, False, False, True), (-1, True, False, False), (1, False, False, False), (-1, False, True, False)],
    ids=["added-now", "brokers-changed-since", "added-to-a-partition-with-a-leader", "topic-deleted-since"],
)
def test_added_replica_of_partition_without_leader_awaits_an_election(
    simulation: Simulation, leader: int, later: bool, deleted: bool, exempt: bool
) -> None:
    """Seeds 8200111, 8200286, 200101 and 200136: a topic allowed unclean elections. A reassignment added a live replica
    to a partition whose replicas had all failed."""
    edit(simulation, replicas=(9,), isr=(9,), leader=leader)
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, replicas=(4, 9), adding=(4,))
    simulation.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    process = simulation.controllers[0]
    process.event = BrokersChanged()
    simulation.watch.reassignments.topic_written(topic(simulation, before))
    simulation.watch.reassignments.leaders_elected(BrokersChanged() if later else process.event)
    if deleted:
        simulation.watch.reassignments.topic_written(topic(simulation, after={}))
    edit(simulation, leader=-1)
    assert (rest.unclean_partitions_have_leaders(simulation.watch, None) is None) is exempt


@pytest.mark.parametrize(
    ("departed", "bounced", "exempt"),
    [
        ({3}, (), True),
        ({4}, (), False),
        ((), (), False),
        ((), {3}, True),
        ((), {4}, False),
        ((), {1, 3}, False),
        ({3}, {1}, True),
    ],
)
def test_reassignment_may_go_on_after_an_unclean_election_of_its_target(
    simulation: Simulation, departed: Collection[int], bounced: Collection[int], exempt: bool
) -> None:
    """Seeds 40000797 and 10001740: a target replica registered, then the leader failed or registered again. An unclean
    election made the target the ISR."""
    edit(simulation, replicas=(1, 3), adding=(1,), removing=(3,), leader=1, isr=(1,))
    changed = ended(
        simulation, written=(KEY,), arrived=frozenset({1}), departed=frozenset(departed), bounced=frozenset(bounced)
    )
    assert (members.reassignments_end_after_broker_startup(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize(
    ("sent", "exempt"),
    [(((1,), (), ()), True), (((1, 3), (1,), (3,)), False), (None, False)],
    ids=["its-end", "its-start", "nothing"],
)
def test_reassignment_whose_end_is_not_stored_has_ended(
    simulation: Simulation, sent: Assignment | None, exempt: bool
) -> None:
    """Seed 370000575: the record was unreadable at the end of a reassignment. It became readable, and its notification
    was delayed. A target replica registered before that."""
    edit(simulation, replicas=(1, 3), adding=(1,), removing=(3,), leader=1, isr=(1,))
    if sent is not None:
        replicas, adding, removing = sent
        leader_state = LeaderState(1, 1, 0, (1,), 0, replicas, adding, removing)
        epoch = simulation.brokers[1].registration.broker_epoch
        message = LeaderAndIsr(1000, 1, epoch, {KEY: leader_state})
        simulation.watch.observed.queued(simulation.controllers[0], request(simulation, message))
    changed = ended(simulation, arrived=frozenset({1}))
    assert (members.reassignments_end_after_broker_startup(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize(
    ("event", "exempt"),
    [(RebalanceLeaders(), True), (ControlledShutdownRequested(1, -1), False), (BrokersChanged(), False)],
)
def test_preferred_election_keeps_isr_member_that_shuts_down(
    simulation: Simulation, event: Event, exempt: bool
) -> None:
    """Found in changed plans: the last in-sync replica waited for its controlled shutdown, and the ISR grew."""
    process = simulation.controllers[0]
    process.event = event
    simulation.watch.observed.of_term(process).leaving[1] = simulation.brokers[1].registration.broker_epoch
    elected = state(simulation, leader=2, isr=(2, 1))
    assert (members.leaders_are_live(simulation.watch, elected) is None) is exempt


@pytest.mark.parametrize("overwritten", [True, False])
@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        (members.in_sync_partitions_have_leaders, {"leader": -1}),
        (members.failed_brokers_leave_isrs, {"isr": (1, 2, 9), "replicas": (1, 2, 9)}),
        (members.stored_elections_are_performed, {"leader": 2}),
    ],
)
def test_isr_that_a_leader_writes_during_an_event_is_exempt(
    simulation: Simulation,
    rule: Callable[[Watch, EventCompleted], str | None],
    changes: dict[str, Any],
    overwritten: bool,
) -> None:
    """Before inter-broker protocol 2.7-IV2 a controller cannot know what a leader writes after it has read the ISR."""
    edit(simulation, **changes)
    changed = ended(
        simulation,
        requests={DropPreferredElection: 1},
        elections=frozenset({KEY}),
        overwritten=frozenset({KEY} if overwritten else ()),
    )
    assert (rule(simulation.watch, changed) is None) is overwritten
