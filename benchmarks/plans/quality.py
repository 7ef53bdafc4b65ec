"""What a plan moves, and the balance, racks and leaders after it: counted alike for every planner."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.plans.clusters import Case
from benchmarks.plans.peers import Run
from kframe.model.arrays import Int32, Int64, Ragged
from kframe.model.lists import members
from kframe.plans.check.rack_rules import uneven_replicas


def row_of(case: Case, run: Run) -> dict[str, Any]:
    """A row of the record. ``balance`` is the greatest load over the mean, of replicas, or of bytes by size.

    ``rack_violations`` are partitions that are spread over racks less evenly than they could be.
    """
    row: dict[str, Any] = {
        "cluster": case.cluster,
        "goal": case.goal,
        "tool": run.tool,
        "error": run.error,
        "seconds": run.seconds,
        "cpu_seconds": round(run.cpu_seconds, 3),
        "wall_seconds": round(run.wall_seconds, 3),
        "memory": run.memory,
        "bound": run.bound,
        "exact": run.exact,
        "limits_reached": run.reached,
    }
    return row if run.result is None else row | measure(case, lists_after(case, run.result))


def lists_after(case: Case, result: dict[tuple[str, int], list[int]]) -> Ragged:
    """The replicas of every partition, as broker ids: those of the result, and as before where it has none."""
    before, topics = case.snapshot.partitions.replicas, case.snapshot.topics
    names = zip(topics.topic_of_rows().tolist(), topics.partition_of_rows().tolist(), strict=True)
    lists = [result.get((topics.names[topic], number)) for topic, number in names]
    return Ragged.of([before[row].tolist() if replicas is None else replicas for row, replicas in enumerate(lists)])


def measure(case: Case, after: Ragged) -> dict[str, Any]:
    """The figures of a result."""
    before, racks = case.snapshot.partitions.replicas, case.racks
    added = after.keep(~members(after, before))
    ids = np.array(sorted(racks), np.int32)
    labels = sorted({rack for rack in racks.values() if rack is not None})
    numbers = np.array(
        [
            labels.index(rack) if (rack := racks[broker]) is not None else len(labels) + index
            for index, broker in enumerate(ids.tolist())
        ],
        np.int32,
    )
    remaining = ~np.isin(ids, case.removed)
    lists = Ragged(after.offsets, np.searchsorted(ids, after.values).astype(np.int32))
    hosts = np.bincount(numbers[remaining], minlength=int(numbers.max()) + 1).astype(np.int32)
    copied = added.counts.astype(np.int64)
    replicas = _loads(lists, np.ones(len(after), np.int64), len(ids))
    sizes = _loads(lists, case.sizes, len(ids))
    leaders = np.bincount(lists.values[lists.first], minlength=len(ids)).astype(np.int64)
    balanced = sizes if case.by_size else replicas
    return {
        "moves": int(copied.sum()),
        "bytes": int((copied * case.sizes).sum()),
        "balance": _over_mean(balanced[remaining]),
        "deviation": float(balanced[remaining].std()),
        "rack_violations": int(np.count_nonzero(uneven_replicas(lists, numbers, hosts))),
        "leader_balance": _over_mean(leaders[remaining]),
        "leader_deviation": float(leaders[remaining].std()),
        "left_on_removed": int(replicas[~remaining].sum()),
        "leader_changes": int(np.count_nonzero(after.values[after.first] != before.values[before.first])),
    }


def _loads(lists: Ragged, weight: Int64, brokers: int) -> Int64:
    return np.bincount(lists.values, np.repeat(weight, lists.counts), minlength=brokers).astype(np.int64)


def _over_mean(loads: Int32 | Int64) -> float:
    return round(float(loads.max() / loads.mean()), 4)


def better_than(row: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether a peer costs less than kframe at equal or better balance, racks and removal."""
    if row["error"] is not None or ours["error"] is not None:
        return False
    cost = "bytes" if row["goal"] == "rebalance bytes" else "moves"
    no_worse = ("balance", "rack_violations", "left_on_removed")
    return bool(row[cost] < ours[cost] and all(row[name] <= ours[name] for name in no_worse))
