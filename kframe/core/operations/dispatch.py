"""Two tables: the operation of each event, and the response of an inactive controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.operations import (
    alter_partition,
    broker_notifications,
    config_changes,
    controlled_shutdown,
    elect_leaders,
    features,
    leader_rebalance,
    membership,
    producer_ids,
    purgatory,
    topic_changes,
    topic_requests,
    unassigned_isr_members,
)
from kframe.core.reassignment import protocols
from kframe.core.topics import topic_deletion
from kframe.errors import BrokenInvariant, ErrorCode
from kframe.model import events
from kframe.model.effects import Reply
from kframe.model.events import NO_TOKEN, Event

_NONE = np.empty(0, np.int16)

#: The operation of each event under an active controller. Its result answers the request, if the event is one.
OPERATIONS: Final[Mapping[type[Event], Callable[[Context, Any], Operation[Any]]]] = {
    events.BrokersChanged: lambda context, _: membership.brokers_changed(context),
    events.BrokerModified: lambda context, event: membership.broker_modified(context, event.broker_id),
    events.TopicsChanged: lambda context, _: topic_changes.topics_changed(context),
    events.TopicModified: lambda context, event: topic_changes.topic_modified(context, event.topic),
    events.TopicSettingsChanged: lambda context, event: config_changes.topic_settings_changed(context, event.topic),
    events.BrokerDefaultsChanged: lambda context, _: config_changes.broker_defaults_changed(context),
    events.AlterConfigsRequested: config_changes.alter_configs,
    events.UpdateFeaturesRequested: features.update_features,
    events.DeletionsMarked: lambda context, _: topic_deletion.deletions_marked(context),
    events.ReassignmentsStored: lambda context, _: protocols.protocol_of(context).submit_stored(context),
    events.PreferredElectionStored: lambda context, _: elect_leaders.elect_stored(context),
    events.IsrChangesNotified: lambda context, _: broker_notifications.isr_changes(context),
    events.LogDirEventsNotified: lambda context, _: broker_notifications.log_dir_events(context),
    events.ControlledShutdownRequested: controlled_shutdown.shut_down,
    events.ElectionRequested: elect_leaders.elect_leaders,
    events.RebalanceLeaders: lambda context, _: leader_rebalance.rebalance(context),
    events.AlterPartitionRequested: alter_partition.alter_partitions,
    events.CreateTopicsRequested: topic_requests.create_topics,
    events.CreatePartitionsRequested: topic_requests.create_partitions,
    events.DeleteTopicsRequested: topic_requests.delete_topics,
    events.ReassignmentRequested: topic_requests.alter_reassignments,
    events.ListReassignmentsRequested: topic_requests.list_reassignments,
    events.ProducerIdsRequested: producer_ids.allocate,
    events.LeaderAndIsrResponseReceived: broker_notifications.leader_and_isr_response_received,
    events.UpdateMetadataResponseReceived: broker_notifications.update_metadata_response_received,
    events.StopReplicaResponseReceived: topic_deletion.stop_replica_response_received,
    events.DelayedReplyExpired: purgatory.time_out,
    events.InspectionRequested: lambda context, _: _inspected(),
}

#: The response of an inactive controller to each request.
REFUSALS: Final[Mapping[type[Event], Callable[[Any], Any]]] = {
    events.ControlledShutdownRequested: lambda _: controlled_shutdown.refused(ErrorCode.STALE_CONTROLLER_EPOCH),
    events.ElectionRequested: lambda event: elect_leaders.refused(event, ErrorCode.NOT_CONTROLLER),
    events.AlterPartitionRequested: lambda _: alter_partition.refused(ErrorCode.NOT_CONTROLLER),
    events.CreateTopicsRequested: lambda event: _refused_topics(topic.name for topic in event.topics),
    events.CreatePartitionsRequested: lambda event: _refused_topics(topic.name for topic in event.topics),
    events.DeleteTopicsRequested: lambda event: _refused_topics(event.names),
    events.ReassignmentRequested: lambda _: topic_requests.ReassignmentResponse(ErrorCode.NOT_CONTROLLER, _NONE),
    events.ListReassignmentsRequested: lambda _: topic_requests.ReassignmentsListed(
        ErrorCode.NOT_CONTROLLER, np.empty(0, np.int32)
    ),
    events.ProducerIdsRequested: lambda _: producer_ids.refused(ErrorCode.NOT_CONTROLLER),
    events.AlterConfigsRequested: lambda event: config_changes.refused(event, ErrorCode.NOT_CONTROLLER),
    events.UpdateFeaturesRequested: lambda _: features.refused(ErrorCode.NOT_CONTROLLER),
    events.InspectionRequested: lambda _: False,
}


def operate(context: Context, event: Event) -> Operation[None]:
    """Process an event, answer its request, then answer delayed requests that are complete."""
    operation = OPERATIONS.get(type(event))
    if operation is None:
        raise BrokenInvariant(f"no operation for {type(event).__name__}")
    response = yield from operation(context, event)
    token = getattr(event, "token", NO_TOKEN)
    if token != NO_TOKEN and purgatory.can_be_delayed(event):
        yield from purgatory.reply_or_delay(context, event, response)  # type: ignore[arg-type]
    elif token != NO_TOKEN:
        yield Reply(token, response)
    if isinstance(event, events.AlterPartitionRequested):
        yield from protocols.protocol_of(context).on_isr_change(context, alter_partition.accepted_rows(response))
        yield from unassigned_isr_members.on_alter_partition(context, event)
    yield from purgatory.check(context)


def decline(event: Event) -> Operation[None]:
    """Refuse the request of an event."""
    token = getattr(event, "token", NO_TOKEN)
    if token != NO_TOKEN:
        yield Reply(token, REFUSALS[type(event)](event))


def _inspected() -> Operation[bool]:
    """An active controller can be inspected."""
    yield from ()
    return True


def _refused_topics(names: Any) -> topic_requests.TopicsResponse:
    return topic_requests.TopicsResponse(dict.fromkeys(names, ErrorCode.NOT_CONTROLLER))
