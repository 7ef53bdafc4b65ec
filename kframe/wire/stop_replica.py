"""StopReplica requests: each broker is told which of its replicas to stop, and which of them to delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.requests import ControlRequests
from kframe.wire import kernels
from kframe.wire.apis import STOP_REPLICA
from kframe.wire.primitives import boolean, end_of_struct
from kframe.wire.request import EncodedRequest
from kframe.wire.sections import Cutter, check_topics, require_as_measured

#: From this version on each partition says for itself whether it is to be deleted; before, the request says it for all.
FLAG_PER_PARTITION = 3


@dataclass(frozen=True, slots=True, eq=False)
class _Stops:
    """What one request says; arrays (k,)."""

    flag: bytes
    rows: Int32
    leader_epoch: Int32
    delete: UInt8


def stop_replica_requests(
    cluster: ClusterState, requests: ControlRequests, api_version: int, byte_limit: int
) -> Iterator[EncodedRequest]:
    """Each broker's StopReplica; brokers without rows get none.

    Before version 3 a broker gets two, deletions first, as far as there are both.
    """
    check_topics(STOP_REPLICA.name, cluster, requests.stop_replica.rows)
    return _encode(cluster, requests, api_version, byte_limit)


def _encode(
    cluster: ClusterState, requests: ControlRequests, api_version: int, byte_limit: int
) -> Iterator[EncodedRequest]:
    p, batch, layout = cluster.partitions, requests.stop_replica, STOP_REPLICA.layout(api_version)
    cutter = Cutter(cluster, layout)
    entry_size = np.empty(len(p), np.int32)
    # Partition index; from version 3 also leader epoch, delete flag and count of tagged fields.
    entry_size[batch.rows] = 10 if api_version >= FLAG_PER_PARTITION else 4
    tail = end_of_struct(compact=layout.compact)
    for broker, where in batch.slices():
        prefix = STOP_REPLICA.prefix(api_version, requests, int(cluster.brokers.broker_epoch[broker]))
        for stops in _parts(requests, where, api_version):
            room = byte_limit - len(prefix) - len(stops.flag) - len(tail)
            for section in cutter.cut(stops.rows, entry_size, room):
                written = kernels.write_stop_replica(
                    section.rows, api_version, p.partition, stops.leader_epoch[section.taken],
                    stops.delete[section.taken], section.row_size, section.entry_at, section.out,
                )  # fmt: skip
                require_as_measured(written, len(section.rows))
                chunks = (prefix + stops.flag, section.view, tail)
                yield EncodedRequest(broker, STOP_REPLICA.api_key, api_version, chunks)


def _parts(requests: ControlRequests, where: slice, api_version: int) -> Iterator[_Stops]:
    rows, leader_epoch = requests.stop_replica.rows[where], requests.stop_leader_epoch[where]
    delete = requests.stop_delete[where]
    if api_version >= FLAG_PER_PARTITION:
        if len(rows):
            yield _Stops(b"", rows, leader_epoch, delete)
        return
    for flag in (True, False):
        chosen = np.flatnonzero((delete != 0) == flag)
        if len(chosen):
            yield _Stops(boolean(flag), rows[chosen], leader_epoch[chosen], delete[chosen])
