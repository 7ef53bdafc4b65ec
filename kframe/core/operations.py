"""Which operation handles which event, and what a controller that is not active answers: two tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from kframe.core import (
    admin,
    alter_partition,
    arrivals,
    configs,
    deletion,
    elections,
    features,
    membership,
    moves,
    notifications,
    producer_ids,
    rebalance,
    shutdown,
    strays,
    waiting,
)
from kframe.core.context import Context, Operation
from kframe.errors import BrokenInvariant, ErrorCode
from kframe.model import events
from kframe.model.effects import Reply
from kframe.model.events import NOBODY, Event

_NONE = np.empty(0, np.int16)

#: What the active controller does about each event. What an operation returns is its answer, if somebody waits for one.
OPERATIONS: Final[Mapping[type[Event], Callable[[Context, Any], Operation[Any]]]] = {
    events.BrokersChanged: lambda context, _: membership.brokers_changed(context),
    events.BrokerModified: lambda context, event: membership.broker_modified(context, event.broker_id),
    events.TopicsChanged: lambda context, _: arrivals.topics_changed(context),
    events.TopicModified: lambda context, event: arrivals.topic_modified(context, event.topic),
    events.TopicSettingsChanged: lambda context, event: configs.topic_settings_changed(context, event.topic),
    events.BrokerDefaultsChanged: lambda context, _: configs.broker_defaults_changed(context),
    events.AlterConfigsRequested: configs.alter_configs,
    events.UpdateFeaturesRequested: features.update_features,
    events.DeletionsMarked: lambda context, _: deletion.deletions_marked(context),
    events.ReassignmentsLeft: lambda context, _: moves.take_up(context),
    events.PreferredElectionLeft: lambda context, _: elections.elect_stored(context),
    events.IsrChangesLeft: lambda context, _: notifications.isr_changes(context),
    events.LogDirEventsLeft: lambda context, _: notifications.log_dir_events(context),
    events.ControlledShutdownRequested: shutdown.shut_down,
    events.ElectionRequested: elections.elect_leaders,
    events.RebalanceLeaders: lambda context, _: rebalance.rebalance(context),
    events.AlterPartitionRequested: alter_partition.alter_partitions,
    events.CreateTopicsRequested: admin.create_topics,
    events.CreatePartitionsRequested: admin.create_partitions,
    events.DeleteTopicsRequested: admin.delete_topics,
    events.ReassignmentRequested: admin.alter_reassignments,
    events.ListReassignmentsRequested: admin.list_reassignments,
    events.ProducerIdsRequested: producer_ids.allocate,
    events.LeaderAndIsrAnswered: notifications.leader_and_isr_answered,
    events.UpdateMetadataAnswered: notifications.update_metadata_answered,
    events.StopReplicaAnswered: deletion.replicas_stopped,
    events.ReplyDue: waiting.time_out,
    events.Inspected: lambda context, _: _looked(),
}

#: What a controller that is not active answers (``spec/controller.md`` section 1).
REFUSALS: Final[Mapping[type[Event], Callable[[Any], Any]]] = {
    events.ControlledShutdownRequested: lambda _: shutdown.refused(ErrorCode.STALE_CONTROLLER_EPOCH),
    events.ElectionRequested: lambda event: elections.refused(event, ErrorCode.NOT_CONTROLLER),
    events.AlterPartitionRequested: lambda _: alter_partition.refused(ErrorCode.NOT_CONTROLLER),
    events.CreateTopicsRequested: lambda event: _refused_topics(one.name for one in event.topics),
    events.CreatePartitionsRequested: lambda event: _refused_topics(one.name for one in event.topics),
    events.DeleteTopicsRequested: lambda event: _refused_topics(event.names),
    events.ReassignmentRequested: lambda _: admin.ReassignmentResponse(ErrorCode.NOT_CONTROLLER, _NONE),
    events.ListReassignmentsRequested: lambda _: admin.ReassignmentsListed(
        ErrorCode.NOT_CONTROLLER, np.empty(0, np.int32)
    ),
    events.ProducerIdsRequested: lambda _: producer_ids.refused(ErrorCode.NOT_CONTROLLER),
    events.AlterConfigsRequested: lambda event: configs.refused(event, ErrorCode.NOT_CONTROLLER),
    events.UpdateFeaturesRequested: lambda _: features.refused(ErrorCode.NOT_CONTROLLER),
    events.Inspected: lambda _: False,
}


def operate(context: Context, event: Event) -> Operation[None]:
    """Handle an event as the active controller, answer who waits for it, then those who waited before."""
    operation = OPERATIONS.get(type(event))
    if operation is None:
        raise BrokenInvariant(f"no operation for {type(event).__name__}")
    response = yield from operation(context, event)
    token = getattr(event, "token", NOBODY)
    if token != NOBODY and waiting.waits(event):
        yield from waiting.answer_or_wait(context, event, response)  # type: ignore[arg-type]
    elif token != NOBODY:
        yield Reply(token, response)
    if isinstance(event, events.AlterPartitionRequested):
        yield from moves.isrs_changed(context, alter_partition.accepted_rows(response))
        yield from strays.proposed(context, event)
    yield from waiting.check(context)


def decline(event: Event) -> Operation[None]:
    """Answer an event that will not be handled."""
    token = getattr(event, "token", NOBODY)
    if token != NOBODY:
        yield Reply(token, REFUSALS[type(event)](event))


def _looked() -> Operation[bool]:
    """There is something to look at."""
    yield from ()
    return True


def _refused_topics(names: Any) -> admin.TopicsResponse:
    return admin.TopicsResponse(dict.fromkeys(names, ErrorCode.NOT_CONTROLLER))
