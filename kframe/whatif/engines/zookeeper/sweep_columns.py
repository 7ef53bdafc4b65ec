"""The partitions of a snapshot, some at a time, in the columns that a sweep counts.

A sweep reads each partition once. The columns of some of them stay in the caches, and take no memory for the whole
cluster, nor for columns that only a controller needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from kframe.model.arrays import Int16, Int32, Ragged, offsets_of, ragged_positions
from kframe.model.slot_columns import slots_of_lists
from kframe.snapshot.content import SnapshotContent
from kframe.snapshot.convert import broker_indexer, leader_indexes

#: Most partitions of a block.
BLOCK_ROWS: Final = 1 << 16
#: ``topic``, ``leader``, ``partition_epoch``, ``slot_start``, ``replica_count``, ``isr_count`` of each partition, and
#: ``replica`` and ``isr`` of each slot, as in ``model/columns.py``.
Columns: TypeAlias = tuple[Int32, Int16, Int32, Int32, Int16, Int16, Int16, Int16]


def blocks_of(snapshot: SnapshotContent, broker_ids: Int32) -> Iterator[Columns]:
    """The columns of all partitions, of up to BLOCK_ROWS at a time. ``broker_ids`` (b,) ascend: broker indexes are
    positions among them. Raises ShapeError for a partition with too many replicas."""
    partitions, topic = snapshot.partitions, snapshot.topics.topic_of_rows()
    to_index = broker_indexer(broker_ids)
    assert partitions.leader is not None
    for first in range(0, len(snapshot), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(snapshot))
        replicas = partitions.replicas.part(first, last)
        isr = Ragged.empty(last - first) if partitions.isr is None else partitions.isr.part(first, last)
        epoch, block = partitions.partition_epoch, slice(first, last)
        start, replica, members = _slots(replicas, isr, to_index)
        yield (
            topic[block],
            leader_indexes(partitions.leader[block], to_index).astype(np.int16, copy=False),
            np.zeros(last - first, np.int32) if epoch is None else epoch[block],
            start,
            replicas.counts.astype(np.int16),
            isr.counts.astype(np.int16),
            replica,
            members,
        )


def _slots(replicas: Ragged, isr: Ragged, to_index: Any) -> tuple[Int32, Int16, Int16]:
    """(n,) the first slot of each partition, and (s,) the broker indexes of replicas and ISR members by slot."""
    capacity = slots_of_lists(replicas, isr)
    indexes = [to_index(lists.values).astype(np.int16, copy=False) for lists in (replicas, isr)]
    if np.array_equal(replicas.offsets, isr.offsets):
        return replicas.offsets[:-1], indexes[0], indexes[1]
    offsets = offsets_of(capacity)
    slots = np.zeros((2, offsets[-1]), np.int16)
    for column, lists, values in zip(slots, (replicas, isr), indexes, strict=True):
        column[ragged_positions(offsets[:-1], lists.counts)] = values
    return offsets[:-1], slots[0], slots[1]
