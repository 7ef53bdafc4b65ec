"""LeaderAndIsr requests: each broker is told of its own partitions and of the brokers that lead them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Int64, UInt8
from kframe.model.lists import distinct_rows
from kframe.model.requests import ControlRequests
from kframe.wire.apis import LEADER_AND_ISR
from kframe.wire.brokers import ToldBrokers
from kframe.wire.primitives import array, end_of_struct, int8
from kframe.wire.request import EncodedRequest, requests_of
from kframe.wire.scratch import Scratch
from kframe.wire.sections import Cutter, Frame, Group, Lists, check_topics, require_as_measured

#: Where ``is_new`` stands in an entry, counted from its end, by version; 0 where it has none. Behind it come the
#: recovery state (6+) and the count of tagged fields (4+).
IS_NEW_BACK: Final = (0, 1, 1, 1, 2, 2, 3, 3)
#: ``Type`` of a request (5+) that does not say whether it is the full state: the only kind outside a KRaft migration.
TYPE_UNKNOWN: Final = 0


class EntryPool:
    """The entries of all ``rows``, each written once, to be copied for every broker that is told of it."""

    def __init__(self, cluster: ClusterState, rows: Int32, api_version: int, entry_size: Int32, pool_at: Int64) -> None:
        """``rows`` are unique. ``entry_size`` and ``pool_at`` (n,) are the pool's for as long as it is in use; what
        stands in them of other rows is left alone."""
        p = cluster.partitions
        self._is_new_back = IS_NEW_BACK[api_version]
        self.entry_size, self._pool_at = entry_size, pool_at
        total = kernels.size_leader_and_isr(
            rows, api_version, p.slot_start, p.replica_count, p.isr_count, p.replica_flags, self.entry_size
        )
        self._pool = np.empty(total, np.uint8)
        written = kernels.write_leader_and_isr(
            rows, api_version, p.partition, p.leader, p.leader_epoch, p.controller_epoch, p.partition_epoch, p.recovery,
            p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, p.replica_flags, cluster.brokers.ids,
            self.entry_size, self._pool_at, self._pool,
        )  # fmt: skip
        require_as_measured(written, len(rows))

    def copy(self, group: Group, is_new: UInt8, frame: Frame) -> None:
        """Fill in the entries of ``group``; ``is_new`` stands beside its rows."""
        kernels.copy_entries(
            group.rows, is_new, self._is_new_back, group.row_size, self._pool_at, self._pool,
            frame.entry_at, frame.out,
        )  # fmt: skip


class LiveLeaders:
    """The registered brokers that lead some of ``rows``, as the requests that tell of them end with them."""

    def __init__(self, cluster: ClusterState, rows: Int32, told: ToldBrokers, compact: bool) -> None:
        """Raises ConfigError as ``told`` does, of the brokers that lead."""
        self._leader, self._compact = cluster.partitions.leader, compact
        self._told_size = cluster.brokers.registered.astype(np.int32)
        self._named = np.empty(len(cluster.brokers), np.int32)
        # The rows as one section, whose tail would name all of them.
        self._measure(np.array([0, len(rows)], np.int32), rows, int(np.count_nonzero(self._told_size)))
        named = self._named.tolist()
        leads = [(index, one) for index, one in told.standing(cluster.brokers) if named[index] == 0]
        encoded = [told.of(index, registration) for index, registration in leads]
        self._brokers = np.array([index for index, _ in leads], np.int32)
        self._told_size[:] = 0
        self._told_size[self._brokers] = [len(one) for one in encoded]
        self._told = b"".join(encoded)
        self.nbytes_max = len(array(encoded, compact=compact) + end_of_struct(compact=compact))
        """Bytes of a tail that names them all."""

    def measure(self, group: Group) -> Int64:
        """(s,) bytes of each section's tail."""
        return self._measure(group.start, group.rows, len(self._brokers))

    def write(self, group: Group, tail_length: Int64, frame: Frame) -> None:
        """Write the tails of ``group``."""
        written = kernels.write_live_leaders(
            group.start, group.rows, self._leader, self._told_size, self._brokers, self._told, self._compact,
            frame.at, tail_length, self._named, frame.out,
        )  # fmt: skip
        require_as_measured(written, len(tail_length))

    def _measure(self, start: Int32, rows: Int32, most: int) -> Int64:
        tail_length = np.empty(len(start) - 1, np.int64)
        kernels.measure_live_leaders(
            start, rows, self._leader, self._told_size, most, self._compact, self._named, tail_length
        )
        return tail_length


def leader_and_isr_requests(
    cluster: ClusterState, requests: ControlRequests, api_version: int, told: ToldBrokers, byte_limit: int,
    scratch: Scratch | None = None,
) -> Iterator[EncodedRequest]:  # fmt: skip
    """Each broker's LeaderAndIsr; one without rows gets none. Raises ConfigError if a leader cannot be told."""
    if not len(requests.leader_and_isr.rows):
        return iter(())
    once = distinct_rows(requests.leader_and_isr.rows, len(cluster))
    check_topics(LEADER_AND_ISR.name, cluster, once)
    leaders = LiveLeaders(cluster, once, told, LEADER_AND_ISR.layout(api_version).compact)
    return _encode(cluster, requests, api_version, once, leaders, byte_limit, scratch or Scratch())


def _encode(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    once: Int32,
    leaders: LiveLeaders,
    byte_limit: int,
    scratch: Scratch,
) -> Iterator[EncodedRequest]:
    with scratch.lend(len(cluster)) as arrays:
        pool = EntryPool(cluster, once, api_version, *arrays)
        yield from _sections(cluster, requests, api_version, pool, leaders, byte_limit)


def _sections(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    pool: EntryPool,
    leaders: LiveLeaders,
    byte_limit: int,
) -> Iterator[EncodedRequest]:
    batch, cutter = requests.leader_and_isr, Cutter(cluster, LEADER_AND_ISR.layout(api_version))
    request_type = int8(TYPE_UNKNOWN) if api_version >= LEADER_AND_ISR.topic_ids else b""
    prefixes = LEADER_AND_ISR.prefixes(api_version, requests, cluster.brokers.broker_epoch[batch.brokers], request_type)
    brokers, room = batch.brokers.tolist(), byte_limit - len(prefixes[0]) - leaders.nbytes_max
    for group in cutter.cut(Lists(batch.offsets, batch.rows), pool.entry_size, room, leaders.nbytes_max):
        tail_length = leaders.measure(group)
        frame = cutter.frame(group, b"", tail_length)
        pool.copy(group, requests.is_new[group.taken], frame)
        leaders.write(group, tail_length, frame)
        lists = group.lists.tolist()
        yield from requests_of(
            LEADER_AND_ISR.api_key, api_version,
            [brokers[one] for one in lists], [prefixes[one] for one in lists], frame.bodies(),
            group.partitions(),
        )  # fmt: skip
