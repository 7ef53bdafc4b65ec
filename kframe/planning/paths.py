"""Shift preferred leaderships along paths of brokers, where no direct transfer brings them within their limits.

The brokers are the nodes of a network. An arc from a to b means that some partition can give its leadership on a to b.
A path from a broker with too many to a broker with room changes only the loads of its ends. The cheapest path comes
first: an arc costs 1 if it takes a leadership that was in its original position, 0 if the plan moves it anyway.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.columns import Bool, Float64, Int32, Int64
from kframe.planning.draft import Draft
from kframe.planning.limits import LoadLimits

#: A path is longer than any path of moves by less than one move for each free step.
_FREE = 1e-6


def shift_until_reached(draft: Draft, order: Int32, share: Float64, limits: LoadLimits, led: Int64) -> None:
    """Shift along the cheapest paths until the leaders are within the limits or no path is left.

    ``order`` are the partitions, ``share`` (b,) is 0 for brokers that must not become leaders. ``led`` (b,) is updated.
    """
    arcs: NDArray[np.uint8] | None = None
    lists, order = draft.before, np.sort(order)
    while not limits.reached(led):
        if arcs is None:
            arcs = np.zeros((len(share), len(share)), np.uint8)
            kernels.mark_leaders(
                order, draft.offsets, draft.replica, lists.offsets, draft.before_replica, share, arcs
            )  # fmt: skip
        path = _next_path(arcs, limits, led)
        if path is None:
            return
        free = (arcs[path[:-1], path[1:]] == 2).astype(np.uint8)
        steps = len(free)
        shifted = kernels.shift_leaders(
            order, draft.offsets, lists.offsets, draft.before_replica, np.array(path, np.int32), free,
            _units(limits, led, path[0], path[-1]), np.empty(steps, np.int32), np.empty(steps, np.int32), draft.replica,
        )  # fmt: skip
        if not shifted:
            arcs[path[0], path[1]] = 0
            continue
        led[path[0]] -= shifted
        led[path[-1]] += shifted
        arcs = None


def _next_path(arcs: NDArray[np.uint8], limits: LoadLimits, led: Int64) -> list[int] | None:
    """From a broker above its limit to a broker below; else to any with room; else to a broker below from any above
    its lower limit."""
    over, under, free = led > limits.upper, led < limits.lower, led < limits.upper
    for source, sink in ((over, under), (over, free), (led > limits.lower, under)):
        path = _cheapest_path(arcs, source, sink) if source.any() and sink.any() else None
        if path is not None:
            return path
    return None


def _units(limits: LoadLimits, led: Int64, giver: int, target: int) -> int:
    over, under = int(led[giver] - limits.upper[giver]), int(limits.lower[target] - led[target])
    give = over if over > 0 else int(led[giver] - limits.lower[giver])
    take = under if under > 0 else int(limits.upper[target] - led[target])
    return min(give, take)


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
