"""LeaderAndIsr requests: each broker is told of its own partitions and of the brokers that lead them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.requests import ControlRequests
from kframe.wire import kernels
from kframe.wire.apis import LEADER_AND_ISR
from kframe.wire.brokers import live_leader, registered
from kframe.wire.primitives import array, end_of_struct, int8
from kframe.wire.request import EncodedRequest
from kframe.wire.sections import Cutter, Section, check_topics, require_as_measured

#: Where ``is_new`` stands in an entry, counted from its end, by version; 0 where it has none. Behind it come the
#: recovery state (6+) and the count of tagged fields (4+).
IS_NEW_BACK: Final = (0, 1, 1, 1, 2, 2, 3, 3)
#: ``Type`` of a request (5+) that does not say whether it is the full state: the only kind outside a KRaft migration.
TYPE_UNKNOWN: Final = 0


class EntryPool:
    """The entries of all ``rows``, each written once, to be copied for every broker that is told of it."""

    def __init__(self, cluster: ClusterState, rows: Int32, api_version: int) -> None:
        """``rows`` are unique."""
        p = cluster.partitions
        self._is_new_back = IS_NEW_BACK[api_version]
        # Only the rows of the batch are written to or read, so that memory for the others is never touched.
        self.entry_size: Int32 = np.empty(len(p), np.int32)
        self._pool_at = np.empty(len(p), np.int64)
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

    def copy(self, section: Section, is_new: UInt8) -> None:
        """Fill in the entries of ``section``; ``is_new`` stands beside its rows."""
        kernels.copy_entries(
            section.rows, is_new, self._is_new_back, section.row_size, self._pool_at, self._pool,
            section.entry_at, section.out,
        )  # fmt: skip


class LiveLeaders:
    """The registered brokers that lead some of ``rows``, as the requests that tell of them end with them."""

    def __init__(self, cluster: ClusterState, rows: Int32, listener: str, api_version: int) -> None:
        """Raises ConfigError if one of them is not on ``listener``."""
        self._brokers, self._leader = cluster.brokers, cluster.partitions.leader
        self._compact = api_version >= LEADER_AND_ISR.flexible
        self._most = len(self._brokers)
        leads = self._leads(rows)
        self._most = int(np.count_nonzero(leads))
        self._told = {
            index: live_leader(registration, listener, api_version)
            for index, registration in registered(self._brokers)
            if leads[index]
        }

    @property
    def nbytes_max(self) -> int:
        """Bytes of the suffix that names them all."""
        return len(self._suffix(list(self._told.values())))

    def suffix(self, rows: Int32) -> bytes:
        """What follows the partitions ``rows``, some of the rows, in their request."""
        leads = self._leads(rows)
        return self._suffix([told for index, told in self._told.items() if leads[index]])

    def _suffix(self, told: list[bytes]) -> bytes:
        return array(told, compact=self._compact) + end_of_struct(compact=self._compact)

    def _leads(self, rows: Int32) -> UInt8:
        """(b,) 1 where the broker leads one of ``rows``."""
        leads = np.zeros(len(self._brokers), np.uint8)
        kernels.mark_leaders(rows, self._leader, self._most, leads)
        return leads


def leader_and_isr_requests(
    cluster: ClusterState, requests: ControlRequests, api_version: int, listener: str, byte_limit: int
) -> Iterator[EncodedRequest]:
    """Each broker's LeaderAndIsr; one without rows gets none. Raises ConfigError if a leader is not on ``listener``."""
    once = distinct(requests.leader_and_isr.rows, len(cluster))
    check_topics(LEADER_AND_ISR.name, cluster, once)
    leaders = LiveLeaders(cluster, once, listener, api_version)
    return _encode(cluster, requests, api_version, EntryPool(cluster, once, api_version), leaders, byte_limit)


def _encode(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    pool: EntryPool,
    leaders: LiveLeaders,
    byte_limit: int,
) -> Iterator[EncodedRequest]:
    batch, cutter = requests.leader_and_isr, Cutter(cluster, LEADER_AND_ISR.layout(api_version))
    for broker, where in batch.slices():
        prefix = LEADER_AND_ISR.prefix(api_version, requests, int(cluster.brokers.broker_epoch[broker]))
        if api_version >= 5:
            prefix += int8(TYPE_UNKNOWN)
        rows, is_new = batch.rows[where], requests.is_new[where]
        if not len(rows):
            continue
        for section in cutter.cut(rows, pool.entry_size, byte_limit - len(prefix) - leaders.nbytes_max):
            pool.copy(section, is_new[section.taken])
            chunks = (prefix, section.view, leaders.suffix(section.rows))
            yield EncodedRequest(broker, LEADER_AND_ISR.api_key, api_version, chunks)


def distinct(rows: Int32, count: int) -> Int32:
    """The values that occur in ``rows``, all below ``count``, ascending."""
    if len(rows) * 64 < count:
        return np.unique(rows)
    wanted = np.zeros(count, np.bool_)
    wanted[rows] = True
    return np.flatnonzero(wanted).astype(np.int32)
