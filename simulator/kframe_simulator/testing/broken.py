"""Histories that break the invariants about observed controllers (``simulation.observed``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.errors import ErrorCode
from kframe.model.columns import Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    BrokersChanged,
    DeletionsMarked,
    Elect,
    IsrChangesNotified,
    LeaderAndIsrResponseReceived,
    ReassignmentRequested,
    RebalanceLeaders,
    SessionExpired,
    TopicSettingsChanged,
)
from kframe.model.ids import LEADER_DURING_DELETE, NO_EPOCH, NO_STATE, ReplicaState
from kframe.model.tables import RequestedPartitions, Targets
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import LeaderAndIsr, LeaderState, PartitionMetadata
from kframe_simulator.invariants import events, members, proposals, records, requests, rest, roles, states, topics
from kframe_simulator.simulation.observations import Begun, Claimed, Proposed, Trigger, WriteRefused
from kframe_simulator.simulation.watch import Watch
from kframe_simulator.testing.at_rest import KEY, edit, ended, metadata, post, state, stop, topic

Broken = tuple[Trigger, Any]


def proposal(
    simulation: Simulation, isr: tuple[int, ...], broker_id: int = 1, **changes: Any
) -> AlterPartitionRequested:
    """A leader's proposal for the stored state."""
    row = simulation.ensemble.rows[KEY]
    defaults: dict[str, Any] = {
        "partitions": RequestedPartitions.of([KEY]),
        "broker_epoch": simulation.brokers[broker_id].registration.broker_epoch,
        "leader_epoch": np.array([row.leader_epoch], np.int32),
        "partition_epoch": np.array([row.partition_epoch], np.int32),
    }
    return AlterPartitionRequested(
        broker_id, version=1, recovery=np.zeros(1, np.uint8), isr=Ragged.of([isr]),
        **(defaults | changes),
    )  # fmt: skip


def close_channel(simulation: Simulation, broker_id: int) -> None:
    """Close a channel, as after the end of a registration."""
    del simulation.controllers[0].transport.channels[broker_id]


def answered(event: Any = None, error: ErrorCode = ErrorCode.NONE) -> LeaderAndIsrResponseReceived:
    return LeaderAndIsrResponseReceived(1, error, (), 0, np.empty(0, np.int32))


def metadata_of(leader: int) -> dict[Any, PartitionMetadata]:
    return {KEY: PartitionMetadata(leader, 0, (1, 2, 3), 0, (1, 2, 3), ())}


def _sends_without_certainty(simulation: Simulation) -> Broken:
    simulation.controllers[0].store.lost_role = True
    return Trigger.QUEUED, post(simulation, metadata(simulation))


def _begins_before_the_expiry(simulation: Simulation) -> Broken:
    simulation.controllers[0].store.expiries += 1
    return Trigger.BEGUN, Begun(simulation.controllers[0], BrokersChanged())


def _elects_dead_leader(simulation: Simulation) -> Broken:
    close_channel(simulation, 2)
    return Trigger.STATE, state(simulation, leader=2, isr=(2, 3))


def _elects_with_dead_members(simulation: Simulation) -> Broken:
    close_channel(simulation, 1)
    return Trigger.STATE, state(simulation, leader=2, isr=(2, 1))


def _accepts_dead_members(simulation: Simulation) -> Broken:
    close_channel(simulation, 3)
    simulation.controllers[0].event = proposal(simulation, (1, 3))
    return Trigger.STATE, state(simulation, isr=(1, 3), leader_epoch=simulation.ensemble.rows[KEY].leader_epoch)


def _accepts_earlier_registrations(simulation: Simulation) -> Broken:
    event = proposal(simulation, (1, 3), isr_epochs=np.array([-1, 1], np.int64))
    simulation.controllers[0].event = event
    return Trigger.STATE, state(simulation, isr=(1, 3), leader_epoch=simulation.ensemble.rows[KEY].leader_epoch)


def _accepts_another_sender(simulation: Simulation) -> Broken:
    simulation.options = replace(simulation.options, strict=True)
    simulation.controllers[0].event = proposal(simulation, (1, 2), broker_id=2)
    return Trigger.STATE, state(simulation, isr=(1, 2), leader_epoch=simulation.ensemble.rows[KEY].leader_epoch)


def _dead_member_stays(simulation: Simulation) -> Broken:
    close_channel(simulation, 3)
    return Trigger.EVENT, ended(simulation, BrokersChanged())


def _no_election(simulation: Simulation) -> Broken:
    edit(simulation, leader=-1)
    return Trigger.EVENT, ended(simulation, BrokersChanged())


def _reassignment_continues(simulation: Simulation) -> Broken:
    edit(simulation, removing=(3,))
    return Trigger.EVENT, ended(simulation, BrokersChanged(), arrived=frozenset({1}))


