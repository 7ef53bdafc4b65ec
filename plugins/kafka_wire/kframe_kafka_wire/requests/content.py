"""Rows of control requests, by which responses are resolved and queues are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.plugin.cluster import ClusterState
from kframe.plugin.columns import Int32, UInt8, distinct_rows
from kframe.plugin.transport import ControlRequests

LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
#: StopReplica below this version has separate requests for deletions, which come first.
_FLAG_PER_PARTITION: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class BatchTopics:
    """The topics of a batch, by name or id. ``indexes`` (t,) ascend. ``ids`` (t, 16) has their topic ids."""

    indexes: Int32
    ids: UInt8
    names: Sequence[str]
    """By topic index. Only grows."""

    @staticmethod
    def of(cluster: ClusterState, topics: Int32) -> BatchTopics:
        """The topics with these indexes, which may repeat."""
        indexes = distinct_rows(topics, len(cluster.topics))
        return BatchTopics(indexes, cluster.topics.ids[indexes], cluster.topics.names)

    def by_id(self, topic_id: bytes) -> str | None:
        """The name of the only topic of the batch with this id. None if there are none or several."""
        matches = np.flatnonzero((self.ids == np.frombuffer(topic_id, np.uint8)).all(axis=1))
        return self.names[int(self.indexes[matches[0]])] if len(matches) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class RequestContent:
    """The rows of a batch's requests of one kind, to one broker or, for UpdateMetadata, to several.

    All arrays are (n,), in the order of the requests, as of the time of sending.
    """

    api_key: int
    rows: Int32
    topic: Int32
    """Topic index; the columns of a deleted row no longer have it."""
    partition: Int32
    flags: UInt8 | None
    """``is_new`` of LeaderAndIsr, ``delete`` of StopReplica. None of UpdateMetadata."""
    leader_epoch: Int32 | None
    """Leader epochs of StopReplica. None for the other kinds."""
    names: BatchTopics | None
    """None of UpdateMetadata, whose response names no topics."""
    batch: int = 0
    """The newest batch that the request completes."""


def request_contents(
    cluster: ClusterState, requests: ControlRequests, stop_replica_version: int
) -> Iterator[tuple[int, RequestContent]]:
    """(broker index, content) for each broker and kind of a batch. All brokers share the content of UpdateMetadata."""
    p = cluster.partitions
    leader_and_isr, stop_replica = requests.leader_and_isr, requests.stop_replica
    if len(leader_and_isr.rows):
        topic, partition = p.topic[leader_and_isr.rows], p.partition[leader_and_isr.rows]
        names = BatchTopics.of(cluster, topic)
        for broker, part in leader_and_isr.slices():
            arrays = leader_and_isr.rows[part], topic[part], partition[part]
            yield broker, RequestContent(LEADER_AND_ISR, *arrays, requests.is_new[part], None, names)
    if len(requests.metadata_brokers):
        rows = requests.metadata_rows.copy()  # The controller may change its own array.
        metadata = RequestContent(
            UPDATE_METADATA, rows, p.topic[rows], p.partition[rows], None, None, None, requests.batch
        )
        for broker in requests.metadata_brokers.tolist():
            yield broker, metadata
    if len(stop_replica.rows):
        names = BatchTopics.of(cluster, p.topic[stop_replica.rows])
        for broker, part in stop_replica.slices():
            rows, delete, epochs = stop_replica.rows[part], requests.stop_delete[part], requests.stop_leader_epoch[part]
            if stop_replica_version < _FLAG_PER_PARTITION:
                order = np.argsort(delete == 0, kind="stable")
                rows, delete, epochs = rows[order], delete[order], epochs[order]
            yield broker, RequestContent(STOP_REPLICA, rows, p.topic[rows], p.partition[rows], delete, epochs, names)
