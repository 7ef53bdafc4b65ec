"""Two plans side by side: moves, balance, racks and bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct

from kframe.plugin.columns import Int64, same_lists
from kframe.plugin.plans import GeneratedPlanDocument, Plan
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.pages.plans import PlanSummary
from kframe_console.plans.session import PlanLink, StoredPlan

_COST: Final = "cost"
_BOUND: Final = "lower bound of the cost"


class ComparisonParameters(Struct, forbid_unknown_fields=True):
    """The ids of two plans, and their requests, which make them again."""

    left: str
    right: str
    left_request: str = ""
    right_request: str = ""


class ComparedValue(Struct):
    """A number of both plans; null is unknown. ``less`` is the plan that has less of it, where less is better."""

    group: str
    name: str
    left: float | None
    right: float | None
    less: Literal["left", "right"] | None


class ComparedPartitions(Struct):
    """Partitions that both plans give the same replicas, that they give different ones, and that one alone changes."""

    same: int
    different: int
    left_only: int
    right_only: int


class ComparedBroker(Struct):
    """The loads of a broker before any plan, and after each; null is unknown."""

    broker_id: int
    rack: str | None
    replicas: list[int]
    leaders: list[int]
    bytes: list[int] | None


class PlanComparison(Struct):
    """Two plans side by side."""

    left: PlanSummary
    right: PlanSummary
    values: list[ComparedValue]
    partitions: ComparedPartitions
    brokers: list[ComparedBroker]


@page(ContentPage, "plan-comparison", "/plans/compare")
def comparison_page(context: PageContext, parameters: ComparisonParameters) -> PlanComparison:
    """Two plans side by side: moves, bytes, balance, racks and bounds.

    Raises InputError for an unknown plan.
    """
    left = PlanLink(plan=parameters.left, request=parameters.left_request)
    right = PlanLink(plan=parameters.right, request=parameters.right_request)
    content: PlanComparison = context.plans.compared(context.reading, left, right, compare)
    return content


def compare(left: StoredPlan, right: StoredPlan) -> PlanComparison:
    """The comparison of two plans. Costs in different units do not compare, and no bound is better than another."""
    units = {stored.document.moves.unit for stored in (left, right)}
    unlike = {_BOUND, *([_COST] if len(units) > 1 else ())}
    return PlanComparison(
        PlanSummary.of(left),
        PlanSummary.of(right),
        [
            ComparedValue(group, name, first, second, None if name in unlike else _less(first, second))
            for (group, name, first), (_, _, second) in zip(
                _values(left.document), _values(right.document), strict=True
            )
            if (first, second) != (None, None)
        ],
        _partitions(left.plan, right.plan),
        list(_brokers(left.document, right.document)),
    )


def _less(left: float | None, right: float | None) -> Literal["left", "right"] | None:
    if left is None or right is None or left == right:
        return None
    return "left" if left < right else "right"


def _values(document: GeneratedPlanDocument) -> Iterator[tuple[str, str, float | None]]:
    moves, partitions, racks = document.moves, document.partitions, document.racks
    yield "moves", "replicas copied", moves.replicas
    yield "moves", _COST, moves.cost
    yield "moves", "partitions changed", partitions.changed
    yield "moves", "leaders changed", moves.leaders
    yield "moves", "expected time of all copies, in seconds", moves.seconds
    yield "bound", _BOUND, moves.bound
    yield "bound", "gap in percent", None if moves.gap is None else 100 * moves.gap
    yield "request", "partitions not as requested", partitions.unmet
    yield "racks", "partitions uneven over racks", racks.crowded_after
    for kind in ("replicas", "leaders", "bytes", "goal"):
        skew = document.skew.get(f"{kind}_after")
        yield "balance", f"most {kind} of a broker", None if skew is None else skew.max
        yield "balance", f"{kind}: maximum by mean", None if skew is None else skew.max_mean_ratio


def _partitions(left: Plan, right: Plan) -> ComparedPartitions:
    numbers = {name: number for number, name in enumerate(left.targets.names)}
    topics = np.array([numbers.setdefault(name, len(numbers)) for name in right.targets.names], np.int64)
    left_keys = _keys(np.arange(len(left.targets.names)), left)
    right_keys = _keys(topics, right)
    _, left_rows, right_rows = np.intersect1d(left_keys, right_keys, assume_unique=True, return_indices=True)
    equal = same_lists(
        left.targets.replicas.take(left_rows.astype(np.int32)), right.targets.replicas.take(right_rows.astype(np.int32))
    )
    same, shared = int(equal.sum()), len(left_rows)
    return ComparedPartitions(same, shared - same, len(left) - shared, len(right) - shared)


def _keys(topics: Int64, plan: Plan) -> Int64:
    if not len(plan):
        return np.empty(0, np.int64)
    keys: Int64 = (topics.astype(np.int64)[plan.targets.topic] << 32) + plan.targets.partition
    return keys


def _brokers(left: GeneratedPlanDocument, right: GeneratedPlanDocument) -> Iterator[ComparedBroker]:
    rows: dict[int, list[Any]] = {}
    for index, document in enumerate((left, right)):
        for broker in document.brokers:
            rows.setdefault(broker.broker_id, [None, None])[index] = broker
    for broker_id, pair in sorted(rows.items()):
        broker = next(broker for broker in pair if broker is not None)
        loads = {kind: _loads(pair, broker, kind) for kind in ("replicas", "leaders", "bytes")}
        yield ComparedBroker(broker_id, broker.rack, loads["replicas"] or [], loads["leaders"] or [], loads["bytes"])


def _loads(pair: Sequence[Any], broker: Any, kind: str) -> list[int] | None:
    """Before, after the left plan and after the right one. A plan that does not know the broker leaves it as it is."""
    before = getattr(broker, f"{kind}_before")
    after = [before if planned is None else getattr(planned, f"{kind}_after") for planned in pair]
    return None if None in (before, *after) else [before, *after]
