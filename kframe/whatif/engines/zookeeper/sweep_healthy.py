"""Derive failure outcomes from the counts of healthy partitions (``kernels/healthy_rows.pxd``).

The outcome of a healthy partition depends on its kind, its leader and the order of its replicas. The first remaining
replica leads, and all remaining replicas are in sync. ``spare`` is the number of replicas that may fail before fewer
than ``min.insync.replicas`` remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from kframe.model.arrays import Int32, Int64, UInt8

#: (replicas, at most 3; how many may fail before too few are in sync, at most 3) of each kind.
KINDS: Final[tuple[tuple[int, int], ...]] = ((1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (3, 3))
#: Bits for racks, and the bit of a broker that is not registered (``kernels/healthy_rows.pxd``).
RACK_BITS: Final = 62

_WIDE: Final = 3
_ALL_FAILED: Final = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0], np.int32)
_UNDER_MIN_ISR: Final = np.array([0, 0, 1, 1, 0, 0, 0, 0, 0], np.int32)
_AT_MIN_ISR: Final = np.array([0, 0, 0, 0, 1, 0, 0, 0, 0], np.int32)
_LEADER_MOVED: Final = np.array([0, 0, 0, 0, 0, 0, 0, 1, 0], np.int32)


class HealthyCounts(Struct, frozen=True, eq=False):
    """Counts by kind and broker index; see ``count_failures`` and ``count_pair_failures``.

    ``successors`` (7, b, b): partitions by leader and the next leader. ``further_replicas`` (7, b): replicas beyond
    these. ``shared_racks`` (7, b): racks with two replicas of a partition, by the broker of one of them.
    ``further_pairs`` (3, b, b): pairs of replicas that are not both among the leader and the two next ones.
    """

    successors: Int32
    further_replicas: Int32
    shared_racks: Int32
    further_pairs: Int32

    @staticmethod
    def none(brokers: int) -> HealthyCounts:
        """Counts of no partition. Memory is taken by what is counted: a kind that does not occur takes none."""
        kinds = len(KINDS)
        return HealthyCounts(
            np.zeros((kinds, brokers, brokers), np.int32),
            np.zeros((kinds, brokers), np.int32),
            np.zeros((kinds, brokers), np.int32),
            np.zeros((_WIDE, brokers, brokers), np.int32),
        )

    def kinds(self) -> Iterator[int]:
        """The kinds that occur."""
        yield from (kind for kind in range(len(KINDS)) if self.successors[kind].any())

    def add_failures(
        self,
        rack: Int32,
        totals: Int32,
        brokers: Int32,
        racks: Int32,
        leads: Int32,
        broker_leads: Int32,
        rack_leads: Int32,
    ) -> None:
        """Add the counts without a failure, of each broker's and of each rack's failure to the arrays of
        ``FailureCounts``."""
        racked = rack >= 0
        for kind in self.kinds():
            successors, alone = self.successors[kind], KINDS[kind][0] == 1
            led = successors.sum(axis=1)
            replicas = led if alone else led + successors.sum(axis=0) + self.further_replicas[kind]
            totals += led.sum() * _health(kind, 0)
            leads += led
            changes = np.outer(replicas, _health(kind, 1) - _health(kind, 0)) + np.outer(led, _moved(kind))
            brokers += changes
            changes += np.outer(self.shared_racks[kind], _beyond(kind))
            np.add.at(racks, rack[racked], changes[racked])
            if not alone:
                broker_leads += successors
                for number in range(len(rack_leads)):
                    # If the next leader is in the rack too, the kernel has counted the leader after it.
                    rack_leads[number] += successors[rack == number].sum(axis=0)

    def add_pairs(self, thirds: Int64, count: Int32, pairs: Int32) -> None:
        """Add the outcomes of failures of two brokers. ``thirds`` (k,) are unique keys of ``count_pair_failures``,
        ``count`` (k,) how often each occurs."""
        brokers = self.further_replicas.shape[1]
        key, third = np.divmod(thirds, max(brokers, 1))
        key, follower = np.divmod(key, max(brokers, 1))
        spare, leader = np.divmod(key, max(brokers, 1))
        upper = np.triu_indices(brokers, 1)
        for kind in self.kinds():
            beyond = _beyond(kind)
            if not beyond.any():
                continue
            table = self.successors[kind].astype(np.int64)
            if kind >= _WIDE:
                same_kind = spare == kind - _WIDE
                np.add.at(table, (leader[same_kind], third[same_kind]), count[same_kind])
                np.add.at(table, (follower[same_kind], third[same_kind]), count[same_kind])
                table += self.further_pairs[kind - _WIDE]
            either = (table + table.T)[upper]
            for column in np.flatnonzero(beyond).tolist():
                pairs[:, column] += either * beyond[column]

    def pair_leads(self, thirds: Int64, count: Int32) -> tuple[Int64, Int32]:
        """Changes of leaders when a leader and the next leader fail together, beyond those of each failure alone: keys
        and changes as of ``FailureCounts``, in any order."""
        brokers = max(self.further_replicas.shape[1], 1)
        leader, follower = np.divmod(thirds // brokers % brokers**2, brokers)
        return _pair(leader, follower, brokers) * brokers + thirds % brokers, count


def rack_bits(rack: Int32, registered: UInt8, bits: int = RACK_BITS) -> Int64:
    """A bit for the rack of each broker, (b,), none for no rack, and another where it is not registered."""
    bits_: Int64 = np.where(rack < 0, 0, np.left_shift(np.int64(1), rack.astype(np.int64) % bits))
    bits_[registered == 0] |= np.int64(1) << RACK_BITS
    return bits_


def _health(kind: int, failed: int) -> Int32:
    """The metrics of a partition of a kind after ``failed`` of its brokers, at most two, have failed; without the move
    of its leader."""
    replicas, spare = KINDS[kind]
    if failed >= replicas:
        return _ALL_FAILED
    return _AT_MIN_ISR * np.int32(spare == failed) + _UNDER_MIN_ISR * np.int32(spare < failed)


def _moved(kind: int) -> Int32:
    """The metrics of the failure of its leader beyond those of another replica."""
    return _LEADER_MOVED * np.int32(KINDS[kind][0] > 1)


def _beyond(kind: int) -> Int32:
    """The counts of two failures beyond the sum of each alone. Where both replicas fail, there is no leader."""
    if KINDS[kind][0] == 1:
        return np.zeros_like(_ALL_FAILED)
    beyond: Int32 = _health(kind, 2) - 2 * _health(kind, 1) + _health(kind, 0)
    return beyond - _moved(kind) if KINDS[kind][0] == 2 else beyond


def _pair(first: Int64, second: Int64, brokers: int) -> Int64:
    """The number of two brokers among all pairs."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    number: Int64 = low * (2 * brokers - low - 1) // 2 + high - low - 1
    return number
