"""Merging the queue of a slow broker: what waits becomes one set of requests of today's state.

A queue holds bytes, which cannot be merged, and beside them which rows they tell. A queue that has grown is therefore
taken back by the controller's own thread while it sends a batch, when the columns may be read, and everything in it is
told anew from the columns. What the broker knows in the end is what it would have known after every single request:

- *LeaderAndIsr* of a partition tells the newest state; ``is_new`` sticks. If StopReplica came after the last of them,
  none is sent: the replica is not to serve.
- *StopReplica* of a partition carries the last leader epoch, and ``delete`` sticks. If LeaderAndIsr came after it, only
  a deletion is worth sending, and goes first: the replica starts afresh.
- *UpdateMetadata* of a partition tells the newest state, and the newest brokers. Only the last request of a merged
  queue acknowledges a batch, the newest of all that waited.
- A row whose topic has gone from the columns cannot be told again. Its metadata is told as deleted (leader -2), its
  StopReplica goes out under the name that it had, its LeaderAndIsr is dropped. All that comes first, because the topic
  may have been created again since. The metadata of a topic that came and went while the broker took nothing are not
  told: or a queue would remember every topic that there ever was. (Its replicas do not go before they have answered.)
- The first request is an UpdateMetadata if any waits, as after a change of controllers: brokers then know each other
  before they are to follow (invariant I14).

So a merged queue has at most two requests of each kind but for cuts at the byte limit: no more than the broker's own
LeaderAndIsr and all metadata, and whatever has gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kframe.plugin.cluster import ClusterState
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8
from kframe.plugin.transport import BrokerRows, ControlRequests
from kframe_kafka_wire.told import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, Told, TopicNames


@dataclass(frozen=True, slots=True, eq=False)
class _Ops:
    """LeaderAndIsr or StopReplica of many batches, each row once: (n,) arrays, rows ascending."""

    rows: Int32
    topic: Int32
    partition: Int32
    flags: UInt8
    """Or-ed over all batches."""
    leader_epoch: Int32
    """The last one; 0 of LeaderAndIsr."""
    last: Int64
    """Number of the last batch that told the row."""

    def where(self, chosen: Bool) -> _Ops:
        """Those that a mask chooses."""
        return _Ops(
            self.rows[chosen], self.topic[chosen], self.partition[chosen], self.flags[chosen],
            self.leader_epoch[chosen], self.last[chosen],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A batch, and the cluster that it speaks of; ``origin`` has the true rows and topics where that has ghosts."""

    cluster: ClusterState
    requests: ControlRequests
    names: Sequence[str]
    origin: tuple[Int32, Int32] | None = None

    def original(self, told: Told) -> Told:
        """What is told by this batch, in rows of the controller's cluster."""
        if self.origin is None:
            return told
        rows, topic = (column[told.rows] for column in self.origin)
        nameless = TopicNames(np.empty(0, np.int32), np.empty((0, 16), np.uint8), self.names)
        return replace(told, rows=rows, topic=topic, names=nameless)


