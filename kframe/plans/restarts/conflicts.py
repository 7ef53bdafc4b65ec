"""Units that can share no batch, because a limit cannot spare the members of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged, offsets_of, positions_within
from kframe.plans.restarts.limits import RestartLimits

#: Units from which a set of mutual conflicts is sought.
_STARTS: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class Conflicts:
    """``pairs`` (c,): ``low · u + high`` of each two units, ascending. ``limit`` (c,): a limit that keeps them apart,
    and ``partitions`` (c,): the partitions that do. ``neighbours``: for each unit those that conflict with it,
    ascending."""

    units: int
    pairs: Int64
    limit: Int32
    partitions: Int64
    neighbours: Ragged

    @staticmethod
    def of(limits: RestartLimits, units: int) -> Conflicts:
        """The conflicts of the limits, of which none is broken by one unit. Cost O(m · r)."""
        lists, members = limits.units, limits.members
        position, count = positions_within(lists.counts), lists.counts[lists.owners]
        pairs, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for distance in range(1, int(lists.counts.max(initial=0))):
            first = np.flatnonzero(position + distance < count)
            both = members[first] + members[first + distance] > limits.capacity[lists.owners[first]]
            first = first[both]
            ends = np.stack([lists.values[first], lists.values[first + distance]]).astype(np.int64)
            pairs.append(ends.min(axis=0) * units + ends.max(axis=0))
            numbers.append(lists.owners[first])
        all_pairs, all_numbers = np.concatenate(pairs), np.concatenate(numbers)
        distinct, first, inverse = np.unique(all_pairs, return_index=True, return_inverse=True)
        partitions = np.bincount(inverse, limits.partitions[all_numbers], len(distinct)).astype(np.int64)
        low, high = np.divmod(distinct, max(units, 1))
        left, right = np.concatenate([low, high]), np.concatenate([high, low])
        by_unit = np.lexsort((right, left))
        neighbours = Ragged(offsets_of(np.bincount(left, minlength=units)), right[by_unit].astype(np.int32))
        return Conflicts(units, distinct, all_numbers[first], partitions, neighbours)

    def clique(self, candidates: Int32) -> Int32:
        """Some of the ``candidates`` that conflict with each other, ascending: as many as a greedy search finds."""
        degree = self.neighbours.counts
        best = candidates[:1]
        for start in candidates[np.argsort(-degree[candidates], kind="stable")][:_STARTS].tolist():
            if degree[start] < len(best):
                break
            clique = [start]
            common = np.intersect1d(self.neighbours[start], candidates, assume_unique=True)
            while len(common) and len(clique) + len(common) > len(best):
                unit = int(common[np.argmax(degree[common])])
                clique.append(unit)
                common = np.intersect1d(common, self.neighbours[unit], assume_unique=True)
            if len(clique) > len(best):
                best = np.array(sorted(clique), np.int32)
        return best