def _election_is_not_performed(simulation: Simulation) -> Broken:
    edit(simulation, leader=2)
    return Trigger.EVENT, ended(simulation, Elect(), calls={"drop_preferred_election": 1}, elections=frozenset({KEY}))


def _never_stored(simulation: Simulation) -> Broken:
    return Trigger.QUEUED, post(simulation, metadata(simulation, partitions=metadata_of(3)))


def _old_replicas(simulation: Simulation) -> Broken:
    simulation.brokers[1].model.partitions[KEY].replica_ids = (1, 2)
    return Trigger.RESTED, None


def _earlier_answer_writes(simulation: Simulation) -> Broken:
    return Trigger.EVENT, ended(simulation, answered(), calls={"write_states": 1})


def _earlier_sender(simulation: Simulation) -> Broken:
    event = proposal(simulation, (1, 2, 3), broker_epoch=0)
    response = AlterPartitionResponse(ErrorCode.NONE, np.zeros(1, np.int16))
    return Trigger.PROPOSED, Proposed(simulation.controllers[0], event, response, frozenset())


def code(simulation: Simulation, error: ErrorCode, **changes: Any) -> Broken:
    """The response to a proposal of the stored ISR has this error code."""
    event = proposal(simulation, simulation.ensemble.rows[KEY].isr, **changes)
    response = AlterPartitionResponse(ErrorCode.NONE, np.array([error], np.int16))
    return Trigger.PROPOSED, Proposed(simulation.controllers[0], event, response, frozenset())


def _repeats_deletion_without_event(simulation: Simulation) -> Broken:
    observed, process = simulation.watch.observed, simulation.controllers[0]
    observed.queued(
        process,
        post(simulation, metadata(simulation, partitions=metadata_of(LEADER_DURING_DELETE))).request,
    )
    observed.repeats_deletion(process, KEY, 1)
    return Trigger.QUEUED, post(simulation, stop(simulation))


def _removed_replica_is_not_deleted(simulation: Simulation) -> Broken:
    before = {0: simulation.ensemble.rows[KEY]._replace(replicas=(1, 2, 3, 4))}
    return Trigger.EVENT, ended(simulation, topics={"t": before})


def _no_id(simulation: Simulation) -> Broken:
    simulation.ensemble.topic_ids["t"] = bytes(16)
    return Trigger.RESTED, None


def _adds_dead_replica(simulation: Simulation) -> Broken:
    close_channel(simulation, 4)
    simulation.controllers[0].event = ReassignmentRequested(Targets.of([(KEY, (1, 2, 4))]))
    now = simulation.ensemble.topic_partitions("t")
    return Trigger.TOPIC, topic(simulation, after=now | {0: now[0]._replace(replicas=(1, 2, 3, 4), adding=(4,))})


def _names_broker_twice(simulation: Simulation) -> Broken:
    now = simulation.ensemble.topic_partitions("t")
    return Trigger.TOPIC, topic(simulation, after=now | {0: now[0]._replace(replicas=(1, 1, 2))})


def _forgets_read_states(simulation: Simulation) -> Broken:
    simulation.watch.observed.states_read(simulation.controllers[0], {KEY: 99})
    return Trigger.EVENT, ended(simulation, calls={"read_states": 1})


def _elects_current_leader(simulation: Simulation) -> Broken:
    simulation.controllers[0].event = RebalanceLeaders()
    return Trigger.STATE, state(simulation)


def _fails_in_a_row(simulation: Simulation) -> Broken:
    process = simulation.controllers[0]
    for _ in range(2):
        process.loop.controller.failures += 1
        simulation.watch.observed.event_ended(process, Elect())
    return Trigger.CLAIMED, Claimed(process, 2)


def _sends_other_partitions(simulation: Simulation) -> Broken:
    simulation.controllers[0].event = IsrChangesNotified()
    return Trigger.QUEUED, post(simulation, metadata(simulation, partitions=metadata_of(1)))


def _notified_twice(simulation: Simulation) -> Broken:
    event = BrokersChanged()
    simulation.watch.observed.is_repeated_event(simulation.controllers[0], event)
    return Trigger.BEGUN, Begun(simulation.controllers[0], event)


def _unclean_is_not_elected(simulation: Simulation) -> Broken:
    simulation.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    edit(simulation, leader=-1)
    return Trigger.QUIESCENT, None


def _setting_without_election(simulation: Simulation) -> Broken:
    simulation.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    edit(simulation, leader=-1, isr=(9,))
    return Trigger.EVENT, ended(simulation, TopicSettingsChanged("t"))


