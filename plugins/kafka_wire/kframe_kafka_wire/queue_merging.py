"""Merge the queue of a slow broker into the fewest requests with the same effect.

Queued bytes cannot be merged, so each request has its rows beside it (``request_content.py``). While the controller's
thread sends a batch, it takes back a queue that has grown and encodes its rows anew from the columns. The broker ends
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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kframe.plugin.cluster import ClusterState
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8
from kframe.plugin.transport import BrokerRows, ControlRequests
from kframe_kafka_wire.request_content import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, BatchTopics, RequestContent


@dataclass(frozen=True, slots=True, eq=False)
class _Ops:
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

    def where(self, chosen: Bool) -> _Ops:
        """The rows that a mask selects."""
        return _Ops(
            self.rows[chosen], self.topic[chosen], self.partition[chosen], self.flags[chosen],
            self.leader_epoch[chosen], self.last[chosen],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A batch and its cluster. ``origin`` has the true rows and topics if that is a cluster of deleted topics."""

    cluster: ClusterState
    requests: ControlRequests
    names: Sequence[str]
    origin: tuple[Int32, Int32] | None = None

    def original(self, content: RequestContent) -> RequestContent:
        """The content of this batch in rows of the controller's cluster."""
        if self.origin is None:
            return content
        rows, topic = (column[content.rows] for column in self.origin)
        nameless = BatchTopics(np.empty(0, np.int32), np.empty((0, 16), np.uint8), self.names)
        return replace(content, rows=rows, topic=topic, names=nameless)


