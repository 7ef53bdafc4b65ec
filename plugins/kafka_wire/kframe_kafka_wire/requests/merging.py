"""Merge the queue of a slow broker into the fewest requests with the same effect.

Queued bytes cannot be merged, so each request carries its rows (``content.py``). While the controller's
thread sends a batch, it drains a queue that has grown and encodes its rows again from the columns. The broker ends
in the state that the single requests would have caused:

- *LeaderAndIsr* has the newest state; ``is_new`` holds if any request had it. After a later StopReplica it is omitted.
- *StopReplica* has the last leader epoch; ``delete`` holds if any request had it. After a later LeaderAndIsr only a
  deletion is sent, before that LeaderAndIsr.
- *UpdateMetadata* has the newest state and the newest live brokers. The last request completes the newest batch.
- Rows of deleted topics come first, because the topic may exist again. Their UpdateMetadata has leader -2, their
  StopReplica has the old topic name, their LeaderAndIsr is dropped. Topics that the broker never learned of are
  omitted, so that the queue stays bounded. Of several deleted topics with the same name one deletion is sent.
- The first request is an UpdateMetadata, if there is any: brokers know each other before they follow (I14).

A merged queue has at most two requests of each kind, unless the byte limit splits them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kframe.plugin.cluster import ClusterState
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8
from kframe.plugin.transport import BrokerRows, ControlRequests
from kframe_kafka_wire.requests.content import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    BatchTopics,
    RequestContent,
)


@dataclass(frozen=True, slots=True, eq=False)
class _RequestRows:
    """Rows of one kind of request over many batches, each row once: (n,) arrays, rows ascending."""

    rows: Int32
    topic: Int32
    partition: Int32
    flags: UInt8
    """The bitwise OR over all batches."""
    leader_epoch: Int32
    """The last; 0 for LeaderAndIsr."""
    last: Int64
    """Number of the last batch with the row."""

    def where(self, mask: Bool) -> _RequestRows:
        """The rows that a mask selects."""
        return _RequestRows(
            self.rows[mask],
            self.topic[mask],
            self.partition[mask],
            self.flags[mask],
            self.leader_epoch[mask],
            self.last[mask],
        )


@dataclass(frozen=True, slots=True, eq=False)
class MergedBatch:
    """A batch and its cluster.

    ``origin`` has the true rows, topics and topic names if that is a cluster of deleted topics.
    """

    cluster: ClusterState
    requests: ControlRequests
    origin: tuple[Int32, Int32, Sequence[str]] | None = None

    def original(self, content: RequestContent) -> RequestContent:
        """The content of this batch in rows of the controller's cluster."""
        if self.origin is None:
            return content
        rows, topic, names = self.origin
        batch_topics = BatchTopics(np.empty(0, np.int32), np.empty((0, 16), np.uint8), names)
        return replace(content, rows=rows[content.rows], topic=topic[content.rows], names=batch_topics)