def _unbalanced(simulation: Simulation) -> Broken:
    simulation.options, simulation.changed_ms = replace(simulation.options, rebalance=True), -1e9
    edit(simulation, leader=2)
    return Trigger.RESTED, None


def _stored_reassignment_is_removed(simulation: Simulation) -> Broken:
    edit(simulation, replicas=(1, 2, 3, 4), adding=(4,))
    return Trigger.EVENT, ended(simulation, calls={"write_reassignments": 1}, reassignments={KEY: (1, 2, 3, 4)})


def _notification_stays(simulation: Simulation) -> Broken:
    simulation.ensemble.notify_isr_changes([KEY])
    return Trigger.RESTED, None


def _late_topic_keeps_its_epoch(simulation: Simulation) -> Broken:
    observed, process = simulation.watch.observed, simulation.controllers[0]
    process.store.claimed_epoch += 1
    assert simulation.ensemble.malform(0, 0)
    observed.loaded(process)
    simulation.ensemble.repair()
    return Trigger.RESTED, None


def _refused_after_own_write(simulation: Simulation) -> Broken:
    simulation.watch.last_writer[KEY] = simulation.controllers[0]
    return Trigger.REFUSED, WriteRefused(simulation.controllers[0], KEY)


def _elects_against_the_setting(simulation: Simulation) -> Broken:
    edit(simulation, isr=(1,))
    return Trigger.STATE, state(simulation, leader=2, isr=(2,))


def _elects_without_consent(simulation: Simulation) -> Broken:
    simulation.options = replace(simulation.options, hold_last=True)
    simulation.brokers[2].bounce()
    edit(simulation, isr=(2,), leader=-1)
    return Trigger.STATE, state(simulation, leader=2, isr=(2,))


def _unassigned_stay_at_failover(simulation: Simulation) -> Broken:
    edit(simulation, replicas=(1, 2))
    return Trigger.EVENT, ended(simulation, Elect(), calls={"load": 1})


def _reassigned_without_leader(simulation: Simulation) -> Broken:
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, partition_epoch=NO_STATE, leader=-1, isr=())
    event = ReassignmentRequested(Targets.of([(KEY, (1, 2, 3))]))
    return Trigger.EVENT, ended(simulation, event, topics={"t": before})


def _deletion_does_not_begin(simulation: Simulation) -> Broken:
    simulation.ensemble.mark_for_deletion(["t"])
    simulation.watch.observed.event_begins(simulation.controllers[0], Elect())
    return Trigger.EVENT, ended(simulation, Elect(), calls={"load": 1})


def _deletion_mark_is_removed(simulation: Simulation) -> Broken:
    simulation.ensemble.mark_for_deletion(["t"])
    simulation.watch.observed.event_begins(simulation.controllers[0], DeletionsMarked())
    simulation.controllers[0].store.drop_deletions(("t",))
    return Trigger.EVENT, ended(simulation, DeletionsMarked(), calls={"drop_deletions": 1})


def _sends_unassigned_replicas(simulation: Simulation) -> Broken:
    row = simulation.ensemble.rows[KEY]
    state = LeaderState(1, row.leader, row.leader_epoch, row.isr, row.partition_epoch, (1, 2, 3, 4), (4,), (), False)
    return Trigger.QUEUED, post(simulation, LeaderAndIsr(1000, 1, 1, {KEY: state}))


def _last_in_sync_log_is_deleted(simulation: Simulation) -> Broken:
    edit(simulation, removing=(1,), leader=-1, isr=(2,))
    return Trigger.QUEUED, post(simulation, stop(simulation))


def _replica_has_no_state(simulation: Simulation) -> Broken:
    p = simulation.controllers[0].loop.controller.cluster.partitions
    p.replica_state[p.slots_of(np.zeros(1, np.int32))[0]] = ReplicaState.NON_EXISTENT
    return Trigger.EVENT, ended(simulation)


def _assignment_not_sent(simulation: Simulation) -> Broken:
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, removing=(3,))
    epochs = {(KEY, 1): simulation.ensemble.rows[KEY].leader_epoch}
    return Trigger.EVENT, ended(simulation, topics={"t": before}, sent_epochs=epochs)


def _deleted_id_is_known(simulation: Simulation) -> Broken:
    return code(simulation, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=((b"x" * 16, 0),))


