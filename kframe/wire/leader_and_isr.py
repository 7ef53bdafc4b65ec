"""LeaderAndIsr requests: each broker receives its own partitions and their live leaders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.lists import distinct_rows
from kframe.model.requests import ControlRequests
from kframe.wire.apis import LEADER_AND_ISR
from kframe.wire.brokers import EncodedBrokers
from kframe.wire.primitives import array, end_of_struct, int8
from kframe.wire.request import EncodedRequest, requests_of
from kframe.wire.scratch import Scratch
from kframe.wire.sections import Frame, Group, Lists, SectionWriter, check_topics, require_as_measured
from kframe.wire.threads import by_threads, map_by_threads, row_blocks

#: Offset of ``is_new`` from the end of an entry, by version; 0 for none. The recovery state (6+) and the count of
#: tagged fields (4+) follow it.
IS_NEW_FROM_END: Final = (0, 1, 1, 1, 2, 2, 3, 3)
#: ``Type`` of a request (5+) outside a KRaft migration: unknown, neither full nor incremental.
TYPE_UNKNOWN: Final = 0


class EntryPool:
    """The entries of ``rows``, each encoded once and copied into the request of each of its brokers."""

    def __init__(
        self, cluster: ClusterState, rows: Int32, api_version: int, entry_size: Int32, pool_offset: Int64
    ) -> None:
        """``rows`` are unique. The pool owns ``entry_size`` and ``pool_offset`` (n,) while it is in use, and writes the
        entries of ``rows`` only."""
        self._is_new_from_end = IS_NEW_FROM_END[api_version]
        self.entry_size, self._pool_offset = entry_size, pool_offset
        blocks = row_blocks(len(rows))
        sizes = map_by_threads(lambda block: self._measure(cluster, rows[block], api_version), blocks)
        self._pool = np.empty(sum(sizes), np.uint8)
        starts = accumulate(sizes[:-1], initial=0)
        written = map_by_threads(
            lambda part: self._write(cluster, rows[part[0]], api_version, part[1]),
            list(zip(blocks, starts, strict=True)),
        )
        require_as_measured(sum(written), len(rows))

    def _measure(self, cluster: ClusterState, rows: Int32, api_version: int) -> int:
        p = cluster.partitions
        return kernels.size_leader_and_isr(
            rows, api_version, p.slot_start, p.replica_count, p.isr_count, p.replica_status, self.entry_size
        )

    def _write(self, cluster: ClusterState, rows: Int32, api_version: int, start: int) -> int:
        p = cluster.partitions
        return kernels.write_leader_and_isr(
            rows,
            api_version,
            p.partition,
            p.leader,
            p.leader_epoch,
            p.epoch_number,
            p.epoch_table.epochs,
            p.partition_epoch,
            p.status,
            p.slot_start,
            p.replica_count,
            p.isr_count,
            p.replica,
            p.isr,
            p.replica_status,
            cluster.brokers.ids,
            self.entry_size,
            start,
            self._pool_offset,
            self._pool,
        )

    def copy(self, group: Group, is_new: UInt8, frame: Frame) -> None:
        """Copy the entries of ``group``. ``is_new`` is aligned with its rows."""
        kernels.copy_entries(
            group.rows,
            is_new,
            self._is_new_from_end,
            group.row_size,
            self._pool_offset,
            self._pool,
            frame.entry_offset,
            frame.out,
        )


class LiveLeaders:
    """The registered leaders of ``rows``, the last field of requests."""

    def __init__(self, cluster: ClusterState, rows: Int32, broker_entries: EncodedBrokers, compact: bool) -> None:
        """Raises ConfigError for a leader that cannot be encoded."""
        self._leader, self._compact = cluster.partitions.leader, compact
        self._entry_size = cluster.brokers.registered.astype(np.int32)
        # The rows as one section whose tail lists all leaders.
        last_section = np.empty(len(cluster.brokers), np.int32)
        self._measure(np.array([0, len(rows)], np.int32), rows, int(np.count_nonzero(self._entry_size)), last_section)
        is_leader = (last_section == 0).tolist()
        leaders = [
            (index, registration)
            for index, registration in broker_entries.registered(cluster.brokers)
            if is_leader[index]
        ]
        encoded = [broker_entries.of(index, registration) for index, registration in leaders]
        self._brokers = np.array([index for index, _ in leaders], np.int32)
        self._entry_size[:] = 0
        self._entry_size[self._brokers] = [len(entry) for entry in encoded]
        self._entries = b"".join(encoded)
        self.nbytes_max = len(array(encoded, compact=compact) + end_of_struct(compact=compact))
        """Bytes of a tail with all leaders."""

    def measure(self, group: Group) -> Int64:
        """(s,) bytes of each section's tail."""
        return self._measure(group.start, group.rows, len(self._brokers), np.empty_like(self._entry_size))

    def write(self, group: Group, tail_length: Int64, frame: Frame) -> None:
        """Write the tails of ``group``."""
        written = kernels.write_live_leaders(
            group.start,
            group.rows,
            self._leader,
            self._entry_size,
            self._brokers,
            self._entries,
            self._compact,
            frame.section_offset,
            tail_length,
            np.empty_like(self._entry_size),
            frame.out,
        )
        require_as_measured(written, len(tail_length))

    def _measure(self, start: Int32, rows: Int32, max_leaders: int, last_section: Int32) -> Int64:
        tail_length = np.empty(len(start) - 1, np.int64)
        kernels.measure_live_leaders(
            start, rows, self._leader, self._entry_size, max_leaders, self._compact, last_section, tail_length
        )
        return tail_length


