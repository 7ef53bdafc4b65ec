"""Requests grouped by broker: at most one request per broker and API (Kafka 3.9 ``ControllerBrokerRequestBatch``).

A later state of a partition replaces an earlier one. ``is_new`` and ``delete_partition`` stay set. Every LeaderAndIsr
entry adds the partition to the UpdateMetadata of all registered brokers. Only registered brokers receive requests. A
batch holds rows; their contents are read from the columns when it is sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_STATE
from kframe.model.lists import distinct_values
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.model.row_views import values_at


class RequestBatch:
    """The requests of one bulk transition or one operation."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._leader_and_isr: list[tuple[Int32, Int32, UInt8]] = []
        self._stop_replica: list[tuple[Int32, Int32, Int32, bool]] = []
        self._metadata: list[Int32] = []
        self._metadata_brokers = np.zeros(len(cluster.brokers), np.uint8)

    def add_leader_and_isr(self, brokers: Int32, rows: Int32, changed: NDArray[Any], is_new: UInt8 | bool) -> None:
        """Add LeaderAndIsr of ``rows[i]`` for ``brokers[i]``, and metadata of ``changed`` for all registered brokers.

        Pairs of a call differ, and their rows ascend. ``is_new`` is that of each pair or of all. ``changed`` has each
        row once, including rows without a recipient.
        """
        if len(rows):
            new = np.full(len(rows), is_new, np.uint8) if isinstance(is_new, bool) else is_new
            self._leader_and_isr.append((brokers, rows, new))
        self.add_metadata(np.flatnonzero(self._cluster.brokers.registered), changed)

    def add_stop_replica(self, brokers: Int32, rows: Int32, delete: bool, leader_epoch: Int32 | None = None) -> None:
        """Add StopReplica of ``rows[i]`` for ``brokers[i]``, by default under the present leader epoch.

        Pairs of a call differ, and their rows ascend.
        """
        epochs = self.stop_leader_epoch(rows) if leader_epoch is None else leader_epoch
        self._stop_replica.append((brokers, rows, epochs, delete))

    def stop_leader_epoch(self, rows: Int32) -> Int32:
        """The leader epoch of a StopReplica of each row at present."""
        partitions, deleting = self._cluster.partitions, self._cluster.topics.deleting
        epochs = np.empty(len(rows), np.int32)
        kernels.list_stop_epochs(
            rows, partitions.topic, deleting, partitions.partition_epoch, partitions.leader_epoch, epochs
        )
        return epochs

    def add_metadata(self, brokers: NDArray[Any], rows: NDArray[Any]) -> None:
        """Add UpdateMetadata for ``brokers``: registered brokers, and ``rows`` (each once) that have a state."""
        self._metadata_brokers[brokers] = 1
        has_state = values_at(self._cluster.partitions.partition_epoch, rows) != NO_STATE
        rows = rows if has_state.all() else rows[has_state]
        if len(rows):
            self._metadata.append(rows.astype(np.int32, copy=False))

    def close(self, controller_id: int, controller_epoch: int, number: int = 0) -> ControlRequests:
        """The requests to brokers that are registered at present, as batch ``number``."""
        leader_and_isr, is_new, _ = self._by_broker(
            [(brokers, rows, is_new, None) for brokers, rows, is_new in self._leader_and_isr]
        )
        stop_replica, delete, leader_epoch = self._by_broker(
            [
                (b, rows, np.full(len(rows), deleted, np.uint8), epochs)
                for b, rows, epochs, deleted in self._stop_replica
            ]
        )
        recipients = self._metadata_brokers & self._cluster.brokers.registered[: len(self._metadata_brokers)]
        return ControlRequests(
            controller_id=controller_id,
            controller_epoch=controller_epoch,
            leader_and_isr=leader_and_isr,
            is_new=is_new,
            metadata_brokers=np.flatnonzero(recipients).astype(np.int32),
            metadata_rows=self._metadata_rows(),
            stop_replica=stop_replica,
            stop_leader_epoch=leader_epoch,
            stop_delete=delete,
            batch=number,
        )

    def _metadata_rows(self) -> Int32:
        if not self._metadata:
            return np.empty(0, np.int32)
        rows = self._metadata[0] if len(self._metadata) == 1 else distinct_values(np.concatenate(self._metadata))
        return self._in_topic_order(rows)

    def _in_topic_order(self, rows: Int32) -> Int32:
        partitions = self._cluster.partitions
        if partitions.in_topic_order:
            return rows if bool((rows[1:] > rows[:-1]).all()) else np.sort(rows)
        return rows[np.lexsort((partitions.partition[rows], partitions.topic[rows]))]

    def _by_broker(self, added: list[tuple[Int32, Int32, UInt8, Int32 | None]]) -> tuple[BrokerRows, UInt8, Int32]:
        """Group pairs by broker, each (broker, row) once: flags are combined by or, the last epoch wins."""
        if not added:
            return BrokerRows.none(), np.empty(0, np.uint8), np.empty(0, np.int32)
        brokers = _joined([pairs[0] for pairs in added])
        rows = _joined([pairs[1] for pairs in added])
        flags = _joined([pairs[2] for pairs in added])
        leader_epoch = _joined([pairs[3] for pairs in added if pairs[3] is not None])
        if not self._cluster.brokers.registered.all():
            registered = self._cluster.brokers.registered[brokers] != 0
            brokers, rows, flags = brokers[registered], rows[registered], flags[registered]
            leader_epoch = leader_epoch[registered] if len(leader_epoch) else leader_epoch
        if len(added) > 1 or not self._cluster.partitions.in_topic_order:
            chosen, flags = self._deduplicated(brokers, rows, flags)
            brokers, rows = brokers[chosen], rows[chosen]
            leader_epoch = leader_epoch[chosen] if len(leader_epoch) else leader_epoch
        offsets = np.empty(len(self._cluster.brokers) + 1, np.int32)
        same_flags, same_epochs = _all_equal(flags), _all_equal(leader_epoch)
        grouped = np.empty(len(rows), np.int32)
        origin = np.empty(0 if same_flags and same_epochs else len(rows), np.int32)
        kernels.group_by_broker(brokers, rows, offsets, grouped, origin)
        used = np.flatnonzero(offsets[1:] != offsets[:-1]).astype(np.int32)
        # Brokers without rows are skipped.
        table = BrokerRows(used, np.concatenate([offsets[:1], offsets[1:][used]]), grouped)
        return table, flags if same_flags else flags[origin], leader_epoch if same_epochs else leader_epoch[origin]

    def _deduplicated(self, brokers: Int32, rows: Int32, flags: UInt8) -> tuple[NDArray[Any], UInt8]:
        """Positions of the last pair of each (broker, row), by broker, topic and partition. Also their combined
        flags."""
        order = self._order(brokers, rows)
        same = (brokers[order][1:] == brokers[order][:-1]) & (rows[order][1:] == rows[order][:-1])
        starts = np.flatnonzero(np.concatenate([[True], ~same])) if len(order) else np.empty(0, np.int64)
        ends = np.append(starts[1:], len(order)) - 1
        combined = np.maximum.reduceat(flags[order], starts) if len(order) else flags
        return order[ends] if len(order) else order, combined

    def _order(self, brokers: Int32, rows: Int32) -> NDArray[Any]:
        """Positions of pairs by broker, topic and partition. Equal pairs keep their order."""
        partitions = self._cluster.partitions
        if partitions.in_topic_order:
            return np.argsort(brokers.astype(np.int64) << 32 | rows, kind="stable")
        return np.lexsort((partitions.topic[rows].astype(np.int64) << 32 | partitions.partition[rows], brokers))


def _all_equal(values: NDArray[Any]) -> bool:
    return len(values) == 0 or bool(values.min() == values.max())


def _joined(parts: list[Any]) -> Any:
    if not parts:
        return np.empty(0, np.int32)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