#: The invariant that must fail, and the function that breaks it.
VIOLATIONS_OF_OBSERVATIONS: list[tuple[Callable[[Watch, Any], str | None], Callable[[Simulation], Broken]]] = [
    (requests.only_controllers_send, _sends_without_certainty),
    (roles.expiry_is_handled_first, _begins_before_the_expiry),
    (roles.expiry_ends_the_role, lambda simulation: (Trigger.EVENT, ended(simulation, SessionExpired()))),
    (roles.failed_failovers_are_spaced, _fails_in_a_row),
    (members.leaders_are_live, _elects_dead_leader),
    (members.leaders_are_live, _elects_with_dead_members),
    (members.proposed_members_are_live, _accepts_dead_members),
    (members.proposed_members_are_live, _accepts_earlier_registrations),
    (members.strict_proposals_are_valid, _accepts_another_sender),
    (members.failed_brokers_leave_isrs, _dead_member_stays),
    (members.in_sync_partitions_have_leaders, _no_election),
    (members.reassignments_end_after_broker_startup, _reassignment_continues),
    (members.stored_elections_are_performed, _election_is_not_performed),
    (members.settings_elect_at_once, _setting_without_election),
    (requests.only_stored_states_are_sent, _never_stored),
    (
        requests.stop_replica_has_leader_epoch,
        lambda simulation: (Trigger.QUEUED, post(simulation, stop(simulation, NO_EPOCH))),
    ),
    (
        requests.new_replicas_are_sent_as_new,
        lambda simulation: (Trigger.EVENT, ended(simulation, not_sent_as_new=((KEY, 1),))),
    ),
    (
        requests.broker_changes_are_sent,
        lambda simulation: (Trigger.EVENT, ended(simulation, BrokersChanged(), unaware=(1,))),
    ),
    (requests.deletions_repeat_only_after_events, _repeats_deletion_without_event),
    (requests.removed_replicas_are_deleted, _removed_replica_is_not_deleted),
    (requests.isr_changes_are_sent_alone, _sends_other_partitions),
    (rest.leaders_know_their_replicas, _old_replicas),
    (rest.topics_have_ids, _no_id),
    (rest.unclean_partitions_have_leaders, _unclean_is_not_elected),
    (rest.leaders_are_balanced, _unbalanced),
    (rest.notifications_are_removed, _notification_stays),
    (rest.late_topics_have_a_new_epoch, _late_topic_keeps_its_epoch),
    (proposals.senders_are_registered, _earlier_sender),
    (proposals.proposals_are_answered, lambda simulation: code(simulation, ErrorCode.INVALID_UPDATE_VERSION)),
    (proposals.proposals_are_answered, lambda simulation: code(simulation, ErrorCode.FENCED_LEADER_EPOCH)),
    (proposals.proposals_are_answered, lambda simulation: code(simulation, ErrorCode.NOT_CONTROLLER)),
    (proposals.proposals_are_answered, lambda simulation: code(simulation, ErrorCode.INELIGIBLE_REPLICA)),
    (proposals.proposals_are_answered, lambda simulation: code(simulation, ErrorCode.NONE)),
    (
        proposals.proposals_are_answered,
        lambda simulation: code(simulation, ErrorCode.INVALID_UPDATE_VERSION, leader_epoch=np.array([-1], np.int32)),
    ),
    (topics.requests_add_live_replicas, _adds_dead_replica),
    (topics.replica_lists_are_valid, _names_broker_twice),
    (events.earlier_responses_write_nothing, _earlier_answer_writes),
    (events.elections_change_leaders, _elects_current_leader),
    (
        events.balancing_elects_eligible_replicas,
        lambda simulation: (Trigger.EVENT, ended(simulation, RebalanceLeaders(), calls={"read_states": 1})),
    ),
    (events.read_states_are_applied, _forgets_read_states),
    (events.stored_reassignments_stay, _stored_reassignment_is_removed),
    (events.notifications_are_handled_once, _notified_twice),
    (states.only_others_cause_refusals, _refused_after_own_write),
    (states.settings_are_applied, _elects_against_the_setting),
    (members.unassigned_leave_at_failover, _unassigned_stay_at_failover),
    (members.reassigned_partitions_have_leaders, _reassigned_without_leader),
    (members.deletions_begin_at_once, _deletion_does_not_begin),
    (events.deletion_marks_stay_with_topics, _deletion_mark_is_removed),
    (
        events.stale_responses_change_nothing,
        lambda simulation: (Trigger.EVENT, ended(simulation, answered(), knowledge=b"other")),
    ),
    (
        events.failing_brokers_are_logged,
        lambda simulation: (Trigger.EVENT, ended(simulation, answered(error=ErrorCode.STALE_BROKER_EPOCH))),
    ),
    (requests.only_assigned_replicas_are_sent, _sends_unassigned_replicas),
    (requests.last_in_sync_logs_stay, _last_in_sync_log_is_deleted),
    (proposals.proposals_are_answered, _deleted_id_is_known),
    (events.replica_states_fit_columns, _replica_has_no_state),
    (requests.new_assignments_are_sent, _assignment_not_sent),
    (records.last_replicas_wait_for_consent, _elects_without_consent),
]
