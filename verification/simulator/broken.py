"""Histories that break the invariants about observed controllers (``simulation.observed``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from msgspec.structs import replace as replace_fields

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    BrokersChanged,
    DeletionsMarked,
    IsrChangesNotified,
    LeaderAndIsrResponseReceived,
    ReassignmentRequested,
    RebalanceLeaders,
    Reelect,
    SessionExpired,
    TopicSettingsChanged,
)
from kframe.model.ids import LEADER_DURING_DELETE, NO_EPOCH, NO_STATE, ReplicaState
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports.store_requests import (
    DropDeletions,
    DropPreferredElection,
    Load,
    ReadStates,
    WriteReassignments,
    WriteStates,
)
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import LeaderAndIsr, LeaderState, PartitionMetadata
from kframe_simulator.invariants import events, members, proposals, records, requests, rest, roles, states, topics
from kframe_simulator.simulation.observations import (
    AlterPartitionCompleted,
    EventStarted,
    Quiescent,
    Rested,
    RoleClaimed,
    StateWritten,
    WriteRefused,
)
from verification.simulator.at_rest import (
    KEY,
    ViolationCase,
    assigned,
    edit,
    ended,
    metadata,
    queued,
    request,
    state,
    stop,
)


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
        broker_id,
        version=1,
        recovery=np.zeros(1, np.uint8),
        isr=Ragged.of([isr]),
        **(defaults | changes),
    )


def close_channel(simulation: Simulation, broker_id: int) -> Simulation:
    """Close a channel, as after the end of a registration. Returns the simulation."""
    del simulation.controllers[0].transport.channels[broker_id]
    return simulation


def lose_role(simulation: Simulation) -> Simulation:
    """The controller notices that it lost the role. Returns the simulation."""
    simulation.controllers[0].store.lost_role = True
    return simulation


def in_event(simulation: Simulation, event: Any) -> Simulation:
    """The controller handles an event. Returns the simulation."""
    simulation.controllers[0].event = event
    return simulation


def with_options(simulation: Simulation, **changes: Any) -> Simulation:
    """Change options. Returns the simulation."""
    simulation.options = replace(simulation.options, **changes)
    return simulation


def accepted(simulation: Simulation, isr: tuple[int, ...], broker_id: int = 1, **changes: Any) -> StateWritten:
    """The controller stores an ISR that a broker has proposed."""
    in_event(simulation, proposal(simulation, isr, broker_id, **changes))
    return state(simulation, isr=isr, leader_epoch=simulation.ensemble.rows[KEY].leader_epoch)


def leader_and_isr_response(event: Any = None, error: ErrorCode = ErrorCode.NONE) -> LeaderAndIsrResponseReceived:
    return LeaderAndIsrResponseReceived(1, error, (), 0, np.empty(0, np.int32))


def _response_of_earlier_registration(simulation: Simulation) -> Any:
    process = simulation.controllers[0]
    response = replace_fields(leader_and_isr_response(), controller_epoch=process.store.claimed_epoch, broker_epoch=0)
    return ended(simulation, response, knowledge=b"other")


def metadata_of(leader: int) -> dict[Any, PartitionMetadata]:
    return {KEY: PartitionMetadata(leader, 0, (1, 2, 3), 0, (1, 2, 3))}


def _begins_before_the_expiry(simulation: Simulation) -> Any:
    simulation.controllers[0].store.expiries += 1
    return EventStarted(simulation.controllers[0], BrokersChanged())


def _old_replicas(simulation: Simulation) -> Any:
    simulation.brokers[1].model.partitions[KEY].replica_ids = (1, 2)
    return Rested()


def _earlier_sender(simulation: Simulation) -> Any:
    event = proposal(simulation, (1, 2, 3), broker_epoch=0)
    response = AlterPartitionResponse(ErrorCode.NONE, np.zeros(1, np.int16))
    return AlterPartitionCompleted(simulation.controllers[0], event, response, frozenset())


def code(simulation: Simulation, error: ErrorCode, **changes: Any) -> Any:
    """The response to a proposal of the stored ISR has this error code."""
    event = proposal(simulation, simulation.ensemble.rows[KEY].isr, **changes)
    response = AlterPartitionResponse(ErrorCode.NONE, np.array([error], np.int16))
    return AlterPartitionCompleted(simulation.controllers[0], event, response, frozenset())


def _repeats_deletion_without_event(simulation: Simulation) -> Any:
    observed, process = simulation.watch.observed, simulation.controllers[0]
    observed.queued(process, request(simulation, metadata(simulation, partitions=metadata_of(LEADER_DURING_DELETE))))
    observed.repeats_deletion(process, KEY, 1)
    return queued(simulation, stop(simulation))


def _removed_replica_is_not_deleted(simulation: Simulation) -> Any:
    before = simulation.ensemble.topic_partitions("t")
    return ended(edit(simulation, replicas=(1, 2)), topics={"t": before})


def _no_id(simulation: Simulation) -> Any:
    simulation.ensemble.topic_ids["t"] = bytes(16)
    return Rested()


def _forgets_read_states(simulation: Simulation) -> Any:
    simulation.watch.observed.states_read(simulation.controllers[0], {KEY: 99})
    return ended(simulation, requests={ReadStates: 1})


def _fails_in_a_row(simulation: Simulation) -> Any:
    process = simulation.controllers[0]
    for _ in range(2):
        process.loop.controller.failures += 1
        simulation.watch.observed.event_ended(process, Reelect())
    return RoleClaimed(process, 2)


def _notified_twice(simulation: Simulation) -> Any:
    event = BrokersChanged()
    simulation.watch.observed.is_repeated_event(simulation.controllers[0], event)
    return EventStarted(simulation.controllers[0], event)


def _unclean_is_not_elected(simulation: Simulation) -> Any:
    simulation.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    edit(simulation, leader=-1)
    return Quiescent()


def _setting_without_election(simulation: Simulation) -> Any:
    simulation.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    edit(simulation, leader=-1, isr=(9,))
    return ended(simulation, TopicSettingsChanged("t"))


def _unbalanced(simulation: Simulation) -> Any:
    simulation.changed_ms = -1e9
    edit(with_options(simulation, rebalance=True), leader=2)
    return Rested()


def _notification_stays(simulation: Simulation) -> Any:
    simulation.ensemble.notify_isr_changes([KEY])
    return Rested()


def _late_topic_keeps_its_epoch(simulation: Simulation) -> Any:
    observed, process = simulation.watch.observed, simulation.controllers[0]
    process.store.claimed_epoch += 1
    assert simulation.ensemble.malform(0, 0)
    observed.loaded(process)
    simulation.ensemble.repair()
    return Rested()


def _refused_after_own_write(simulation: Simulation) -> Any:
    simulation.watch.last_writer[KEY] = simulation.controllers[0]
    return WriteRefused(simulation.controllers[0], KEY)


def _elects_without_consent(simulation: Simulation) -> Any:
    with_options(simulation, hold_last=True).brokers[2].bounce()
    edit(simulation, isr=(2,), leader=-1)
    return state(simulation, leader=2, isr=(2,))


def _reassigned_without_leader(simulation: Simulation) -> Any:
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, partition_epoch=NO_STATE, leader=-1, isr=())
    event = ReassignmentRequested(Targets.of([(KEY, (1, 2, 3))]))
    return ended(simulation, event, topics={"t": before})


def _deletion_does_not_begin(simulation: Simulation) -> Any:
    simulation.ensemble.mark_for_deletion(["t"])
    simulation.watch.observed.event_begins(simulation.controllers[0], Reelect())
    return ended(simulation, Reelect(), requests={Load: 1})


def _deletion_mark_is_removed(simulation: Simulation) -> Any:
    simulation.ensemble.mark_for_deletion(["t"])
    simulation.watch.observed.event_begins(simulation.controllers[0], DeletionsMarked())
    simulation.controllers[0].store.perform(DropDeletions(("t",)))
    return ended(simulation, DeletionsMarked(), requests={DropDeletions: 1})


def _sends_unassigned_replicas(simulation: Simulation) -> Any:
    row = simulation.ensemble.rows[KEY]
    state = LeaderState(1, row.leader, row.leader_epoch, row.isr, row.partition_epoch, (1, 2, 3, 4), (4,), (), False)
    return queued(simulation, LeaderAndIsr(1000, 1, 1, {KEY: state}))


def _replica_has_no_state(simulation: Simulation) -> Any:
    p = simulation.controllers[0].loop.controller.cluster.partitions
    p.set_replica_states(p.slots_of(np.zeros(1, np.int32))[:1], ReplicaState.NON_EXISTENT)
    return ended(simulation)


def _assignment_not_sent(simulation: Simulation) -> Any:
    before = simulation.ensemble.topic_partitions("t")
    edit(simulation, removing=(3,))
    epochs = {(KEY, 1): simulation.ensemble.rows[KEY].leader_epoch}
    return ended(simulation, topics={"t": before}, sent_epochs=epochs)


#: The invariant that must fail, and the function that breaks it.
VIOLATIONS_OF_OBSERVATIONS: list[ViolationCase] = [
    (requests.only_controllers_send, lambda simulation: queued(lose_role(simulation), metadata(simulation))),
    (roles.expiry_is_handled_first, _begins_before_the_expiry),
    (roles.expiry_ends_the_role, lambda simulation: ended(simulation, SessionExpired())),
    (roles.failed_failovers_are_spaced, _fails_in_a_row),
    (members.leaders_are_live, lambda simulation: state(close_channel(simulation, 2), leader=2, isr=(2, 3))),
    (members.leaders_are_live, lambda simulation: state(close_channel(simulation, 1), leader=2, isr=(2, 1))),
    (members.proposed_members_are_live, lambda simulation: accepted(close_channel(simulation, 3), (1, 3))),
    (
        members.proposed_members_are_live,
        lambda simulation: accepted(simulation, (1, 3), isr_epochs=np.array([-1, 1], np.int64)),
    ),
    (
        members.strict_proposals_are_valid,
        lambda simulation: accepted(with_options(simulation, strict=True), (1, 2), broker_id=2),
    ),
    (members.failed_brokers_leave_isrs, lambda simulation: ended(close_channel(simulation, 3), BrokersChanged())),
    (members.in_sync_partitions_have_leaders, lambda simulation: ended(edit(simulation, leader=-1), BrokersChanged())),
    (
        members.reassignments_end_after_broker_startup,
        lambda simulation: ended(edit(simulation, removing=(3,)), BrokersChanged(), arrived=frozenset({1})),
    ),
    (
        members.stored_elections_are_performed,
        lambda simulation: ended(
            edit(simulation, leader=2), Reelect(), requests={DropPreferredElection: 1}, elections=frozenset({KEY})
        ),
    ),
    (members.settings_elect_at_once, _setting_without_election),
    (
        requests.only_stored_states_are_sent,
        lambda simulation: queued(simulation, metadata(simulation, partitions=metadata_of(3))),
    ),
    (requests.stop_replica_has_leader_epoch, lambda simulation: queued(simulation, stop(simulation, NO_EPOCH))),
    (requests.new_replicas_are_sent_as_new, lambda simulation: ended(simulation, not_sent_as_new=((KEY, 1),))),
    (requests.broker_changes_are_sent, lambda simulation: ended(simulation, BrokersChanged(), unaware=(1,))),
    (requests.deletions_repeat_only_after_events, _repeats_deletion_without_event),
    (requests.removed_replicas_are_deleted, _removed_replica_is_not_deleted),
    (
        requests.isr_changes_are_sent_alone,
        lambda simulation: queued(
            in_event(simulation, IsrChangesNotified()), metadata(simulation, partitions=metadata_of(1))
        ),
    ),
    (rest.leaders_know_their_replicas, _old_replicas),
    (rest.topics_have_ids, _no_id),
    (rest.unclean_partitions_have_leaders, _unclean_is_not_elected),
    (rest.leaders_are_balanced, _unbalanced),
    (rest.notifications_are_removed, _notification_stays),
    (rest.late_topics_have_a_new_epoch, _late_topic_keeps_its_epoch),
    (proposals.senders_are_registered, _earlier_sender),
    (proposals.proposals_get_valid_codes, lambda simulation: code(simulation, ErrorCode.INVALID_UPDATE_VERSION)),
    (proposals.proposals_get_valid_codes, lambda simulation: code(simulation, ErrorCode.FENCED_LEADER_EPOCH)),
    (proposals.proposals_get_valid_codes, lambda simulation: code(simulation, ErrorCode.NOT_CONTROLLER)),
    (proposals.proposals_get_valid_codes, lambda simulation: code(simulation, ErrorCode.INELIGIBLE_REPLICA)),
    (proposals.proposals_get_valid_codes, lambda simulation: code(simulation, ErrorCode.NONE)),
    (
        proposals.proposals_get_valid_codes,
        lambda simulation: code(simulation, ErrorCode.INVALID_UPDATE_VERSION, leader_epoch=np.array([-1], np.int32)),
    ),
    (
        topics.requests_add_live_replicas,
        lambda simulation: assigned(
            in_event(close_channel(simulation, 4), ReassignmentRequested(Targets.of([(KEY, (1, 2, 4))]))),
            replicas=(1, 2, 3, 4),
            adding=(4,),
        ),
    ),
    (topics.replica_lists_are_valid, lambda simulation: assigned(simulation, replicas=(1, 1, 2))),
    (
        events.earlier_responses_write_nothing,
        lambda simulation: ended(simulation, leader_and_isr_response(), requests={WriteStates: 1}),
    ),
    (events.elections_change_leaders, lambda simulation: state(in_event(simulation, RebalanceLeaders()))),
    (
        events.balancing_elects_eligible_replicas,
        lambda simulation: ended(simulation, RebalanceLeaders(), requests={ReadStates: 1}),
    ),
    (events.read_states_are_applied, _forgets_read_states),
    (
        events.stored_reassignments_stay,
        lambda simulation: ended(
            edit(simulation, replicas=(1, 2, 3, 4), adding=(4,)),
            requests={WriteReassignments: 1},
            reassignments={KEY: (1, 2, 3, 4)},
        ),
    ),
    (events.notifications_are_handled_once, _notified_twice),
    (states.only_others_cause_refusals, _refused_after_own_write),
    (states.settings_are_applied, lambda simulation: state(edit(simulation, isr=(1,)), leader=2, isr=(2,))),
    (
        members.unassigned_leave_at_failover,
        lambda simulation: ended(edit(simulation, replicas=(1, 2)), Reelect(), requests={Load: 1}),
    ),
    (members.reassigned_partitions_have_leaders, _reassigned_without_leader),
    (members.deletions_begin_at_once, _deletion_does_not_begin),
    (events.deletion_marks_stay_with_topics, _deletion_mark_is_removed),
    (
        events.stale_responses_change_nothing,
        lambda simulation: ended(simulation, leader_and_isr_response(), knowledge=b"other"),
    ),
    (events.stale_responses_change_nothing, _response_of_earlier_registration),
    (
        events.failing_brokers_are_logged,
        lambda simulation: ended(simulation, leader_and_isr_response(error=ErrorCode.STALE_BROKER_EPOCH)),
    ),
    (requests.only_assigned_replicas_are_sent, _sends_unassigned_replicas),
    (
        requests.last_in_sync_logs_stay,
        lambda simulation: queued(edit(simulation, removing=(1,), leader=-1, isr=(2,)), stop(simulation)),
    ),
    (
        proposals.proposals_get_valid_codes,
        lambda simulation: code(simulation, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=((b"x" * 16, 0),)),
    ),
    (events.replica_states_fit_columns, _replica_has_no_state),
    (requests.new_assignments_are_sent, _assignment_not_sent),
    (records.last_replicas_wait_for_consent, _elects_without_consent),
]
