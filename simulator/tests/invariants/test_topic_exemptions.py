"""Histories of topics, and of the requests about them, that the invariants accept, by seed."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe.model.events import (
    BrokersChanged,
    Reelect,
    TopicModified,
)
from kframe.model.ids import NO_STATE
from kframe.ports.store_requests import DeleteTopics, Load, WriteReassignments
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import ControlResponse, LeaderAndIsr, LeaderState, PartitionMetadata
from kframe_simulator.invariants import events, members, requests, rest, topics
from kframe_simulator.simulation.observations import ResponseSent
from verification.simulator.at_rest import KEY, edit, ended, metadata, queued, request, state, topic


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
    row = simulation.ensemble.rows[KEY]
    adding = ended(simulation, topics={"t": {0: row}})
    for leader_epoch, is_new in sent:
        leadership = LeaderState(1, 1, leader_epoch, (1, 2, 3), 5, (4, 1, 2, 3), adding_replicas=(4,), is_new=is_new)
        adding.leader_and_isr(4, LeaderAndIsr(1000, 1, 9, {KEY: leadership}))
    adding.complete({}, {KEY: row._replace(replicas=(4, *row.replicas), adding=(4,))})
    assert (requests.new_replicas_are_sent_as_new(simulation.watch, adding) is None) is exempt


@pytest.mark.parametrize(("isr", "exempt"), [((1, 2), True), ((1, 2, 3), False)])
def test_replica_outside_of_first_isr_is_not_new(simulation: Simulation, isr: tuple[int, ...], exempt: bool) -> None:
    """Seed 40000897: a reassignment initialised a partition. One of its replicas was on a broker that shut down."""
    created = ended(simulation, created={KEY: isr})
    created.leader_and_isr(3, LeaderAndIsr(1000, 1, 9, {KEY: LeaderState(1, 1, 1, isr, 1, (1, 2, 3))}))
    created.complete({}, simulation.ensemble.rows)
    assert (requests.new_replicas_are_sent_as_new(simulation.watch, created) is None) is exempt


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
    ("deleting", "leader", "exempt"),
    [(True, 9, True), (True, 1, False), (False, 9, False)],
    ids=["not-notified", "the-leader-lives", "an-election-reads-it"],
)
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


@pytest.mark.parametrize("notified", [(1, 2), (1,)], ids=["all-that-stay", "one-is-left-out"])
def test_removed_replica_is_exempt_from_leader_and_isr(simulation: Simulation, notified: tuple[int, ...]) -> None:
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, removing=(3,))
    epochs = {(KEY, broker): simulation.ensemble.rows[KEY].leader_epoch for broker in notified}
    changed = ended(simulation, topics={"t": before}, sent_epochs=epochs)
    assert (requests.new_assignments_are_sent(simulation.watch, changed) is None) is (notified == (1, 2))


@pytest.mark.parametrize(
    ("sent", "exempt"),
    [("before", True), ("now", False), ("another", False), ("never", False)],
)
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


@pytest.mark.parametrize("message", ["LeaderAndIsr", "UpdateMetadata"])
@pytest.mark.parametrize("stored", [(1, 2), (4, 1, 2)], ids=["as-sent", "with-the-next-reassignment"])
@pytest.mark.parametrize(
    ("sent", "absent_at", "exempt"),
    [
        ([(1, 2)], {0}, True),
        ([(1, 2), (2, 1)], {0}, True),
        ([(1, 2)], set(), False),
        ([(1, 2), (2, 1)], {1}, False),
        ([(1, 2), (1, 2, 3), (1, 2)], {0}, False),
        ([(1, 2), None], {0}, False),
        ([], set(), False),
    ],
    ids=["absent", "registered-since", "registered", "absent-later", "removed-again", "topic-deleted", "never-sent"],
)
def test_replica_removed_while_its_broker_was_absent_is_not_deleted(
    simulation: Simulation,
    message: str,
    stored: tuple[int, ...],
    sent: list[tuple[int, ...] | None],
    absent_at: set[int],
    exempt: bool,
) -> None:
    """Seeds 28, 49, 191 and 10044673: a record was unreadable when a reassignment removed a replica whose broker was
    down. The broker registered again. Then the removal was stored, alone or with the next reassignment."""
    process, before = simulation.controllers[0], simulation.ensemble.topic_partitions("t")
    channel = process.transport.channels[3]
    for number, replicas in enumerate(sent):
        if replicas is None:
            simulation.watch.observed.topic_deleted([KEY])
            continue
        if number in absent_at:
            process.transport.channels.pop(3)
        leader_state = LeaderState(1, 1, 0, (1, 2), 0, replicas)
        requests_sent = {
            "LeaderAndIsr": LeaderAndIsr(1000, 1, 9, {KEY: leader_state}),
            "UpdateMetadata": metadata(simulation, partitions={KEY: PartitionMetadata(1, 0, (1, 2), 0, replicas)}),
        }
        simulation.watch.observed.queued(process, request(simulation, requests_sent[message]))
        process.transport.channels[3] = channel
    edit(simulation, replicas=stored)
    changed = ended(simulation, topics={"t": before})
    assert (requests.removed_replicas_are_deleted(simulation.watch, changed) is None) is exempt


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
    took_over = ended(simulation, Reelect(), requests={Load: 1})
    assert (members.deletions_begin_at_once(simulation.watch, took_over) is None) is unreadable


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
    took_over = ended(simulation, Reelect(), requests={Load: 1})
    assert (members.deletions_begin_at_once(simulation.watch, took_over) is None) is exempt


def test_new_topic_of_the_same_name_is_readable(simulation: Simulation) -> None:
    """Seed 41000129: the record of a deleted topic was unreadable, and a topic of the same name was created."""
    simulation.ensemble.malform(0, 0)
    assert simulation.ensemble.readable(["t"]) == []
    simulation.controllers[0].store.perform(DeleteTopics(("t",)))
    assert simulation.ensemble.readable(["t"]) == [0]


@pytest.mark.parametrize("deleted", [True, False])
def test_new_topic_of_the_same_name_was_not_unreadable_at_failover(simulation: Simulation, deleted: bool) -> None:
    """Seed 10048668: a topic that the failover could not read was repaired and deleted. Its controller created another
    one of the same name, with the leader epoch that the first had at the failover."""
    simulation.ensemble.malform(0, 0)
    simulation.watch.observed.loaded(simulation.controllers[0])
    simulation.ensemble.repair()
    if deleted:
        simulation.watch.observed.topic_deleted(list(simulation.ensemble.rows))
    assert (rest.late_topics_have_a_new_epoch(simulation.watch, None) is None) is deleted
    edit(simulation, replicas=(4, 1), adding=(4,), removing=(1,))
    simulation.watch.observed.of_term(simulation.controllers[0]).announced.clear()
    changed = ended(simulation, requests={WriteReassignments: 1}, reassignments={KEY: (4,)})
    assert (events.stored_reassignments_stay(simulation.watch, changed) is None) is not deleted
