"""Responses of a controller for its callers: topics by name, brokers by id.

The core answers in rows, which are valid only until the columns change, so answers are translated at once. Values per
partition stay in arrays; iterating yields objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.core.operations.controlled_shutdown import ControlledShutdownResponse
from kframe.core.operations.elect_leaders import ElectionResponse
from kframe.core.operations.topic_requests import ReassignmentResponse, ReassignmentsListed, TopicShape
from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int16, Int32, Ragged, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_LEADER, ReplicaFlag
from kframe.model.tables import Targets

Name = TypeVar("Name", bound=str | None)


class Codes(dict[Name, ErrorCode]):
    """An error code for each topic or resource of a request, by name."""

    def __init__(
        self, codes: Mapping[Name, ErrorCode], messages: Mapping[Name, str], created: Mapping[str, TopicShape] = {}
    ) -> None:
        super().__init__(codes)
        self.messages: Mapping[Name, str] = dict(messages)
        """Kafka's messages for refused settings, by name."""
        self.created = created
        """The shapes of created topics, as they were then."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionList:
    """``k`` partitions. Number ``i`` is partition ``partition[i]`` of topic ``names[topic[i]]``."""

    names: tuple[str, ...]
    topic: Int32
    partition: Int32

    def __len__(self) -> int:
        return len(self.topic)

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic, partition in zip(self.topic.tolist(), self.partition.tolist(), strict=True):
            yield self.names[topic], partition

    @staticmethod
    def of_rows(cluster: ClusterState, rows: Int32) -> PartitionList:
        """The partitions at these rows."""
        topics, topic = np.unique(cluster.partitions.topic[rows], return_inverse=True)
        names = tuple(cluster.topics.names[index] for index in topics)
        return PartitionList(names, topic.astype(np.int32), cluster.partitions.partition[rows])


@dataclass(frozen=True, slots=True, eq=False)
class PartitionCodes:
    """An error code for each partition. ``error`` is that of the request, NONE if partitions were handled."""

    error: ErrorCode
    partitions: PartitionList
    codes: Int16

    def __len__(self) -> int:
        return len(self.partitions)

    def by_partition(self) -> dict[TopicPartition, ErrorCode]:
        """The code of each partition by (topic, partition)."""
        return {name: ErrorCode(code) for name, code in zip(self.partitions, self.codes.tolist(), strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class RemainingPartitions:
    """The response to a controlled shutdown. It is an error, or the partitions with other replicas that the broker
    still leads."""

    error: ErrorCode
    partitions: PartitionList


@dataclass(frozen=True, slots=True, eq=False)
class Reassignments:
    """Partitions being reassigned. The lists (broker ids) are in the order of ``partitions``."""

    error: ErrorCode
    partitions: PartitionList
    replicas: Ragged
    adding_replicas: Ragged
    removing_replicas: Ragged

    def __len__(self) -> int:
        return len(self.partitions)


@dataclass(frozen=True, slots=True, eq=False)
class AlteredPartitions:
    """The response to AlterPartition: an error, or a code for each proposal and, where ``known``, the current state.
    Leaders and ISRs are broker ids. -1 is no leader."""

    error: ErrorCode
    codes: Int16
    known: Bool
    leader: Int32
    leader_epoch: Int32
    partition_epoch: Int32
    recovery: UInt8
    isr: Ragged


def read_election(cluster: ClusterState, response: ElectionResponse) -> PartitionCodes:
    """Known partitions by row, then unknown ones in the order of the request."""
    known = PartitionList.of_rows(cluster, response.rows)
    unknown = [name for name, _ in response.unknown]
    names = known.names + tuple(dict.fromkeys(topic for topic, _ in unknown))
    topic_of = {name: topic for topic, name in enumerate(names) if topic >= len(known.names)}
    partitions = PartitionList(
        names,
        np.append(known.topic, np.array([topic_of[topic] for topic, _ in unknown], np.int32)),
        np.append(known.partition, np.array([partition for _, partition in unknown], np.int32)),
    )
    codes = np.append(response.codes, np.array([code for _, code in response.unknown], np.int16))
    return PartitionCodes(response.error, partitions, codes)


def read_shutdown(cluster: ClusterState, response: ControlledShutdownResponse) -> RemainingPartitions:
    """The partitions that the broker still leads."""
    return RemainingPartitions(response.error, PartitionList.of_rows(cluster, response.remaining))


def read_reassignment(targets: Targets, response: ReassignmentResponse) -> PartitionCodes:
    """A code for each target. If the request was refused, its error for each."""
    codes = response.codes
    if response.error is not ErrorCode.NONE:
        codes = np.full(len(targets), response.error, np.int16)
    return PartitionCodes(response.error, PartitionList(targets.names, targets.topic, targets.partition), codes)


def read_reassignments(cluster: ClusterState, response: ReassignmentsListed) -> Reassignments:
    """The current replica lists."""
    rows = response.rows
    return Reassignments(
        response.error,
        PartitionList.of_rows(cluster, rows),
        cluster.replica_ids(rows),
        cluster.replica_ids(rows, ReplicaFlag.ADDING),
        cluster.replica_ids(rows, ReplicaFlag.REMOVING),
    )


def read_altered(cluster: ClusterState, response: AlterPartitionResponse) -> AlteredPartitions:
    """States with broker ids instead of indexes."""
    states = response.states
    if states is None:
        nothing = np.empty(0, np.int32)
        return AlteredPartitions(
            response.error,
            response.codes,
            np.empty(0, np.bool_),
            nothing,
            nothing,
            nothing,
            np.empty(0, np.uint8),
            Ragged.empty(0),
        )
    ids = np.append(cluster.brokers.ids, np.int32(NO_LEADER))
    return AlteredPartitions(
        response.error,
        response.codes,
        states.exists,
        ids[states.leader],
        states.leader_epoch,
        states.partition_epoch,
        states.recovery,
        Ragged(states.isr.offsets, ids[states.isr.values]),
    )
