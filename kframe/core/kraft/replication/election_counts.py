"""Counts elections whose leader was not in the ISR (Kafka 4.4 ``TopicDelta.updateElectionStats``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.controller_result import DecisionPart
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.model.arrays import Bool
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import PartitionChangeRecord


@dataclass(slots=True)
class ElectionCounts:
    """Elections since the start: ``unclean`` ones, and those of an eligible leader replica outside the ISR."""

    unclean: int = 0
    from_elr: int = 0

    def add(self, metadata: ClusterMetadata, part: DecisionPart) -> None:
        """Add the elections of a part, before ``metadata`` has it."""
        if isinstance(part, PartitionChangeBatch):
            self._add_batch(part)
        elif isinstance(part.record, PartitionChangeRecord):
            self._add_record(metadata, part.record)

    def _add_batch(self, batch: PartitionChangeBatch) -> None:
        elected = np.flatnonzero(batch.writes_leader & (batch.leader != NO_LEADER))
        in_elr, in_isr = _is_in(batch, elected, "elr"), _is_in(batch, elected, "isr")
        self.from_elr += int(in_elr.sum())
        self.unclean += int((~in_elr & ~in_isr).sum())

    def _add_record(self, metadata: ClusterMetadata, record: PartitionChangeRecord) -> None:
        row = metadata.topics.row_by_id(record.topic_id, record.partition_id)
        leader = metadata.brokers.find(record.leader)
        if row is None or leader is None:
            return
        if leader in metadata.partitions.list_of("elr", row):
            self.from_elr += 1
        elif leader not in metadata.partitions.list_of("isr", row):
            self.unclean += 1


def _is_in(batch: PartitionChangeBatch, elected: NDArray[np.intp], name: str) -> Bool:
    """(k,) whether a stored list of each elected row has the new leader."""
    lists = batch.metadata.partitions.lists(name, batch.rows[elected])
    return lists.any(lists.values == batch.leader[elected][lists.owners])
