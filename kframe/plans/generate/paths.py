"""Shift replicas or leaderships along paths of brokers, where no direct transfer brings loads within their limits.

The brokers are the nodes of a network. An arc from a to b means that some partition can give its replica on a, or its
leadership, to b. A path from a broker with too much to a broker with room changes only the loads of its ends. The
cheapest path comes first: an arc costs 1 if it takes a replica that was in its original position, 0 if the plan moves
it anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Bool, Float64, Int32, Int64, UInt8
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.limits import LoadLimits

#: A path is longer than any path of moves by less than one move for each free step.
_FREE = 1e-6


class TransferNetwork(Protocol):
    """The brokers as nodes, and what can go from each to each."""

    def arcs(self) -> NDArray[np.uint8]:
        """(b, b) 0 where there is no arc, 1 for arcs that cost a move, 2 for free arcs."""

    def shift(self, path: list[int], free: UInt8, units: int) -> int:
        """Shift at most ``units`` along a path; return how many."""


@dataclass(frozen=True, slots=True, eq=False)
class LeaderNetwork:
    """What leaderships of the partitions ``order`` of a draft can be shifted between brokers.

    ``share`` (b,) is 0 for brokers that must not become leaders.
    """

    order: Int32
    draft: Draft
    share: Float64

    def arcs(self) -> NDArray[np.uint8]:
        """(b, b) 0 where there is no arc, 1 for arcs that cost a leadership of before the plan, 2 for free arcs."""
        arcs = np.zeros((len(self.share), len(self.share)), np.uint8)
        draft = self.draft
        kernels.mark_leaders(
            self.order, draft.offsets, draft.replica, draft.before.offsets, draft.before_replica, self.share, arcs
        )
        return arcs

    def shift(self, path: list[int], free: UInt8, units: int) -> int:
        """Shift at most ``units`` along a path; return how many."""
        draft, steps = self.draft, len(free)
        return kernels.shift_leaders(
            self.order,
            draft.offsets,
            draft.before.offsets,
            draft.before_replica,
            np.array(path, np.int32),
            free,
            units,
            np.empty(steps, np.int32),
            np.empty(steps, np.int32),
            draft.replica,
        )


def shift_until_reached(network: TransferNetwork, limits: LoadLimits, load: Int64, count: Int64, room: Int64) -> None:
    """Shift along the cheapest paths until the loads are within the limits or no path is left.

    ``load`` and ``count`` (b,) are updated; they may be the same array. ``room`` (b,) is how many replicas more each
    broker can take.
    """
    arcs: NDArray[np.uint8] | None = None
    while not limits.reached(load):
        arcs = network.arcs() if arcs is None else arcs
        path = _next_path(arcs, limits, load, room)
        if path is None:
            return
        free = (arcs[path[:-1], path[1:]] == 2).astype(np.uint8)
        units = min(*limits.transferable(load, path[0], path[-1]), int(room[path[-1]]))
        shifted = network.shift(path, free, units)
        if not shifted:
            arcs[path[0], path[1]] = 0
            continue
        for change in {id(load): load, id(count): count}.values():
            change[path[0]] -= shifted
            change[path[-1]] += shifted
        room[path[0]] += shifted
        room[path[-1]] -= shifted
        arcs = None


def _next_path(arcs: NDArray[np.uint8], limits: LoadLimits, load: Int64, room: Int64) -> list[int] | None:
    """From a broker above its limit to a broker below; else to any with room; else to a broker below from any above
    its lower limit."""
    over, under, free = load > limits.upper, (load < limits.lower) & (room > 0), (load < limits.upper) & (room > 0)
    for source, sink in ((over, under), (over, free), (load > limits.lower, under)):
        path = _cheapest_path(arcs, source, sink) if source.any() and sink.any() else None
        if path is not None:
            return path
    return None


def _cheapest_path(arcs: NDArray[np.uint8], source: Bool, sink: Bool) -> list[int] | None:
    """Brokers of the cheapest path from a source to a sink (Dijkstra on the dense matrix); None if there is none."""
    cost = np.where(arcs == 0, np.inf, np.where(arcs == 1, 1.0, _FREE))
    distance = np.where(source, 0.0, np.inf)
    previous = np.full(len(source), -1, np.int64)
    pending = np.ones(len(source), np.bool_)
    while True:
        candidates = np.where(pending, distance, np.inf)
        node = int(candidates.argmin())
        if not np.isfinite(candidates[node]):
            return None
        if sink[node] and not source[node]:
            break
        pending[node] = False
        nearer = pending & (distance[node] + cost[node] < distance)
        distance[nearer] = distance[node] + cost[node][nearer]
        previous[nearer] = node
    path = [node]
    while previous[path[-1]] >= 0:
        path.append(int(previous[path[-1]]))
    return path[::-1]