def merge(
    cluster: ClusterState, builder: BatchBuilder, waiting: Sequence[RequestContent], known_topics: int
) -> list[MergedBatch]:
    """Batches for a broker with the effect of all of ``waiting``. They are in order.

    ``known_topics`` is the first topic index that no request sent to the broker has named.
    """
    p = cluster.partitions
    leader_and_isr, stop_replica = _request_rows(LEADER_AND_ISR, waiting), _request_rows(STOP_REPLICA, waiting)
    has_metadata = any(content.api_key == UPDATE_METADATA for content in waiting)
    metadata, removed_metadata = _metadata(cluster, waiting)
    removed_metadata = removed_metadata.where(removed_metadata.topic < known_topics)
    removed_stops = stop_replica.where(p.topic[stop_replica.rows] < 0)
    removed = _distinct_by_name(cluster, removed_metadata), _distinct_by_name(cluster, removed_stops)
    leader_and_isr = leader_and_isr.where(p.topic[leader_and_isr.rows] >= 0)
    stop_replica = stop_replica.where(p.topic[stop_replica.rows] >= 0)
    led_last = _is_later(leader_and_isr, stop_replica)
    restarted = _is_later(stop_replica, leader_and_isr, reverse=True)
    first_stops = stop_replica.where(restarted & (stop_replica.flags != 0))
    deleted, deleted_rows, origin = _deleted_topics(cluster, removed)
    brokers = np.array([builder.broker] if has_metadata else [], np.int32)
    batch = max((content.batch for content in waiting if content.api_key == UPDATE_METADATA), default=0)
    nothing = leader_and_isr.where(np.zeros(len(leader_and_isr.rows), np.bool_))
    last_stops = stop_replica.where(~restarted)
    parts = [
        MergedBatch(
            deleted, builder.batch(deleted, nothing, brokers, deleted_rows[0], removed[1], deleted_rows[1]), origin
        ),
        MergedBatch(cluster, builder.batch(cluster, nothing, brokers[:0], nothing.rows, first_stops, first_stops.rows)),
        MergedBatch(
            cluster,
            builder.batch(
                cluster, leader_and_isr.where(led_last), brokers, metadata, last_stops, last_stops.rows, batch
            ),
        ),
    ]
    return [part for part in parts if not part.requests.empty]


@dataclass(frozen=True, slots=True)
class BatchBuilder:
    """Builds batches of this controller for one broker (index)."""

    broker: int
    controller_id: int
    controller_epoch: int

    def batch(
        self,
        cluster: ClusterState,
        leader_and_isr: _RequestRows,
        brokers: Int32,
        metadata: Int32,
        stop_replica: _RequestRows,
        stop_rows: Int32,
        number: int = 0,
    ) -> ControlRequests:
        """A batch; ``stop_rows`` are the rows of ``stop_replica`` in ``cluster``.

        ``number`` is the batch that it completes, 0 for none.
        """
        leader_order, stop_order = _in_topic_order(cluster, leader_and_isr.rows), _in_topic_order(cluster, stop_rows)
        return ControlRequests(
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            leader_and_isr=self._rows(leader_and_isr.rows[leader_order]),
            is_new=leader_and_isr.flags[leader_order],
            metadata_brokers=brokers,
            metadata_rows=metadata[_in_topic_order(cluster, metadata)],
            stop_replica=self._rows(stop_rows[stop_order]),
            stop_leader_epoch=stop_replica.leader_epoch[stop_order],
            stop_delete=stop_replica.flags[stop_order],
            batch=number,
        )

    def _rows(self, rows: Int32) -> BrokerRows:
        if not len(rows):
            return BrokerRows.none()
        return BrokerRows(np.array([self.broker], np.int32), np.array([0, len(rows)], np.int32), rows)


def _metadata(cluster: ClusterState, waiting: Sequence[RequestContent]) -> tuple[Int32, _RequestRows]:
    """The rows of all UpdateMetadata, ascending, and those of deleted topics."""
    p, in_metadata = cluster.partitions, np.zeros(len(cluster), np.bool_)
    deleted_topics = []
    for content in {id(content): content for content in waiting if content.api_key == UPDATE_METADATA}.values():
        in_metadata[content.rows] = True
        missing = p.topic[content.rows] < 0
        if missing.any():
            deleted_topics.append(
                replace(
                    content,
                    rows=content.rows[missing],
                    topic=content.topic[missing],
                    partition=content.partition[missing],
                )
            )
    in_metadata &= p.topic >= 0
    return np.flatnonzero(in_metadata).astype(np.int32), _request_rows(UPDATE_METADATA, deleted_topics)