def merge(cluster: ClusterState, maker: Maker, waiting: Sequence[Told], heard_topics: int) -> list[Part]:
    """Batches for a broker that stand for all of ``waiting``, in order.

    ``heard_topics`` is the first topic (index) that nothing has told the broker of but what waits.
    """
    p = cluster.partitions
    leading, stopping = _ops(LEADER_AND_ISR, waiting), _ops(STOP_REPLICA, waiting)
    told_metadata = any(one.api_key == UPDATE_METADATA for one in waiting)
    metadata, forgotten = _metadata(cluster, waiting)
    forgotten = forgotten.where(forgotten.topic < heard_topics)
    gone = forgotten, stopping.where(p.topic[stopping.rows] < 0)
    leading, stopping = leading.where(p.topic[leading.rows] >= 0), stopping.where(p.topic[stopping.rows] >= 0)
    led_last = _later(leading, stopping)
    restarted = _later(stopping, leading, reverse=True)
    first = stopping.where(restarted & (stopping.flags != 0))
    ghosts, ghost_rows, origin = _ghosts(cluster, gone)
    told = np.array([maker.broker] if told_metadata else [], np.int32)
    batch = max((one.batch for one in waiting if one.api_key == UPDATE_METADATA), default=0)
    nothing = leading.where(np.zeros(len(leading.rows), np.bool_))
    last, names = stopping.where(~restarted), cluster.topics.names
    parts = [
        Part(ghosts, maker.batch(ghosts, nothing, told, ghost_rows[0], gone[1], ghost_rows[1]), names, origin),
        Part(cluster, maker.batch(cluster, nothing, told[:0], nothing.rows, first, first.rows), names),
        Part(cluster, maker.batch(cluster, leading.where(led_last), told, metadata, last, last.rows, batch), names),
    ]
    return [part for part in parts if not part.requests.empty]


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes batches for one broker (index), as this controller."""

    broker: int
    controller_id: int
    controller_epoch: int

    def batch(
        self, cluster: ClusterState, leading: _Ops, told: Int32, metadata: Int32, stopping: _Ops, stopped: Int32,
        number: int = 0,
    ) -> ControlRequests:  # fmt: skip
        """One batch; ``stopped`` are the rows in ``cluster`` that ``stopping`` is about. ``number`` is the newest batch
        whose metadata the broker knows after this one, 0 if it completes none."""
        lead, stop = _in_topic_order(cluster, leading.rows), _in_topic_order(cluster, stopped)
        return ControlRequests(
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            leader_and_isr=self._rows(leading.rows[lead]),
            is_new=leading.flags[lead],
            metadata_brokers=told,
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


def _metadata(cluster: ClusterState, waiting: Sequence[Told]) -> tuple[Int32, _Ops]:
    """The rows that UpdateMetadata tells of, ascending, and those of them that have gone."""
    p, told = cluster.partitions, np.zeros(len(cluster), np.bool_)
    gone = []
    for one in {id(one): one for one in waiting if one.api_key == UPDATE_METADATA}.values():
        told[one.rows] = True
        missing = p.topic[one.rows] < 0
        if missing.any():
            gone.append(
                replace(one, rows=one.rows[missing], topic=one.topic[missing], partition=one.partition[missing])
            )
    told &= p.topic >= 0
    return np.flatnonzero(told).astype(np.int32), _ops(UPDATE_METADATA, gone)


def _ops(api_key: int, waiting: Sequence[Told]) -> _Ops:
    """All of one kind; several requests of one batch share what they are told by."""
    once = {id(told): (number, told) for number, told in enumerate(waiting) if told.api_key == api_key}
    batches = list(once.values())
    empty = np.empty(0, np.int32)
    rows = np.concatenate([empty, *(told.rows for _, told in batches)])
    counts = [len(told.rows) for _, told in batches]
    number = np.repeat(np.array([number for number, _ in batches], np.int64), counts)
    zeros = np.zeros(max(counts, default=0), np.int32)
    flags = np.concatenate([empty, *(zeros[: len(one.rows)] if one.flags is None else one.flags for _, one in batches)])
    epochs = np.concatenate(
        [empty, *(zeros[: len(one.rows)] if one.leader_epoch is None else one.leader_epoch for _, one in batches)]
    )
    topic = np.concatenate([empty, *(told.topic for _, told in batches)])
    partition = np.concatenate([empty, *(told.partition for _, told in batches)])
    order = np.argsort(rows, kind="stable")  # equal rows stay in the order in which they were told
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(rows) else empty
    last = order[np.append(starts[1:], len(order)) - 1] if len(rows) else empty
    sticky = np.maximum.reduceat(flags[order], starts) if len(rows) else flags
    return _Ops(rows[last], topic[last], partition[last], sticky.astype(np.uint8), epochs[last], number[last])


def _later(these: _Ops, others: _Ops, *, reverse: bool = False) -> Bool:
    """Beside ``these``: whether each was told after the same row of ``others``, or that does not occur; with
    ``reverse`` whether it was told before."""
    at = np.searchsorted(others.rows, these.rows)
    found = np.append(others.rows, -1)[at] == these.rows
    other_last = np.append(others.last, -1)[at]
    before: Bool = found & (other_last > these.last)
    return before if reverse else ~before


def _ghosts(cluster: ClusterState, gone: Sequence[_Ops]) -> tuple[ClusterState, list[Int32], tuple[Int32, Int32]]:
    """A cluster of what has gone, told as being deleted; the rows in it of each of ``gone``; true row and topic of each
    row in it."""
    true_row = np.concatenate([one.rows for one in gone])
    topic = np.concatenate([one.topic for one in gone])
    partition = np.concatenate([one.partition for one in gone])
    indexes, counts = np.unique(topic, return_counts=True)
    ghosts = ClusterState()
    ghosts.brokers = cluster.brokers
    names = [cluster.topics.names[index] for index in indexes.tolist()]
    ids = [cluster.topics.ids[index].tobytes() for index in indexes.tolist()]
    rows = ghosts.add_topics(names, counts, Ragged.empty(len(topic)), ids=ids)
    ghosts.topics.deleting[:] = 1
    order = np.argsort(topic, kind="stable")
    ghosts.partitions.partition[rows] = partition[order]
    of = np.empty(len(topic), np.int32)
    of[order] = rows
    return ghosts, [of[: len(gone[0].rows)], of[len(gone[0].rows) :]], (true_row[order], topic[order])


def _in_topic_order(cluster: ClusterState, rows: Int32) -> Int64 | slice:
    p = cluster.partitions
    if p.in_topic_order and bool((rows[1:] > rows[:-1]).all()):
        return slice(None)
    order: Int64 = np.lexsort((p.partition[rows], p.topic[rows]))
    return order
