"""Conversion between a controller and broker models: batches to requests, broker messages to events, and responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from kframe.core.brokers import alter_partition, controlled_shutdown
from kframe.embedded.describe import Api, Request, describe_requests
from kframe.errors import ErrorCode
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    ControlledShutdownRequested,
    Event,
    LeaderAndIsrAnswered,
    StopReplicaAnswered,
    TopicPartition,
    UpdateMetadataAnswered,
)
from kframe.model.requests import ControlRequests
from kframe_simulator.broker.messages import (
    NO_ID,
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    PartitionMetadata,
    Stop,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponse,
    ControlledShutdown,
    ControlledShutdownResponse,
)

Control: TypeAlias = LeaderAndIsr | UpdateMetadata | StopReplica
#: The AlterPartition version of broker models: topics have ids.
ALTER_PARTITION_VERSION = 3


class Order(NamedTuple):
    """A control request for one broker."""

    broker_id: int
    request: Control
    shown: Request
    """The request in trace form."""
    rows: Int32
    """The controller's rows in the response; for StopReplica the rows to delete."""
    batch: int
    """The number of the request's batch."""

    def event(self, response: ControlResponse) -> Event | None:
        """The controller event for the response; None if there is none."""
        error, request = response.error, self.request
        if isinstance(request, UpdateMetadata):
            return UpdateMetadataAnswered(self.broker_id, error, request.controller_epoch, self.batch)
        failed = tuple((key, code) for key, code in response.errors.items() if code is not ErrorCode.NONE)
        if error is not ErrorCode.NONE:
            failed = tuple((key, error) for key in request.partitions)
        if isinstance(request, LeaderAndIsr):
            return LeaderAndIsrAnswered(self.broker_id, error, failed, request.controller_epoch, self.rows)
        if len(self.rows):
            return StopReplicaAnswered(self.broker_id, error, failed, request.controller_epoch, self.rows)
        return None


def orders(cluster: ClusterState, requests: ControlRequests) -> Iterator[Order]:
    """Every request of a batch, in sending order. Consume it before the columns change."""
    metadata: dict[TopicPartition, PartitionMetadata] | None = None
    for shown in describe_requests(cluster, requests):
        epoch = int(cluster.brokers.broker_epoch[cluster.brokers.find(shown["broker"])])
        keys = [split(name) for name in shown["partitions"]]
        head = (requests.controller_id, requests.controller_epoch, epoch)
        values = shown["partitions"].values()
        request: Control
        match shown["api"]:
            case Api.LEADER_AND_ISR:
                states = {key: _leader_state(cluster, key, item) for key, item in zip(keys, values, strict=True)}
                request = LeaderAndIsr(*head, states, _topic_ids(cluster, keys), tuple(shown["live_leaders"]))
            case Api.UPDATE_METADATA:
                if metadata is None:  # All brokers get the same metadata of a batch.
                    metadata = {key: _metadata(item) for key, item in zip(keys, values, strict=True)}
                request = UpdateMetadata(*head, tuple(shown["live_brokers"]), metadata, _topic_ids(cluster, keys))
            case _:
                stops = {
                    key: Stop(item["leader_epoch"], item["delete_partition"])
                    for key, item in zip(keys, values, strict=True)
                }
                request = StopReplica(*head, stops)
                keys = [key for key, item in stops.items() if item.delete]
        rows = [row for row in (cluster.row(*key) for key in keys) if row is not None]
        yield Order(shown["broker"], request, shown, np.array(rows, np.int32), requests.batch)


def _leader_state(cluster: ClusterState, key: TopicPartition, shown: Request) -> LeaderState:
    row = cluster.row(*key)
    return LeaderState(
        int(cluster.partitions.controller_epoch[row]), shown["leader"], shown["leader_epoch"], tuple(shown["isr"]),
        shown["partition_epoch"], tuple(shown["replicas"]), tuple(shown["adding_replicas"]),
        tuple(shown["removing_replicas"]), shown["is_new"], shown["leader_recovery_state"],
    )  # fmt: skip


def _metadata(shown: Request) -> PartitionMetadata:
    return PartitionMetadata(
        shown["leader"], shown["leader_epoch"], tuple(shown["isr"]), shown["partition_epoch"],
        tuple(shown["replicas"]), tuple(shown["offline_replicas"]),
    )  # fmt: skip


def _topic_ids(cluster: ClusterState, keys: list[TopicPartition]) -> dict[str, bytes]:
    topics, result = cluster.topics, {}
    for name in dict.fromkeys(topic for topic, _ in keys):
        index = topics.find(name)
        topic_id = NO_ID if index is None else topics.ids[index].tobytes()
        if topic_id != NO_ID:
            result[name] = topic_id
    return result


def alter_partition_event(message: AlterPartition, token: int) -> AlterPartitionRequested:
    """The controller event for a leader's proposals. ZooKeeper-mode leaders do not send the members' broker epochs."""
    proposals = message.partitions.values()
    by_id = all(proposal.topic_id != NO_ID for proposal in proposals)
    named = tuple((item.topic_id if by_id else topic, number) for (topic, number), item in message.partitions.items())
    return AlterPartitionRequested(
        message.broker_id, message.broker_epoch, ALTER_PARTITION_VERSION if by_id else 1, named,
        np.array([proposal.leader_epoch for proposal in proposals], np.int32),
        np.array([proposal.partition_epoch for proposal in proposals], np.int32),
        np.array([proposal.recovery for proposal in proposals], np.uint8),
        Ragged.of([proposal.isr for proposal in proposals]), token,
    )  # fmt: skip


def alter_partition_reply(
    cluster: ClusterState, message: AlterPartition, response: alter_partition.AlterPartitionResponse
) -> AlterPartitionResponse:
    """The leader's form of the controller's response. Call it before the columns change."""
    states = response.states
    if response.error is not ErrorCode.NONE or states is None:
        return AlterPartitionResponse(response.error)
    answers = {}
    for index, (key, code) in enumerate(zip(message.partitions, response.codes.tolist(), strict=True)):
        if code != ErrorCode.NONE:
            answers[key] = AlteredPartition(ErrorCode(code))
            continue
        first, last = states.isr.offsets[index : index + 2]
        leader = int(states.leader[index])
        answers[key] = AlteredPartition(
            ErrorCode.NONE, leader if leader < 0 else int(cluster.brokers.ids[leader]),
            int(states.leader_epoch[index]), tuple(cluster.brokers.ids_of(states.isr.values[first:last])),
            int(states.recovery[index]), int(states.partition_epoch[index]),
        )  # fmt: skip
    return AlterPartitionResponse(ErrorCode.NONE, answers)


def controlled_shutdown_event(message: ControlledShutdown, token: int) -> ControlledShutdownRequested:
    """The controller event for a controlled shutdown request."""
    return ControlledShutdownRequested(message.broker_id, message.broker_epoch, token)


def controlled_shutdown_reply(
    cluster: ClusterState, response: controlled_shutdown.ControlledShutdownResponse
) -> ControlledShutdownResponse:
    """The broker's form of the controller's response. Call it before the columns change."""
    return ControlledShutdownResponse(
        response.error, tuple(split(cluster.name(int(row))) for row in response.remaining)
    )


def split(name: str) -> TopicPartition:
    """``topic-partition`` as a key."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)