def leader_and_isr_requests(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    broker_entries: EncodedBrokers,
    byte_limit: int,
    scratch: Scratch | None = None,
) -> Iterator[EncodedRequest]:
    """Each broker's LeaderAndIsr. A broker without rows gets none. Raises ConfigError if a leader cannot be encoded."""
    if not len(requests.leader_and_isr.rows):
        return iter(())
    distinct = distinct_rows(requests.leader_and_isr.rows, len(cluster))
    check_topics(LEADER_AND_ISR.name, cluster, distinct)
    leaders = LiveLeaders(cluster, distinct, broker_entries, LEADER_AND_ISR.layout(api_version).compact)
    return _encode(cluster, requests, api_version, distinct, leaders, byte_limit, scratch or Scratch())


def _encode(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    distinct: Int32,
    leaders: LiveLeaders,
    byte_limit: int,
    scratch: Scratch,
) -> Iterator[EncodedRequest]:
    batch, layout = requests.leader_and_isr, LEADER_AND_ISR.layout(api_version)
    request_type = int8(TYPE_UNKNOWN) if api_version >= LEADER_AND_ISR.topic_ids else b""
    prefixes = LEADER_AND_ISR.prefixes(api_version, requests, cluster.brokers.broker_epoch[batch.brokers], request_type)
    with scratch.reserve(len(cluster)) as arrays:
        pool = EntryPool(cluster, distinct, api_version, *arrays)
        sections = _Sections(
            SectionWriter(cluster, layout),
            pool,
            leaders,
            batch.brokers.tolist(),
            prefixes,
            requests.is_new,
            byte_limit - len(prefixes[0]) - leaders.nbytes_max,
            api_version,
        )
        yield from by_threads(Lists(batch.offsets, batch.rows), sections.encode)


@dataclass(frozen=True, slots=True, eq=False)
class _Sections:
    """List i goes to ``brokers[i]``, after ``prefixes[i]``. Threads encode lists concurrently: nothing changes here."""

    writer: SectionWriter
    pool: EntryPool
    leaders: LiveLeaders
    brokers: list[int]
    prefixes: list[bytes]
    is_new: UInt8
    section_limit: int
    """Bytes of a section without its prefix and tail."""
    api_version: int

    def encode(self, lists: Lists) -> Iterator[EncodedRequest]:
        """The requests of some lists."""
        leaders = self.leaders
        for group in self.writer.split(lists, self.pool.entry_size, self.section_limit, leaders.nbytes_max):
            tail_length = leaders.measure(group)
            frame = self.writer.frame(group, b"", tail_length)
            self.pool.copy(group, self.is_new[group.batch_slice], frame)
            leaders.write(group, tail_length, frame)
            numbers = group.lists.tolist()
            yield from requests_of(
                LEADER_AND_ISR.api_key,
                self.api_version,
                [self.brokers[number] for number in numbers],
                [self.prefixes[number] for number in numbers],
                frame.bodies(),
                group.partitions(),
            )
