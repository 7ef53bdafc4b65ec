"""The proposals of leaders that a controller has refused.

A leader returns to the last committed ISR after a refusal. Another copy of the same request may still be accepted: the
leader then does not know the stored ISR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.arrays import Int16
from kframe.model.events import AlterPartitionRequested, TopicPartition
from kframe_simulator.broker.partition import Partition
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.cluster import SimulatedCluster

#: After these errors a leader returns to the last committed ISR (Kafka 3.9 ``Partition.handleAlterPartitionError``).
_REVERTING: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)


class RefusedProposals:
    """The refused proposals of existing topics."""

    def __init__(self, simulation: SimulatedCluster) -> None:
        self._simulation = simulation
        self._members: defaultdict[tuple[TopicPartition, int], set[int]] = defaultdict(set)
        """By partition and leader epoch: the members of all refused proposals."""

    def refused(self, event: AlterPartitionRequested, codes: Int16, names: Mapping[bytes, str]) -> None:
        """A controller has responded. ``names`` has the names of topics by id."""
        for position in np.flatnonzero(np.isin(codes, _REVERTING)).tolist():
            topic, number = event.partitions[position]
            key = (topic if isinstance(topic, str) else names.get(topic, ""), number)
            self._members[key, int(event.leader_epoch[position])].update(event.isr[position].tolist())

    def topic_deleted(self, name: str) -> None:
        """A topic was deleted."""
        for entry in [entry for entry in self._members if entry[0][0] == name]:
            del self._members[entry]

    def not_awaited(self, row: Row) -> set[int]:
        """The ISR members for which the leader does not wait, because it had a refusal of their proposal."""
        partition, members = self._leading(row), self._members.get((row.key, row.leader_epoch), set())
        return set() if partition is None else members.intersection(row.isr).difference(partition.maximal_isr)

    def leader_is_behind(self, row: Row) -> bool:
        """Whether a leader had a refusal of a proposal, and does not know a later state. The version of all its later
        proposals is too low (Kafka 3.9 ``tryProcessAlterPartition``)."""
        partition, has_refusal = self._leading(row), (row.key, row.leader_epoch) in self._members
        return has_refusal and partition is not None and partition.partition_epoch < row.partition_epoch

    def _leading(self, row: Row) -> Partition | None:
        """The partition on its leader. None if the leader does not know the leader epoch."""
        leader = self._simulation.brokers.get(row.leader)
        partition = None if leader is None else leader.model.partitions.get(row.key)
        if partition is None or not partition.is_leader or partition.leader_epoch != row.leader_epoch:
            return None
        return partition
