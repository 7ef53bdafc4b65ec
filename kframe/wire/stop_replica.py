"""StopReplica requests. Each broker receives the replicas to stop, and to delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.requests import ControlRequests
from kframe.wire.apis import STOP_REPLICA
from kframe.wire.primitives import boolean, end_of_struct
from kframe.wire.request import EncodedRequest, requests_of
from kframe.wire.sections import Lists, SectionWriter, check_topics, require_as_measured
from kframe.wire.threads import by_threads

#: From this version on each partition has its own delete flag; before, the request has one flag for all partitions.
FLAG_PER_PARTITION = 3


@dataclass(frozen=True, slots=True, eq=False)
class _Stops:
    """List i goes to ``brokers[i]``, after ``prefixes[i]``; arrays are parallel to the rows of the lists."""

    brokers: list[int]
    prefixes: list[bytes]
    lists: Lists
    leader_epoch: Int32
    delete: UInt8


def stop_replica_requests(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    byte_limit: int,
) -> Iterator[EncodedRequest]:
    """Each broker's StopReplica; brokers without rows get none.

    Before version 3 a broker may get two requests, deletions first.
    """
    check_topics(STOP_REPLICA.name, cluster, requests.stop_replica.rows)
    if not len(requests.stop_replica.rows):
        return iter(())
    return _encode(cluster, requests, api_version, byte_limit)


def _encode(
    cluster: ClusterState, requests: ControlRequests, api_version: int, byte_limit: int
) -> Iterator[EncodedRequest]:
    stops, layout = _stops(cluster, requests, api_version), STOP_REPLICA.layout(api_version)
    # Partition index; from version 3 also leader epoch, delete flag and count of tagged fields.
    entry_size = np.array([10 if api_version >= FLAG_PER_PARTITION else 4], np.int32)
    writer, tail = SectionWriter(cluster, layout), end_of_struct(compact=layout.compact)
    section_limit = byte_limit - len(stops.prefixes[0]) - len(tail)
    return by_threads(
        stops.lists,
        lambda lists: _sections(cluster, stops, lists, api_version, writer, tail, entry_size, section_limit),
    )


def _sections(
    cluster: ClusterState,
    stops: _Stops,
    lists: Lists,
    api_version: int,
    writer: SectionWriter,
    tail: bytes,
    entry_size: Int32,
    section_limit: int,
) -> Iterator[EncodedRequest]:
    """The requests of some lists."""
    for group in writer.split(lists, entry_size, section_limit, len(tail)):
        frame = writer.frame(group, tail, len(tail))
        written = kernels.write_stop_replica(
            group.rows,
            api_version,
            cluster.partitions.partition,
            stops.leader_epoch[group.batch_slice],
            stops.delete[group.batch_slice],
            group.row_size,
            frame.entry_offset,
            frame.out,
        )
        require_as_measured(written, len(group.rows))
        numbers = group.lists.tolist()
        yield from requests_of(
            STOP_REPLICA.api_key,
            api_version,
            [stops.brokers[number] for number in numbers],
            [stops.prefixes[number] for number in numbers],
            frame.bodies(),
            group.partitions(),
        )


def _stops(cluster: ClusterState, requests: ControlRequests, api_version: int) -> _Stops:
    batch, leader_epoch, delete = requests.stop_replica, requests.stop_leader_epoch, requests.stop_delete
    brokers = batch.brokers.tolist()
    prefixes = STOP_REPLICA.prefixes(api_version, requests, cluster.brokers.broker_epoch[batch.brokers], b"")
    if api_version >= FLAG_PER_PARTITION:
        return _Stops(brokers, prefixes, Lists(batch.offsets, batch.rows), leader_epoch, delete)
    # Two lists of each broker, the deletions first; sorting is stable, so each stays grouped by topic.
    list_of_row = 2 * np.repeat(np.arange(len(brokers)), np.diff(batch.offsets)) + (delete == 0)
    order = np.argsort(list_of_row, kind="stable")
    offsets = np.zeros(2 * len(brokers) + 1, np.int32)
    np.cumsum(np.bincount(list_of_row, minlength=2 * len(brokers)), out=offsets[1:])
    return _Stops(
        [broker for broker in brokers for _ in range(2)],
        [prefix + boolean(flag) for prefix in prefixes for flag in (True, False)],
        Lists(offsets, batch.rows[order]),
        leader_epoch[order],
        delete[order],
    )
