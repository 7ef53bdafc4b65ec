"""The health of a cluster: which partitions are offline or short of replicas. Also the load of each broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Int64, UInt8
from kframe.model.columns import Partitions
from kframe.model.kraft.columns import KraftPartitions

#: Rows that are examined at a time.
BLOCK_ROWS: Final = 1 << 16
#: Conditions of partitions, in the order of reports.
CONDITIONS: Final = ("offline", "under_min_isr", "at_min_isr", "under_replicated", "needs_unclean_election")


class PartitionConditions(Struct):
    """Partitions in each condition; null is unknown."""

    offline: int
    under_min_isr: int | None
    at_min_isr: int | None
    under_replicated: int
    needs_unclean_election: int


class HealthRecord(PartitionConditions):
    """The cluster before or after the operation."""

    registered_brokers: int
    leader_skew: Skew
    replica_skew: Skew


class Skew(Struct, frozen=True):
    """How unevenly a load lies on the registered brokers. ``max_mean_ratio`` is None where there is no load."""

    mean: float
    max: int
    max_mean_ratio: float | None
    deviation: float

    @staticmethod
    def of(loads: Int32 | Int64) -> Skew:
        """The skew of these brokers' loads. Of no broker it is all zeros."""
        if not len(loads):
            return Skew(0.0, 0, None, 0.0)
        mean, largest = float(loads.mean()), int(loads.max())
        return Skew(round(mean, 3), largest, round(largest / mean, 3) if mean else None, round(float(loads.std()), 3))


@dataclass(frozen=True, slots=True, eq=False)
class ClusterHealth:
    """The health of a cluster at rest.

    Masks are (n,) over partitions and leave out deleted topics and topics under deletion. ``counted`` masks all others.
    ``offline``: no leader, or an unregistered one. ``under_min_isr``: offline, or fewer in sync than the smaller of
    ``min.insync.replicas`` and the number of assigned replicas (Kafka 3.9 ``Partition.effectiveMinIsr``); producers
    with acks=all are refused. ``at_min_isr``: led, and exactly as many. Both are None if topic settings are unknown.
    ``under_replicated``: fewer in sync than assigned, replicas being added not counted. ``needs_unclean_election``:
    offline, no ISR member is live, and a replica outside the ISR is. ``may_lose_data``: offline, and only an unclean
    election could give a leader, or in a KRaft cluster the last-known leader. The loads are (b,) by broker index:
    partitions led, partitions with this preferred replica, assigned replicas, and ISR memberships.
    """

    counted: Bool
    offline: Bool
    under_min_isr: Bool | None
    at_min_isr: Bool | None
    under_replicated: Bool
    needs_unclean_election: Bool
    may_lose_data: Bool
    registered: UInt8
    leaders: Int32
    preferred: Int32
    replicas: Int32
    in_sync: Int32

    def counts(self) -> dict[str, int | None]:
        """How many partitions are in each of CONDITIONS. None where that is not known."""
        masks = {name: getattr(self, name) for name in CONDITIONS}
        return {name: None if mask is None else int(np.count_nonzero(mask)) for name, mask in masks.items()}

    @property
    def leader_skew(self) -> Skew:
        """How unevenly leaders lie on the brokers."""
        return Skew.of(self.leaders[self.registered != 0])

    @property
    def replica_skew(self) -> Skew:
        """How unevenly replicas lie on the brokers."""
        return Skew.of(self.replicas[self.registered != 0])


def broker_loads(p: Partitions | KraftPartitions, brokers: int) -> tuple[Int32, Int32, Int32, Int32]:
    """(b,) loads of each broker: the last four columns of ``ClusterHealth``."""
    leaders, preferred, replicas, in_sync = (np.empty(brokers, np.int32) for _ in range(4))
    kernels.count_by_broker(
        p.leader, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, leaders, preferred, replicas, in_sync
    )
    return leaders, preferred, replicas, in_sync


def newly(before: Bool | None, after: Bool | None) -> Bool | None:
    """Rows that ``after`` marks and ``before`` does not; ``after`` may have more rows. None if either is not known."""
    if before is None or after is None:
        return None
    new = after.copy()
    new[: len(before)] &= ~before
    return new


def blocks(count: int) -> Iterator[slice]:
    """Ranges of rows that together are ``count``. Temporary arrays of a block stay in the processor's caches."""
    return (slice(first, min(first + BLOCK_ROWS, count)) for first in range(0, count, BLOCK_ROWS))


def union(mask: Bool | None, other: Bool | None) -> Bool | None:
    """The union of two masks; ``other`` may have more rows. None if either is not known."""
    if mask is None or other is None:
        return None
    result = other.copy()
    result[: len(mask)] |= mask
    return result
