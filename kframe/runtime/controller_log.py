"""The messages of controller.log, in the words of Kafka 3.9's controller, and a summary of each event with changes.

Levels are Kafka's, except INFO for two messages that Kafka's default configuration logs at DEBUG to the same file: the
active controller, on a standby, and ISRs changed by leaders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import ERROR, INFO, WARNING
from typing import Final

from kframe.model import events
from kframe.model.log_entries import Message
from kframe.runtime.log_text import Template

_DELETION: Final = "[Topic Deletion Manager {id}] "
_PARTITIONS: Final = "[PartitionStateMachine controllerId={id}] "
_REPLICAS: Final = "[ReplicaStateMachine controllerId={id}] "

#: Every message of controller.log.
TEMPLATES: Final[Mapping[Message, Template]] = {
    # KafkaController.elect, maybeResign, onControllerResignation, ControllerEventProcessor.process
    Message.ELECTED: Template(INFO, "{broker} successfully elected as the controller. Epoch incremented to {epoch}"),
    Message.OTHER_ELECTED: Template(
        INFO, "Broker {other} has been elected as the controller, so stopping the election process."
    ),
    Message.ELECTED_INSTEAD: Template(INFO, "Broker {other} was elected as controller instead of broker {broker}"),
    Message.RESIGNED: Template(INFO, "Resigned: {reason}"),
    Message.OPERATION_FAILED: Template(ERROR, "Error processing event {event}: {error}"),
    # KafkaController.initializeControllerContext, onControllerFailover; startup of both state machines
    Message.BROKER_EPOCHS_INITIALIZED: Template(INFO, "Initialized broker epochs cache: {epochs:Map}"),
    Message.ACTIVE_BROKERS: Template(INFO, "Currently active brokers in the cluster: {brokers:Set}"),
    Message.TOPIC_LIST: Template(INFO, "Current list of topics in the cluster: {topics:Set}"),
    Message.TOPICS_TO_DELETE: Template(INFO, "List of topics to be deleted: {topics}"),
    Message.TOPICS_INELIGIBLE: Template(INFO, "List of topics ineligible for deletion: {topics}"),
    Message.SENDING_METADATA: Template(INFO, "Sending update metadata request"),
    Message.INITIALIZING_REPLICAS: Template(INFO, "Initializing replica state", _REPLICAS),
    Message.ONLINE_REPLICAS: Template(INFO, "Triggering online replica state changes", _REPLICAS),
    Message.OFFLINE_REPLICAS: Template(INFO, "Triggering offline replica state changes", _REPLICAS),
    Message.INITIALIZING_PARTITIONS: Template(INFO, "Initializing partition state", _PARTITIONS),
    Message.ONLINE_PARTITIONS: Template(INFO, "Triggering online partition state changes", _PARTITIONS),
    Message.READY: Template(INFO, "Ready to serve as the new controller with epoch {epoch}"),
    # KafkaController.processBrokerChange, onBrokerStartup, onBrokerFailure, processBrokerModification
    Message.BROKERS_CHANGED: Template(
        INFO,
        "Newly added brokers: {new}, deleted brokers: {deleted}, bounced brokers: {bounced}, all live brokers: {live}",
    ),
    Message.BROKER_EPOCHS_UPDATED: Template(INFO, "Updated broker epochs cache: {epochs:Map}"),
    Message.BROKER_STARTUP: Template(INFO, "New broker startup callback for {brokers}"),
    Message.BROKER_FAILURE: Template(INFO, "Broker failure callback for {brokers}"),
    Message.SHUTTING_DOWN_REMOVED: Template(INFO, "Removed {brokers} from list of shutting down brokers."),
    Message.BROKER_METADATA_UPDATED: Template(INFO, "Updated broker metadata: {old} -> {new}"),
    Message.BROKER_UPDATE: Template(INFO, "Broker info update callback for {broker}"),
    Message.BROKER_SHUTDOWN: Template(INFO, "Shutting down broker {broker}"),
    Message.STALE_SHUTDOWN: Template(
        INFO,
        "Received controlled shutdown request from an old broker epoch {epoch} for broker {broker}. Current broker "
        "epoch is {current}.",
    ),
    Message.LOG_DIR_FAILURE: Template(INFO, "Handling log directory failure for brokers {brokers}"),
    # KafkaController.processTopicChange, onNewPartitionCreation, processPartitionModifications
    Message.TOPICS_CHANGED: Template(
        INFO,
        "New topics: [{new:Set}], deleted topics: [{deleted:Set}], new partition replica assignment "
        "[{assignments:Set}]",
    ),
    Message.PARTITIONS_CREATED: Template(INFO, "New partition creation callback for {partitions}"),
    Message.PARTITIONS_ADDED: Template(INFO, "New partitions to be added {assignments:Map}"),
    Message.PARTITIONS_SKIPPED: Template(
        WARNING, "Skipping adding partitions {partitions} for topic {topic} since it is currently being deleted"
    ),
    Message.TOPIC_ID_RESTORED: Template(WARNING, "{topic} was stored without its topic id, which is written back"),
    Message.NON_BROKERS_REPLACED: Template(
        WARNING,
        "{count} new partitions were assigned to ids of no broker; {fewer} get fewer replicas: {partitions}",
    ),
    # KafkaController.processTopicDeletion, TopicDeletionManager
    Message.DELETIONS_STARTING: Template(INFO, "Starting topic deletion for topics {topics}"),
    Message.DELETIONS_IGNORED: Template(WARNING, "Ignoring request to delete non-existing topics {topics}"),
    Message.DELETIONS_DISABLED: Template(INFO, "Removing {topics:Set} since delete topic is disabled"),
    Message.DELETIONS_HANDLED: Template(INFO, "Handling deletion for topics {topics}", _DELETION),
    Message.DELETION_RESTARTED: Template(INFO, "Deletion of topic {topic} (re)started", _DELETION),
    Message.DELETION_COMPLETED: Template(INFO, "Deletion of topic {topic} successfully completed", _DELETION),
    Message.DELETION_HALTED: Template(INFO, "Halted deletion of topics {topics} due to {reason}", _DELETION),
    # KafkaController.onReplicaElection, processAutoPreferredReplicaLeaderElection, processUncleanLeaderElectionEnable
    Message.ELECTION_STARTED: Template(
        INFO, "Starting replica leader election ({type}) for partitions {partitions} triggered by {trigger}"
    ),
    Message.AUTO_REBALANCE: Template(INFO, "Processing automatic preferred replica leader election"),
    Message.PREFERRED_COMPLETED: Template(
        INFO,
        "Partition {partition} completed preferred replica leader election. New leader is {leader}",
        summary="partitions completed preferred replica leader election",
    ),
    Message.PREFERRED_FAILED: Template(
        WARNING,
        "Partition {partition} failed to complete preferred replica leader election to {preferred}. Leader is still "
        "{leader}",
        summary="partitions failed to complete preferred replica leader election",
    ),
    Message.UNCLEAN_BY_DEFAULT: Template(INFO, "Unclean leader election has been enabled by default"),
    Message.UNCLEAN_FOR_TOPIC: Template(INFO, "Unclean leader election has been enabled for topic {topic}"),
    # KafkaController.tryProcessAlterPartition
    Message.ALTER_PARTITION_UNKNOWN_BROKER: Template(INFO, "Ignoring AlterPartition due to unknown broker {broker}"),
    Message.ALTER_PARTITION_STALE_EPOCH: Template(
        INFO,
        "Ignoring AlterPartition due to stale broker epoch {epoch} and local broker epoch {current} for broker "
        "{broker}",
    ),
    Message.ALTER_PARTITION_REJECTED: Template(
        INFO, "Rejecting AlterPartition request from node {broker} for {partitions} because of {error}"
    ),
    Message.ISR_UPDATED: Template(
        INFO, "ISR for partition {partition} updated to {state}.", summary="ISRs updated as their leaders proposed"
    ),
    # KafkaController.maybeCompleteReassignment, updateReplicaAssignmentForPartition, updateLeaderEpoch
    Message.TARGETS_CAUGHT_UP: Template(
        INFO,
        "Target replicas {targets:List} have all caught up with the leader for reassigning partition {partition}",
        summary="partitions being reassigned have target replicas that have all caught up",
    ),
    Message.ASSIGNMENT_UPDATED: Template(
        INFO,
        "Successfully updated assignment of partition {partition} to {assignment}",
        summary="assignments updated",
    ),
    Message.LEADER_EPOCH_UPDATED: Template(
        INFO,
        "Updated leader epoch for partition {partition} to {leader_epoch}, zkVersion={partition_epoch}",
        summary="leader epochs updated",
    ),
}

#: Names of events in the logs: Kafka 3.9's ``ControllerEvent`` where it has one.
EVENT_NAMES: Final[Mapping[type[events.Event], str]] = {
    events.Reelect: "Reelect",
    events.ControllerChanged: "ControllerChange",
    events.SessionExpired: "Expire",
    events.ResignRequested: "Resign",
    events.BrokersChanged: "BrokerChange",
    events.BrokerModified: "BrokerModifications",
    events.ControlledShutdownRequested: "ControlledShutdown",
    events.ElectionRequested: "ReplicaLeaderElection",
    events.RebalanceLeaders: "AutoPreferredReplicaLeaderElection",
    events.AlterPartitionRequested: "AlterPartitionReceived",
    events.TopicsChanged: "TopicChange",
    events.TopicModified: "PartitionModifications",
    events.TopicSettingsChanged: "TopicUncleanLeaderElectionEnable",
    events.BrokerDefaultsChanged: "UncleanLeaderElectionEnable",
    events.DeletionsMarked: "TopicDeletion",
    events.ReassignmentsStored: "ZkPartitionReassignment",
    events.PreferredElectionStored: "ReplicaLeaderElection",
    events.IsrChangesNotified: "IsrChangeNotification",
    events.LogDirEventsNotified: "LogDirEventNotification",
    events.CreateTopicsRequested: "CreateTopics",
    events.CreatePartitionsRequested: "CreatePartitions",
    events.DeleteTopicsRequested: "DeleteTopics",
    events.ReassignmentRequested: "ApiPartitionReassignment",
    events.ListReassignmentsRequested: "ListPartitionReassignments",
    events.ProducerIdsRequested: "AllocateProducerIds",
    events.AlterConfigsRequested: "AlterConfigs",
    events.UpdateFeaturesRequested: "UpdateFeatures",
    events.InspectionRequested: "Inspect",
    events.DelayedReplyExpired: "ReplyTimeout",
    events.LeaderAndIsrResponseReceived: "LeaderAndIsrResponseReceived",
    events.UpdateMetadataResponseReceived: "UpdateMetadataResponseReceived",
    events.StopReplicaResponseReceived: "TopicDeletionStopReplicaResponseReceived",
}


@dataclass(slots=True)
class EventSize:
    """The changes and requests of an event."""

    partitions: int = 0
    """Partition states written."""
    changes: Counter[Message] = field(default_factory=Counter)
    """Partitions by message of the core."""
    leader_and_isr: int = 0
    """LeaderAndIsr requests, one for each broker of each batch."""
    update_metadata: int = 0
    stop_replica: int = 0
    brokers: set[int] = field(default_factory=set)
    """Brokers (indexes) with requests."""

    @property
    def requests(self) -> int:
        """Requests of all three kinds."""
        return self.leader_and_isr + self.update_metadata + self.stop_replica


def event_name(event: events.Event) -> str:
    """``BrokerChange``, or ``AlterPartitionReceived from broker 1``."""
    name = EVENT_NAMES.get(type(event), type(event).__name__)
    broker_id = getattr(event, "broker_id", None)
    return name if broker_id is None else f"{name} from broker {broker_id}"


def processed_line(
    controller_id: int, event: events.Event, duration_ms: float, size: EventSize, suppressed: int
) -> str:
    """The summary of an event: its cause, duration and size. Kafka does not log it."""
    elected = size.changes[Message.LEADER_ELECTED] + size.changes[Message.PARTITION_INITIALIZED]
    suffix = f" ({suppressed} lines on such events left out)" if suppressed else ""
    return (
        f"[Controller id={controller_id}] Processed {event_name(event)} in {duration_ms:.3f} ms: "
        f"{elected} leaders elected, {size.changes[Message.ISR_SHRUNK]} replicas offline, "
        f"{size.changes[Message.PARTITION_FAILED]} partitions failed, {size.partitions} partition states written, "
        f"{size.requests} requests sent to {len(size.brokers)} brokers "
        f"({size.leader_and_isr} LeaderAndIsr, {size.update_metadata} UpdateMetadata, {size.stop_replica} StopReplica)"
        f"{suffix}"
    )