def merge(
    cluster: ClusterState, builder: BatchBuilder, waiting: Sequence[RequestContent], known_topics: int
) -> list[Part]:
    """Batches for a broker with the effect of all of ``waiting``. They are in order.

    ``known_topics`` is the first topic index that no request sent to the broker has named.
    """
    p = cluster.partitions
    leading, stopping = _ops(LEADER_AND_ISR, waiting), _ops(STOP_REPLICA, waiting)
    has_metadata = any(content.api_key == UPDATE_METADATA for content in waiting)
    metadata, removed_metadata = _metadata(cluster, waiting)
    removed_metadata = removed_metadata.where(removed_metadata.topic < known_topics)
    removed_stops = stopping.where(p.topic[stopping.rows] < 0)
    removed = _once_by_name(cluster, removed_metadata), _once_by_name(cluster, removed_stops)
    leading, stopping = leading.where(p.topic[leading.rows] >= 0), stopping.where(p.topic[stopping.rows] >= 0)
    led_last = _later(leading, stopping)
    restarted = _later(stopping, leading, reverse=True)
    first = stopping.where(restarted & (stopping.flags != 0))
    deleted, deleted_rows, origin = _deleted_topics(cluster, removed)
    brokers = np.array([builder.broker] if has_metadata else [], np.int32)
    batch = max((content.batch for content in waiting if content.api_key == UPDATE_METADATA), default=0)
    nothing = leading.where(np.zeros(len(leading.rows), np.bool_))
    last, names = stopping.where(~restarted), cluster.topics.names
    parts = [
        Part(
            deleted,
            builder.batch(deleted, nothing, brokers, deleted_rows[0], removed[1], deleted_rows[1]),
            names,
            origin,
        ),
        Part(cluster, builder.batch(cluster, nothing, brokers[:0], nothing.rows, first, first.rows), names),
        Part(
            cluster, builder.batch(cluster, leading.where(led_last), brokers, metadata, last, last.rows, batch), names
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
        self, cluster: ClusterState, leading: _Ops, brokers: Int32, metadata: Int32, stopping: _Ops, stopped: Int32,
        number: int = 0,
    ) -> ControlRequests:  # fmt: skip
        """A batch; ``stopped`` are the rows of ``stopping`` in ``cluster``. ``number`` is the batch that it completes,
        0 for none."""
        lead, stop = _in_topic_order(cluster, leading.rows), _in_topic_order(cluster, stopped)
        return ControlRequests(
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            leader_and_isr=self._rows(leading.rows[lead]),
            is_new=leading.flags[lead],
            metadata_brokers=brokers,
            metadata_rows=metadata[_in_topic_order(cluster, metadata)],
            stop_replica=self._rows(stopped[stop]),
            stop_leader_epoch=stopping.leader_epoch[stop],
            stop_delete=stopping.flags[stop],
            batch=number,
        )

    def _rows(self, rows: Int32) -> BrokerRows:
        if not len(rows):
            return BrokerRows.none()
        return BrokerRows(np.array([self.broker], np.int32), np.array([0, len(rows)], np.int32), rows)


def _metadata(cluster: ClusterState, waiting: Sequence[RequestContent]) -> tuple[Int32, _Ops]:
    """The rows of all UpdateMetadata, ascending, and those of deleted topics."""
    p, in_metadata = cluster.partitions, np.zeros(len(cluster), np.bool_)
    gone = []
    for content in {id(content): content for content in waiting if content.api_key == UPDATE_METADATA}.values():
        in_metadata[content.rows] = True
        missing = p.topic[content.rows] < 0
        if missing.any():
            gone.append(
                replace(
                    content,
                    rows=content.rows[missing],
                    topic=content.topic[missing],
                    partition=content.partition[missing],
                )
            )
    in_metadata &= p.topic >= 0
    return np.flatnonzero(in_metadata).astype(np.int32), _ops(UPDATE_METADATA, gone)


def _ops(api_key: int, waiting: Sequence[RequestContent]) -> _Ops:
    """The rows of all requests of one kind. The requests of a batch share one content."""
    once = {id(content): (number, content) for number, content in enumerate(waiting) if content.api_key == api_key}
    batches = list(once.values())
    empty = np.empty(0, np.int32)
    rows = np.concatenate([empty, *(content.rows for _, content in batches)])
    counts = [len(content.rows) for _, content in batches]
    number = np.repeat(np.array([number for number, _ in batches], np.int64), counts)
    zeros = np.zeros(max(counts, default=0), np.int32)
    flags = np.concatenate(
        [empty, *(zeros[: len(content.rows)] if content.flags is None else content.flags for _, content in batches)]
    )
    epochs = np.concatenate(
        [
            empty,
            *(
                zeros[: len(content.rows)] if content.leader_epoch is None else content.leader_epoch
                for _, content in batches
            ),
        ]
    )
    topic = np.concatenate([empty, *(content.topic for _, content in batches)])
    partition = np.concatenate([empty, *(content.partition for _, content in batches)])
    order = np.argsort(rows, kind="stable")  # Equal rows stay in the order of the requests.
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(rows) else empty
    last = order[np.append(starts[1:], len(order)) - 1] if len(rows) else empty
    sticky = np.maximum.reduceat(flags[order], starts) if len(rows) else flags
    return _Ops(rows[last], topic[last], partition[last], sticky.astype(np.uint8), epochs[last], number[last])


def _later(these: _Ops, others: _Ops, *, reverse: bool = False) -> Bool:
    """For each of ``these``: whether its last batch is after that of the same row in ``others``, or that is absent.

    With ``reverse``: whether the row is in ``others`` with a later batch.
    """
    positions = np.searchsorted(others.rows, these.rows)
    matches = np.append(others.rows, -1)[positions] == these.rows
    other_last = np.append(others.last, -1)[positions]
    before: Bool = matches & (other_last > these.last)
    return before if reverse else ~before


def _deleted_topics(
    cluster: ClusterState, removed: Sequence[_Ops]
) -> tuple[ClusterState, list[Int32], tuple[Int32, Int32]]:
    """A cluster of the deleted topics of ``removed``, and the row in it of each of them. Also their true rows and
    topics."""
    true_row = np.concatenate([ops.rows for ops in removed])
    topic = np.concatenate([ops.topic for ops in removed])
    partition = np.concatenate([ops.partition for ops in removed])
    indexes, counts = np.unique(topic, return_counts=True)
    deleted = ClusterState()
    deleted.brokers = cluster.brokers
    names = [cluster.topics.names[index] for index in indexes.tolist()]
    ids = [cluster.topics.ids[index].tobytes() for index in indexes.tolist()]
    rows = deleted.add_topics(names, counts, Ragged.empty(len(topic)), ids=ids)
    deleted.topics.deleting[:] = 1
    order = np.argsort(topic, kind="stable")
    deleted.partitions.partition[rows] = partition[order]
    of = np.empty(len(topic), np.int32)
    of[order] = rows
    return deleted, [of[: len(removed[0].rows)], of[len(removed[0].rows) :]], (true_row[order], topic[order])


def _once_by_name(cluster: ClusterState, removed: _Ops) -> _Ops:
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
    prevailing = np.append((name[1:] != name[:-1]) | (partition[1:] != partition[:-1]), True)
    chosen = np.zeros(len(order), np.bool_)
    chosen[order[prevailing]] = True
    return removed.where(chosen)


def _in_topic_order(cluster: ClusterState, rows: Int32) -> Int64 | slice:
    p = cluster.partitions
    if p.in_topic_order and bool((rows[1:] > rows[:-1]).all()):
        return slice(None)
    order: Int64 = np.lexsort((p.partition[rows], p.topic[rows]))
    return order
