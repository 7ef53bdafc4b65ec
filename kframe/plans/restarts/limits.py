"""How many nodes may be down at once, from the in-sync replicas of each partition and the quorum of controllers.

A partition with ``k`` in-sync replicas and ``min.insync.replicas`` ``m`` may lack ``k - m`` of them at once. A
partition that is under ``m`` already may lack all but one. Partitions with the same in-sync replicas and the same
capacity are one limit, so that a million partitions are few limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Int64, Ragged, offsets_of, positions_within
from kframe.plans.restarts.units import RestartUnits
from kframe.whatif.engines.engine import Engine

#: The example of a limit that is that of the quorum, not of partitions.
QUORUM: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class RestartLimits:
    """``l`` limits. ``units`` are ``l`` lists of units, and ``members`` (m,) what each counts of a unit.

    ``capacity`` (l,): the most members that may be down at once. ``partitions`` (l,) have this limit, and
    ``exhausted`` (l,) of them are at min ISR once the capacity is exhausted. ``example`` (l,) is the row of one of the
    partitions, or QUORUM, and ``min_isr`` (l,) its effective ``min.insync.replicas``.
    """

    units: Ragged
    members: Int32
    capacity: Int32
    partitions: Int64
    exhausted: Int64
    example: Int32
    min_isr: Int32

    def __len__(self) -> int:
        return len(self.capacity)

    def take(self, chosen: Int64) -> RestartLimits:
        """The limits numbered ``chosen``."""
        numbers = Ragged(self.units.offsets, np.arange(len(self.members), dtype=np.int32)).take(chosen).values
        return RestartLimits(
            self.units.take(chosen),
            self.members[numbers],
            self.capacity[chosen],
            self.partitions[chosen],
            self.exhausted[chosen],
            self.example[chosen],
            self.min_isr[chosen],
        )

    def exceeded_alone(self) -> Bool:
        """(m,) where a unit alone exceeds the limit."""
        return self.members > self.capacity[self.units.owners]

    def raised_to_largest(self) -> RestartLimits:
        """The limits, each raised to what the unit with the most members needs."""
        largest = np.maximum.reduceat(self.members, self.units.offsets[:-1]) if len(self) else self.capacity
        return replace(
            self,
            capacity=np.maximum(self.capacity, largest).astype(np.int32),
            exhausted=np.where(self.capacity < largest, 0, self.exhausted),
        )

    def without_units(self, blocked: Bool) -> RestartLimits:
        """The limits of the units that are not ``blocked`` (u,)."""
        stays = ~blocked[self.units.values]
        return replace(self, units=self.units.keep(stays), members=self.members[stays])

    def relevant(self, *, exhausted: bool) -> RestartLimits:
        """Those that all of their units together exceed, or with ``exhausted`` also those that they exhaust."""
        totals = np.bincount(self.units.owners, self.members, len(self)).astype(np.int64)
        matters = totals > self.capacity
        if exhausted:
            matters |= (totals == self.capacity) & (self.exhausted > 0) & (totals > 0)
        return self.take(np.flatnonzero(matters))


def limits_of(engine: Engine, units: RestartUnits) -> RestartLimits:
    """The limits of a cluster as it stands: of partitions with a leader, and of the quorum. Cost O(n log n).

    Replicas outside of the ISR stay outside of it. In-sync replicas on nodes that do not restart are never down.
    """
    limits = _distinct_limits(engine, units)
    voters = set(units.voters)
    counts = {number: len(voters & set(nodes)) for number, nodes in enumerate(units.nodes)}
    members = [(number, count) for number, count in counts.items() if count]
    if not members:
        return limits
    quorum = RestartLimits(
        Ragged.of([[number for number, _ in members]]),
        np.array([count for _, count in members], np.int32),
        np.array([(len(voters) - 1) // 2], np.int32),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.array([QUORUM], np.int32),
        np.zeros(1, np.int32),
    )
    return RestartLimits(
        Ragged.chain([limits.units, quorum.units]),
        np.concatenate([limits.members, quorum.members]),
        np.concatenate([limits.capacity, quorum.capacity]),
        np.concatenate([limits.partitions, quorum.partitions]),
        np.concatenate([limits.exhausted, quorum.exhausted]),
        np.concatenate([limits.example, quorum.example]),
        np.concatenate([limits.min_isr, quorum.min_isr]),
    )


def _distinct_limits(engine: Engine, units: RestartUnits) -> RestartLimits:
    health, cluster = engine.health(), engine.cluster
    unit_of = np.full(len(cluster.brokers), -1, np.int32)
    for number, nodes in enumerate(units.nodes):
        for node in nodes:
            index = cluster.brokers.find(node)
            if index is not None:
                unit_of[index] = number
    rows = np.flatnonzero(health.counted & ~health.offline).astype(np.int32)
    isr, minimum = cluster.partitions.lists("isr", rows), engine.min_isr()[rows]
    meets = isr.counts >= minimum
    capacity = isr.counts - np.where(meets, np.maximum(minimum, 1), 1)
    members = unit_of[isr.values]
    down = members >= 0
    keys = isr.owners[down].astype(np.int64) * len(units.nodes) + members[down]
    distinct, counts = np.unique(keys, return_counts=True)
    owner, unit = np.divmod(distinct, max(len(units.nodes), 1))
    lists = Ragged(offsets_of(np.bincount(owner, minlength=len(rows))), unit.astype(np.int32))
    return _merged(
        RestartLimits(
            lists,
            counts.astype(np.int32),
            capacity.astype(np.int32),
            np.ones(len(rows), np.int64),
            meets.astype(np.int64),
            rows,
            minimum,
        )
    )


def _merged(single: RestartLimits) -> RestartLimits:
    """One limit for all limits with the same units, members and capacity that are at min ISR together."""
    lists, count = single.units, len(single)
    position = positions_within(lists.counts)
    code = _dense(_combined(_combined(single.capacity.astype(np.int64), single.exhausted), lists.counts))
    for column_number in range(int(lists.counts.max(initial=0))):
        chosen = position == column_number
        column = np.zeros((2, count), np.int64)
        column[0, lists.owners[chosen]] = lists.values[chosen] + 1
        column[1, lists.owners[chosen]] = single.members[chosen]
        code = _dense(_combined(_combined(code, column[0]), column[1]))
    _, example, partitions = np.unique(code, return_index=True, return_counts=True)
    merged = single.take(example)
    partitions = partitions.astype(np.int64)
    return replace(merged, partitions=partitions, exhausted=partitions * merged.exhausted)


def _combined(left: Int64, right: NDArray[Any]) -> Int64:
    """A number for each pair. Both are below 2^31, so that it fits 64 bits."""
    return np.asarray(left * (int(right.max(initial=0)) + 1) + right, np.int64)


def _dense(codes: Int64) -> Int64:
    """The codes as numbers from 0, in the order of the codes."""
    dense: Int64 = np.unique(codes, return_inverse=True)[1]
    return dense