def _request_rows(api_key: int, waiting: Sequence[RequestContent]) -> _RequestRows:
    """The rows of all requests of one kind. The requests of a batch share one content."""
    once = {id(content): (number, content) for number, content in enumerate(waiting) if content.api_key == api_key}
    batches = list(once.values())
    empty = np.empty(0, np.int32)
    counts = [len(content.rows) for _, content in batches]
    number = np.repeat(np.array([number for number, _ in batches], np.int64), counts)

    def joined(columns: Iterable[Any]) -> Any:
        """A column of all batches. Those without it have zeros."""
        pairs = zip(columns, counts, strict=True)
        return np.concatenate([empty, *(np.zeros(n, np.int32) if values is None else values for values, n in pairs)])

    rows = joined(content.rows for _, content in batches)
    topic = joined(content.topic for _, content in batches)
    partition = joined(content.partition for _, content in batches)
    flags = joined(content.flags for _, content in batches)
    epochs = joined(content.leader_epoch for _, content in batches)
    order = np.argsort(rows, kind="stable")  # Equal rows stay in the order of the requests.
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(rows) else empty
    last = order[np.append(starts[1:], len(order)) - 1] if len(rows) else empty
    sticky = np.maximum.reduceat(flags[order], starts) if len(rows) else flags
    return _RequestRows(rows[last], topic[last], partition[last], sticky.astype(np.uint8), epochs[last], number[last])


def _is_later(request_rows: _RequestRows, others: _RequestRows, *, reverse: bool = False) -> Bool:
    """For each row: whether its last batch is after that of the same row in ``others``, or ``others`` lacks the row.

    With ``reverse``: whether the row is in ``others`` with a later batch.
    """
    positions = np.searchsorted(others.rows, request_rows.rows)
    matches = np.append(others.rows, -1)[positions] == request_rows.rows
    other_last = np.append(others.last, -1)[positions]
    before: Bool = matches & (other_last > request_rows.last)
    return before if reverse else ~before


def _deleted_topics(
    cluster: ClusterState, removed: Sequence[_RequestRows]
) -> tuple[ClusterState, list[Int32], tuple[Int32, Int32, Sequence[str]]]:
    """A cluster of the deleted topics of ``removed``, and the row in it of each of them. Also their true rows, topics
    and all topic names."""
    true_row = np.concatenate([request_rows.rows for request_rows in removed])
    topic = np.concatenate([request_rows.topic for request_rows in removed])
    partition = np.concatenate([request_rows.partition for request_rows in removed])
    indexes, counts = np.unique(topic, return_counts=True)
    deleted = ClusterState()
    deleted.brokers = cluster.brokers
    names = [cluster.topics.names[index] for index in indexes.tolist()]
    ids = [cluster.topics.ids[index].tobytes() for index in indexes.tolist()]
    rows = deleted.add_topics(names, counts, Ragged.empty(len(topic)), ids=ids)
    deleted.topics.deleting[:] = 1
    order = np.argsort(topic, kind="stable")
    deleted.partitions.partition[rows] = partition[order]
    row_of = np.empty(len(topic), np.int32)
    row_of[order] = rows
    return (
        deleted,
        [row_of[: len(removed[0].rows)], row_of[len(removed[0].rows) :]],
        (true_row[order], topic[order], cluster.topics.names),
    )


def _distinct_by_name(cluster: ClusterState, removed: _RequestRows) -> _RequestRows:
    """One row for each name of a partition. Several deleted topics may have the same name.

    Brokers identify replicas by name, so a request must not name a partition twice. A row with a deletion prevails,
    then the last row.
    """
    indexes, position = np.unique(removed.topic, return_inverse=True)
    names = [cluster.topics.names[index] for index in indexes.tolist()]
    if len(set(names)) == len(names):
        return removed
    name = np.unique(names, return_inverse=True)[1][position]
    order = np.lexsort((removed.last, removed.flags, removed.partition, name))
    name, partition = name[order], removed.partition[order]
    is_last = np.append((name[1:] != name[:-1]) | (partition[1:] != partition[:-1]), True)
    mask = np.zeros(len(order), np.bool_)
    mask[order[is_last]] = True
    return removed.where(mask)


def _in_topic_order(cluster: ClusterState, rows: Int32) -> Int64 | slice:
    p = cluster.partitions
    if p.in_topic_order and bool((rows[1:] > rows[:-1]).all()):
        return slice(None)
    order: Int64 = np.lexsort((p.partition[rows], p.topic[rows]))
    return order
