"""Conversion of broker messages to controller events, and of the controller's responses."""

from __future__ import annotations

import numpy as np

from kframe.core.operations import alter_partition, controlled_shutdown
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.cluster import ClusterState
from kframe.model.events import AlterPartitionRequested, ControlledShutdownRequested
from kframe.model.tables import RequestedPartitions
from kframe.model.topic_partitions import topic_partition
from kframe_simulator.broker.messages import NO_ID
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    ControlledShutdown,
    ControlledShutdownResponseData,
)

#: The AlterPartition version of broker models: topics have ids.
ALTER_PARTITION_VERSION = 3


def alter_partition_event(message: AlterPartition, token: int) -> AlterPartitionRequested:
    """The controller event for a leader's proposals. ZooKeeper-mode leaders do not send the members' broker epochs."""
    proposals = message.partitions.values()
    by_id = all(proposal.topic_id != NO_ID for proposal in proposals)
    named = RequestedPartitions.of(
        (item.topic_id if by_id else topic, number) for (topic, number), item in message.partitions.items()
    )
    return AlterPartitionRequested(
        message.broker_id,
        message.broker_epoch,
        ALTER_PARTITION_VERSION if by_id else 1,
        named,
        np.array([proposal.leader_epoch for proposal in proposals], np.int32),
        np.array([proposal.partition_epoch for proposal in proposals], np.int32),
        np.array([proposal.recovery for proposal in proposals], np.uint8),
        Ragged.of([proposal.isr for proposal in proposals]),
        token,
    )


def alter_partition_reply(
    cluster: ClusterState, message: AlterPartition, response: alter_partition.AlterPartitionResponse
) -> AlterPartitionResponseData:
    """The leader's form of the controller's response. Call it before the columns change."""
    states = response.states
    if response.error is not ErrorCode.NONE or states is None:
        return AlterPartitionResponseData(response.error)
    partitions = {}
    for index, (key, code) in enumerate(zip(message.partitions, response.codes.tolist(), strict=True)):
        if code != ErrorCode.NONE:
            partitions[key] = AlteredPartition(ErrorCode(code))
            continue
        first, last = states.isr.offsets[index : index + 2]
        leader = int(states.leader[index])
        partitions[key] = AlteredPartition(
            ErrorCode.NONE,
            leader if leader < 0 else int(cluster.brokers.ids[leader]),
            int(states.leader_epoch[index]),
            tuple(cluster.brokers.ids_of(states.isr.values[first:last])),
            int(states.recovery[index]),
            int(states.partition_epoch[index]),
        )
    return AlterPartitionResponseData(ErrorCode.NONE, partitions)


def controlled_shutdown_event(message: ControlledShutdown, token: int) -> ControlledShutdownRequested:
    """The controller event for a controlled shutdown request."""
    return ControlledShutdownRequested(message.broker_id, message.broker_epoch, token)


def controlled_shutdown_reply(
    cluster: ClusterState, response: controlled_shutdown.ControlledShutdownResponse
) -> ControlledShutdownResponseData:
    """The broker's form of the controller's response. Call it before the columns change."""
    return ControlledShutdownResponseData(
        response.error, tuple(topic_partition(cluster.name(int(row))) for row in response.remaining)
    )
