"""Histories that the invariants accept: observations without a defect, by seed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe.model.events import (
    BrokersChanged,
    ControlledShutdownRequested,
    Event,
    RebalanceLeaders,
    Reelect,
    TopicModified,
    TopicSettingsChanged,
)
from kframe.model.ids import NO_STATE
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import ControlResponse, LeaderAndIsr, LeaderState
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.invariants import events, members, records, requests, rest, topics
from kframe_simulator.simulation.notes import Notes
from kframe_simulator.simulation.observations import BecameLeader, EventCompleted, ResponseSent
from kframe_simulator.simulation.watch import Watch
from kframe_simulator.testing.at_rest import KEY, edit, ended, metadata, promise, queued, request, state, topic, write


def test_leader_with_delayed_earlier_epoch_is_exempt(simulation: Simulation) -> None:
    write(simulation, 2, 3)
    promise(simulation)
    assert records.leaders_have_acknowledged_records(simulation.watch, BecameLeader(simulation.brokers[1], KEY, 0))
    assert (
        records.leaders_have_acknowledged_records(simulation.watch, BecameLeader(simulation.brokers[1], KEY, -1))
        is None
    )


def test_unreadable_topic_is_exempt_until_its_next_leader_epoch(simulation: Simulation) -> None:
    """Seed 5093: a controller that knew an unreadable topic raised its leader epoch. Its successor did not know the
    topic, and refused a proposal under that epoch for good."""
    simulation.watch.unreadable.add(KEY)
    simulation.ensemble.malform(0, 0)
    exempt = []
    for _ in range(2):
        raised = state(simulation)
        simulation.state_written(KEY, raised.before, raised.after, None, None)
        exempt.append(KEY in simulation.watch.unreadable)
        simulation.ensemble.repair()
    assert exempt == [True, False]


@pytest.mark.parametrize(
    ("broker_id", "ended_before", "exempt"),
    [(1, True, True), (4, True, False), (1, False, False)],
    ids=["log-of-an-earlier-topic", "no-log", "first-topic-of-the-name"],
)
def test_refusal_by_the_leader_epoch_of_an_earlier_topic_is_exempt(
    simulation: Simulation, broker_id: int, ended_before: bool, exempt: bool
) -> None:
    """Seed 2684: without topic ids, only the leader epoch shows that a log is of an earlier topic."""
    if ended_before:
        simulation.watch.record_history.topic_deleted("t", (0, 1))
    sent = request(simulation, LeaderAndIsr(1000, 1, simulation.brokers[broker_id].registration.broker_epoch, {}))
    refusal = ControlResponse(ErrorCode.NONE, {KEY: ErrorCode.STALE_CONTROLLER_EPOCH})
    simulation.watch.response_sent(ResponseSent(simulation.brokers[broker_id], sent, refusal))
    assert ("t" in simulation.watch.mismatched_topics) is exempt


@pytest.mark.parametrize(
    ("unreadable", "unconfirmed", "exempt"), [(True, 3, True), (True, 2, False), (False, 3, False)]
)
def test_deletion_does_not_wait_for_a_replica_of_an_unstored_reassignment_end(
    simulation: Simulation, unreadable: bool, unconfirmed: int, exempt: bool
) -> None:
    """Seed 6258: storage still listed a removed replica, because the topic was unreadable."""
    row = simulation.ensemble.rows[KEY]._replace(removing=(3,))
    simulation.watch.confirmed = {(KEY, replica) for replica in row.replicas if replica != unconfirmed}
    simulation.watch.unreadable = {KEY} if unreadable else set()
    assert (topics.deletion_was_confirmed(simulation.watch, topic(simulation, {0: row}, {})) is None) is exempt


@pytest.mark.parametrize(
    ("sent", "exempt"),
    [
        (((5, True), (6, False)), True),
        (((5, True), (5, False)), True),
        (((5, False), (6, True)), False),
        (((5, False), (5, True)), False),
    ],
)
def test_added_replica_is_new_in_its_first_request(
    simulation: Simulation, sent: tuple[tuple[int, bool], ...], exempt: bool
) -> None:
    """Seeds 8200191 and 8200404: after the first request, a preferred election or the end of a reassignment followed in
    the same event."""
    row, notes = simulation.ensemble.rows[KEY], Notes()
    notes.topics["t"] = {0: row}
    for leader_epoch, is_new in sent:
        leadership = LeaderState(1, 1, leader_epoch, (1, 2, 3), 5, (4, 1, 2, 3), adding_replicas=(4,), is_new=is_new)
        notes.leader_and_isr(4, LeaderAndIsr(1000, 1, 9, {KEY: leadership}))
    added = row._replace(replicas=(4, *row.replicas), adding=(4,))
    assert notes.not_sent_as_new({KEY: added}) == (() if exempt else ((KEY, 4),))


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


@pytest.mark.parametrize(("isr", "exempt"), [((1, 2), True), ((1, 2, 3), False)])
def test_replica_outside_of_first_isr_is_not_new(simulation: Simulation, isr: tuple[int, ...], exempt: bool) -> None:
    """Seed 40000897: a reassignment initialised a partition. One of its replicas was on a broker that shut down."""
    notes = Notes(created={KEY: isr})
    notes.leader_and_isr(3, LeaderAndIsr(1000, 1, 9, {KEY: LeaderState(1, 1, 1, isr, 1, (1, 2, 3))}))
    assert notes.not_sent_as_new(simulation.ensemble.rows) == (() if exempt else ((KEY, 3),))


@pytest.mark.parametrize(("partition_epoch", "exempt"), [(-1, True), (0, False)])
def test_partition_added_during_deletion_is_not_sent(
    simulation: Simulation, partition_epoch: int, exempt: bool
) -> None:
    """Seed 9844: another client added a partition just before the topic was deleted."""
    row = simulation.ensemble.rows[KEY]
    simulation.watch.confirmed = {(KEY, replica) for replica in row.replicas}
    added = row._replace(key=("t", 1), partition_epoch=partition_epoch)
    assert (
        topics.deletion_was_confirmed(simulation.watch, topic(simulation, {0: row, 1: added}, {})) is None
    ) is exempt


@pytest.mark.parametrize(
    ("deleting", "leader", "exempt"), [(True, 9, True), (True, 1, False), (False, 9, False)],
    ids=["not-notified", "the-leader-lives", "an-election-reads-it"],
)  # fmt: skip
def test_unread_isr_of_deleting_topic_is_exempt(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, deleting: bool, leader: int, exempt: bool
) -> None:
    """Seed 11582: before 2.7-IV2 a leader wrote an ISR, and died before the notification."""
    monkeypatch.setattr(simulation.ensemble, "record_names", lambda path: ["t"] if deleting else [])
    edit(simulation, leader=leader, partition_epoch=7)
    assert (rest.context_equals_storage(simulation.watch, None) is None) is exempt


@pytest.mark.parametrize(
    ("leaves", "isr", "exempt"), [(True, (2, 3), True), (True, (1, 2, 3), False), (False, (2, 3), False)]
)
def test_missing_new_topics_during_controlled_shutdown_are_exempt(
    simulation: Simulation, leaves: bool, isr: tuple[int, ...], exempt: bool
) -> None:
    """Seeds 30548 and 30633: a broker without replicas received its first LeaderAndIsr during its controlled shutdown.
    The request did not include partitions created since then."""
    cluster = simulation.controllers[0].loop.controller.cluster
    p, index = cluster.partitions, cluster.brokers.find(1)
    cluster.brokers.shutting_down[index] = leaves
    for start in p.slot_start:
        p.isr[start : start + len(isr)] = cluster.brokers.look_up(np.array(isr))
    p.isr_count[:] = len(isr)
    epoch = simulation.brokers[1].registration.broker_epoch
    simulation.watch.started.clear()
    requests.first_request_is_update_metadata(simulation.watch, queued(simulation, metadata(simulation)))
    first = queued(simulation, LeaderAndIsr(1000, 1, epoch, {}))
    assert (requests.first_request_is_update_metadata(simulation.watch, first) is None) is exempt


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
    for registration in anew:
        broker = simulation.brokers[registration]
        broker.registration = replace(broker.registration, broker_epoch=broker.registration.broker_epoch + 100)
    if written:
        simulation.watch.record_history.state_written(state(simulation, isr=(1, 2)))
    simulation.watch.record_history.leadership_taken(KEY, 1)
    led = BecameLeader(simulation.brokers[1], KEY, simulation.ensemble.rows[KEY].leader_epoch + 1)
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


@pytest.mark.parametrize("notified", [(1, 2), (1,)], ids=["all-that-stay", "one-is-left-out"])
def test_removed_replica_is_exempt_from_leader_and_isr(simulation: Simulation, notified: tuple[int, ...]) -> None:
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, removing=(3,))
    epochs = {(KEY, broker): simulation.ensemble.rows[KEY].leader_epoch for broker in notified}
    changed = ended(simulation, topics={"t": before}, sent_epochs=epochs)
    assert (requests.new_assignments_are_sent(simulation.watch, changed) is None) is (notified == (1, 2))


@pytest.mark.parametrize(
    ("sent", "exempt"), [("before", True), ("now", False), ("another", False), ("never", False)],
)  # fmt: skip
def test_assignment_stored_late_is_exempt(simulation: Simulation, sent: str, exempt: bool) -> None:
    """Seeds 28, 49, 191 and 40000405: a record was unreadable when its reassignment ended. A later event stored the
    assignment: the record became readable, or partitions were added."""
    before, event = simulation.ensemble.topic_partitions("t"), TopicModified("t")
    edit(simulation, replicas=(1, 2))
    assignment = (1, 2) if sent != "another" else (2, 1)
    simulation.controllers[0].event = event if sent == "now" else BrokersChanged()
    if sent != "never":
        leader_state = LeaderState(1, 1, 0, (1, 2), 0, assignment, is_new=False)
        epoch = simulation.brokers[1].registration.broker_epoch
        simulation.watch.observed.queued(
            simulation.controllers[0], request(simulation, LeaderAndIsr(1000, 1, epoch, {KEY: leader_state}))
        )
    changed = ended(simulation, event, topics={"t": before})
    assert (requests.new_assignments_are_sent(simulation.watch, changed) is None) is exempt
    assert (requests.removed_replicas_are_deleted(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize(("partition_epoch", "exempt"), [(NO_STATE, True), (0, False)])
def test_removed_reassignment_of_partition_without_state_is_exempt(
    simulation: Simulation, partition_epoch: int, exempt: bool
) -> None:
    """Seed 13: the reassignment is reported as failed, as in Kafka, and begins with the first leader."""
    edit(simulation, replicas=(4, 1), adding=(4,), removing=(1,), partition_epoch=partition_epoch)
    changed = ended(simulation, calls={"write_reassignments": 1}, reassignments={KEY: (4,)})
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


@pytest.mark.parametrize("unreadable", [True, False])
def test_deletion_of_topic_that_failover_could_not_read_begins_later(simulation: Simulation, unreadable: bool) -> None:
    """Seed 40000053: a record became readable during a failover."""
    process = simulation.controllers[0]
    if unreadable:
        simulation.ensemble.malform(0, 0)
    simulation.watch.observed.loaded(process)
    simulation.ensemble.repair()
    simulation.ensemble.mark_for_deletion(["t"])
    simulation.watch.observed.event_begins(process, Reelect())
    took_over = ended(simulation, Reelect(), calls={"load": 1})
    assert (members.deletions_begin_at_once(simulation.watch, took_over) is None) is unreadable


@pytest.mark.parametrize(("departed", "exempt"), [({3}, True), ({4}, False), ((), False)])
def test_reassignment_may_go_on_after_an_unclean_election_of_its_target(
    simulation: Simulation, departed: Collection[int], exempt: bool
) -> None:
    """Seed 40000797: a target replica registered, then the leader failed. An unclean election made the target the
    ISR."""
    edit(simulation, replicas=(1, 3), adding=(1,), removing=(3,), leader=1, isr=(1,))
    changed = ended(simulation, written=(KEY,), arrived=frozenset({1}), departed=frozenset(departed))
    assert (members.reassignments_end_after_broker_startup(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize(("unsent", "exempt"), [((), True), ((3,), False)], ids=["all-replicas", "all-but-one"])
def test_deletion_of_partitions_without_state_begins_with_stop_replica(
    simulation: Simulation, unsent: Collection[int], exempt: bool
) -> None:
    """Seeds 40000624 and 41000129: UpdateMetadata has no partitions without a state."""
    process = simulation.controllers[0]
    for key, row in simulation.ensemble.rows.items():
        simulation.ensemble.rows[key] = row._replace(partition_epoch=NO_STATE)
        for replica in set(row.replicas).difference(unsent):
            simulation.watch.observed.of_term(process).sent_deletions[key, replica] = 0
    simulation.ensemble.mark_for_deletion(["t"])
    simulation.watch.observed.event_begins(process, Reelect())
    took_over = ended(simulation, Reelect(), calls={"load": 1})
    assert (members.deletions_begin_at_once(simulation.watch, took_over) is None) is exempt


def test_new_topic_of_the_same_name_is_readable(simulation: Simulation) -> None:
    """Seed 41000129: the record of a deleted topic was unreadable, and a topic of the same name was created."""
    simulation.ensemble.malform(0, 0)
    assert simulation.ensemble.readable(["t"]) == []
    simulation.controllers[0].store.delete_topics(("t",))
    assert simulation.ensemble.readable(["t"]) == [0]


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
        simulation, calls={"drop_preferred_election": 1}, elections=frozenset({KEY}),
        overwritten=frozenset({KEY} if overwritten else ()),
    )  # fmt: skip
    assert (rule(simulation.watch, changed) is None) is overwritten


@pytest.mark.parametrize(("rewritten", "exempt"), [("unchanged", True), ("isr", False), ("never", False)])
def test_lost_log_is_exempt_if_a_rewritten_state_masks_the_registration(
    simulation: Simulation, rewritten: str, exempt: bool
) -> None:
    """Seed 40002255: the leader restarted without its log, and another client rewrote the state. No controller ran."""
    history = simulation.watch.record_history
    write(simulation, 1, 2, 3)
    promise(simulation)
    history.state_written(state(simulation))
    del simulation.brokers[1].model.disks.logs[KEY]
    history.logs_lost(1, (KEY,))
    leader = simulation.brokers[1]
    leader.registration = replace(leader.registration, broker_epoch=leader.registration.broker_epoch + 100)
    row = simulation.ensemble.rows[KEY]
    if rewritten != "never":
        changes = {"isr": (1, 2)} if rewritten == "isr" else {}
        history.state_written(state(simulation, leader_epoch=row.leader_epoch, **changes)._replace(process=None))
    history.leadership_taken(KEY, 1)
    led = BecameLeader(leader, KEY, row.leader_epoch)
    assert (records.leaders_have_acknowledged_records(simulation.watch, led) is None) is exempt
    assert history.watched(KEY) is not exempt
