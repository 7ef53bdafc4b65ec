"""The messages of state-change.log, in the words of Kafka 3.9's ``state.change.logger`` at level INFO."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from logging import ERROR, INFO
from typing import Final

import numpy as np

from kframe.model.cluster import ClusterState
from kframe.model.log_entries import Message
from kframe.model.requests import ControlRequests
from kframe.runtime.log_text import Template

PREFIX: Final = "[Controller id={id} epoch={epoch}] "

#: Every message of state-change.log that the core reports; requests are reported by the runtime.
TEMPLATES: Final[Mapping[Message, Template]] = {
    # PartitionStateMachine.doHandleStateChanges, logFailedStateChange
    Message.PARTITION_NEW: Template(
        INFO,
        "Changed partition {partition} state from {before} to NewPartition with assigned replicas {replicas}",
        PREFIX,
        "partitions changed to NewPartition",
    ),
    Message.PARTITION_INITIALIZED: Template(
        INFO,
        "Changed partition {partition} from {before} to OnlinePartition with state {state}",
        PREFIX,
        "new partitions changed to OnlinePartition",
    ),
    Message.LEADER_ELECTED: Template(
        INFO,
        "Changed partition {partition} from {before} to OnlinePartition with state {state}",
        PREFIX,
        "partitions got a leader elected",
    ),
    Message.PARTITION_FAILED: Template(
        ERROR,
        "Controller {id} epoch {epoch} failed to change state for partition {partition} from {before} to {target}: "
        "{reason}",
        PREFIX,
        "partitions failed to change their state",
    ),
    # ReplicaStateMachine.doHandleStateChanges
    Message.ISR_SHRUNK: Template(
        INFO,
        "Partition {partition} state changed to {leadership} after removing replica {replica} from the ISR as part of "
        "transition to OfflineReplica",
        PREFIX,
        "partitions had a replica removed from their ISR",
    ),
    # KafkaController.updateLeaderEpochAndSendRequest, processLeaderAndIsrResponseReceived
    Message.REASSIGNMENT_SENT: Template(
        INFO,
        "Sent LeaderAndIsr request {leadership} with new replica assignment {assignment} to leader {leader} for "
        "partition being reassigned {partition}",
        PREFIX,
        "partitions being reassigned were sent a new replica assignment",
    ),
    Message.REPLICAS_OFFLINE: Template(INFO, "Mark replicas {partitions} on broker {broker} as offline", PREFIX),
    Message.RESPONSE_ERROR: Template(ERROR, "Received error {error} in {api} response from broker {broker}", PREFIX),
    # Refusals that Kafka does not log.
    Message.REFUSED: Template(ERROR, "{kind} {partitions}: {reason}", PREFIX),
}


@dataclass(frozen=True, slots=True, eq=False)
class SentRequests:
    """The size of a batch for each broker. Brokers are ids."""

    controller_epoch: int
    leader_and_isr: tuple[tuple[int, int, int], ...]
    """(broker, become-leader partitions, become-follower partitions)"""
    metadata_brokers: tuple[int, ...]
    metadata_partitions: int
    stop_replica: tuple[tuple[int, int], ...]
    """(broker, replicas)"""

    @staticmethod
    def of(cluster: ClusterState, requests: ControlRequests) -> SentRequests:
        """Count a batch right before it is sent."""
        leadership, ids = requests.leader_and_isr, cluster.brokers.ids
        sizes = np.diff(leadership.offsets)
        leads = cluster.partitions.leader[leadership.rows] == np.repeat(leadership.brokers, sizes)
        leaders = np.diff(np.concatenate([[0], np.cumsum(leads)])[leadership.offsets])
        stopped = requests.stop_replica
        return SentRequests(
            requests.controller_epoch,
            tuple(zip(ids[leadership.brokers].tolist(), leaders.tolist(), (sizes - leaders).tolist(), strict=True)),
            tuple(ids[requests.metadata_brokers].tolist()),
            len(requests.metadata_rows),
            tuple(zip(ids[stopped.brokers].tolist(), np.diff(stopped.offsets).tolist(), strict=True)),
        )

    def lines(self, controller_id: int) -> Iterator[str]:
        """A line for each LeaderAndIsr and StopReplica request. One line for UpdateMetadata to all brokers (Kafka 3.9
        ``AbstractControllerBrokerRequestBatch``)."""
        prefix = PREFIX.format(id=controller_id, epoch=self.controller_epoch)
        for broker, leaders, followers in self.leader_and_isr:
            yield (
                f"{prefix}Sending LeaderAndIsr request to broker {broker} with {leaders} become-leader and {followers} "
                "become-follower partitions"
            )
        if self.metadata_brokers:
            brokers = ", ".join(map(str, self.metadata_brokers))
            yield (
                f"{prefix}Sending UpdateMetadata request to brokers Set({brokers}) for {self.metadata_partitions} "
                "partitions"
            )
        for broker, replicas in self.stop_replica:
            yield f"{prefix}Sending StopReplica request for {replicas} replicas to broker {broker}"
