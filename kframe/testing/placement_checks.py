"""The rules of every cost term and goal of plans, as functions for ``kframe plugins check`` and for plugins' tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Final, TypeAlias

import numpy as np

from kframe.errors import PluginError
from kframe.model.arrays import Int64, Ragged
from kframe.model.placements import GoalTotals, PlacementBatch
from kframe.registry.placements import CostTerm, PlanGoal
from kframe.testing.selector_checks import Finding, findings

#: Makes a new cost term or goal.
PlacementMaker: TypeAlias = Callable[[], CostTerm | PlanGoal]
PlacementCheck: TypeAlias = Callable[[PlacementMaker], None]

_SEEDS: Final = range(5)


def random_placement(seed: int, partitions: int = 200, brokers: int = 12, racks: int = 3) -> PlacementBatch:
    """Partitions of two topics with 1 to 5 replicas; one broker has no rack. Equal arguments give equal batches."""
    draw = np.random.default_rng(seed)
    ids = np.sort(draw.choice(1_000, brokers, replace=False)).astype(np.int32)
    sizes = draw.integers(1, min(5, brokers) + 1, partitions)
    rack = np.arange(brokers, dtype=np.int32) % max(racks, 1)
    rack[: 1 if racks else brokers] = -1
    first = partitions // 2
    return PlacementBatch(
        topic=(np.arange(partitions) >= first).astype(np.int32),
        partition=np.concatenate([np.arange(first), np.arange(partitions - first)]).astype(np.int32),
        replicas=Ragged.of([draw.choice(brokers, size, replace=False).tolist() for size in sizes]),
        weight=draw.integers(1, 1 << 30, partitions).astype(np.int64),
        broker_ids=ids,
        broker_rack=rack,
        broker_receives=(draw.random(brokers) < 0.8).astype(np.uint8),
        racks=tuple(f"rack-{index}" for index in range(racks)),
        topic_names=("audit", "orders"),
    )


def run_placement_checks(make: PlacementMaker) -> Iterator[Finding]:
    """Run every check; yield each result. A check fails if the cost term, the goal or its maker raises."""
    return findings(PLACEMENT_CHECKS, make, expected=(AssertionError, PluginError))


def check_answers_are_valid(make: PlacementMaker) -> None:
    """It returns int64 arrays of the documented shapes, with values from 0 to 2^53, or FORBIDDEN for costs."""
    instance = make()
    for seed in _SEEDS:
        _results(instance, random_placement(seed))


def check_same_placements_same_answer(make: PlacementMaker) -> None:
    """The result is the same when it is called again, after other batches, and as a new instance."""
    instance = make()
    batches = [random_placement(seed) for seed in _SEEDS]
    first = [_results(instance, batch) for batch in batches]
    for batch, results in zip(reversed(batches), reversed(first), strict=True):
        _require_equal(_results(instance, batch), results, "called again")
        _require_equal(_results(make(), copy.deepcopy(batch)), results, "made anew")


def check_leaves_the_placements_alone(make: PlacementMaker) -> None:
    """It changes nothing in the batch, not even where it could."""
    instance = make()
    for seed in _SEEDS:
        original = random_placement(seed)
        batch = copy.deepcopy(original)
        _results(instance, batch)
        for field in fields(PlacementBatch):
            before, after = getattr(original, field.name), getattr(batch, field.name)
            pairs = [(before, after)]
            if isinstance(before, Ragged):
                pairs = [(before.offsets, after.offsets), (before.values, after.values)]
            if not all(np.array_equal(left, right) for left, right in pairs):
                raise AssertionError(f"it changes {field.name}")


def check_small_clusters(make: PlacementMaker) -> None:
    """It handles no partition, one partition, one broker, and brokers without racks."""
    instance = make()
    for partitions, brokers, racks in ((0, 3, 2), (1, 3, 2), (4, 1, 1), (6, 4, 0)):
        _results(instance, random_placement(7, partitions, brokers, racks))


def check_single_partition_as_in_a_batch(make: PlacementMaker) -> None:
    """The result for a single partition is that in a batch. Topic indexes do not matter."""
    instance, batch = make(), random_placement(3, partitions=20)
    batch_results = _results(instance, batch)[0]
    single_results = [_results(instance, _single(batch, row))[0][0] for row in range(len(batch))]
    if not np.array_equal(batch_results, np.array(single_results)):
        raise AssertionError("its result differs for a single partition")


#: The checks of every cost term and goal, in the order in which they run.
PLACEMENT_CHECKS: Final[tuple[PlacementCheck, ...]] = (
    check_answers_are_valid,
    check_same_placements_same_answer,
    check_leaves_the_placements_alone,
    check_small_clusters,
    check_single_partition_as_in_a_batch,
)


def _results(instance: CostTerm | PlanGoal, batch: PlacementBatch) -> tuple[Int64, ...]:
    """The costs, or the weights and the limits. Raises PluginError for an invalid result."""
    if isinstance(instance, CostTerm):
        return (instance.costs(batch),)
    weights = instance.weights(batch)
    total = int(weights.astype(np.float64).sum())
    totals = GoalTotals(
        batch.broker_ids, batch.broker_rack, batch.racks, batch.broker_receives.astype(np.float64), total
    )
    return (weights, *(instance.limits(totals) or ()))


def _single(batch: PlacementBatch, row: int) -> PlacementBatch:
    rows = np.array([row], np.int32)
    return replace(
        batch,
        topic=np.zeros(1, np.int32),
        partition=batch.partition[rows],
        weight=batch.weight[rows],
        replicas=batch.replicas.take(rows),
        topic_names=(batch.topic_names[batch.topic[row]],),
    )


def _require_equal(results: tuple[Int64, ...], expected: tuple[Int64, ...], when: str) -> None:
    if not all(np.array_equal(left, right) for left, right in zip(results, expected, strict=True)):
        raise AssertionError(f"its result differs when {when}")
