"""Cost terms and goals of plans: the three tiers as one interface, and the validation of their results.

A result is validated before a plan uses it. An invalid one is a PluginError that names the cost term or goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from kframe.errors import KframeError, PluginError
from kframe.kernels import _placements
from kframe.model.arrays import Int64
from kframe.model.placements import COST_MAX, FORBIDDEN, GoalTotals, PlacementBatch
from kframe.registry.native import native_address
from kframe.registry.specs import CostTermSpec, GoalSpec, Tier

#: The C signature of a native cost term or goal, as in ``placement.h``.
PLACEMENT_SIGNATURE: Final = "int64_t (const kframe_placement *, void *)"

#: Columns in, an array out.
_Bulk: TypeAlias = Callable[[PlacementBatch], Any]


class PartitionPlacement(msgspec.Struct, frozen=True):
    """A partition in the scope of a plan, for the scalar tier. Brokers are ids; see PlacementBatch for the fields."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    weight: int
    racks: Mapping[int, str | None]
    """Rack by id of each broker of the plan, None for a broker without rack. A single mapping for the whole batch."""


@dataclass(frozen=True, slots=True, eq=False)
class CostTerm:
    """What it costs to place a replica on a broker, in addition to copying it. ``function`` is of the bulk tier."""

    name: str
    function: _Bulk

    def costs(self, batch: PlacementBatch) -> Int64:
        """(k, b) the validated costs. Raises PluginError."""
        shape = (len(batch), len(batch.broker_ids))
        result = _validated_result(f"cost term {self.name!r}", self.function, batch, shape)
        _require_range(f"cost term {self.name!r}", result[result != FORBIDDEN], ", or FORBIDDEN")
        return result


@dataclass(frozen=True, slots=True, eq=False)
class PlanGoal:
    """A weight for each partition, and limits of the weight on each broker.

    ``function`` is of the bulk tier. ``limit`` returns the lower and upper limits (b,) of ``GoalTotals``; None stands
    for the shares by capacity within the tolerance of the request. ``unit`` is that of the weights.
    """

    name: str
    unit: str
    function: _Bulk
    limit: Callable[[GoalTotals], Any] | None = None

    def weights(self, batch: PlacementBatch) -> Int64:
        """(k,) the validated weights. Raises PluginError."""
        result = _validated_result(f"goal {self.name!r}", self.function, batch, (len(batch),))
        _require_range(f"goal {self.name!r}", result)
        return result

    def limits(self, totals: GoalTotals) -> tuple[Int64, Int64] | None:
        """The validated limits of the goal; None if it has none of its own. Raises PluginError."""
        if self.limit is None:
            return None
        where = f"goal {self.name!r}: limits"
        result = _call(where, self.limit, totals)
        if not isinstance(result, tuple) or len(result) != 2:
            raise PluginError(f"{where}: found {type(result).__name__}, expected a lower and an upper array")
        lower, upper = (_checked(where, limit, totals.broker_ids.shape) for limit in result)
        for limit in (lower, upper):
            _require_range(where, limit)
        if (lower > upper).any():
            broker_id = totals.broker_ids[(lower > upper).argmax()]
            raise PluginError(f"{where}: found a lower limit above the upper one of broker {broker_id}")
        return lower, upper


def make_cost_term(spec: CostTermSpec) -> CostTerm:
    """The cost term that a plugin offers. Raises PluginError if its factory fails or returns another tier."""
    return CostTerm(spec.name, _bulk(f"cost term {spec.name!r}", spec.tier, _call_factory(spec), by_broker=True))


def make_goal(spec: GoalSpec) -> PlanGoal:
    """The goal that a plugin offers. Raises PluginError if its factory fails or returns another tier."""
    return PlanGoal(
        spec.name, spec.unit, _bulk(f"goal {spec.name!r}", spec.tier, _call_factory(spec), by_broker=False), spec.limits
    )


def partition_placements(batch: PlacementBatch) -> Iterator[PartitionPlacement]:
    """Yield the partitions of a batch as objects."""
    ids = batch.broker_ids.tolist()
    racks = {
        broker_id: batch.racks[rack] if rack >= 0 else None
        for broker_id, rack in zip(ids, batch.broker_rack.tolist(), strict=True)
    }
    values, offsets = batch.broker_ids[batch.replicas.values].tolist(), batch.replicas.offsets.tolist()
    columns = zip(batch.topic.tolist(), batch.partition.tolist(), batch.weight.tolist(), strict=True)
    for row, (topic, partition, weight) in enumerate(columns):
        replicas = tuple(values[offsets[row] : offsets[row + 1]])
        yield PartitionPlacement(batch.topic_names[topic], partition, replicas, weight, racks)


def _call_factory(spec: CostTermSpec | GoalSpec) -> Any:
    try:
        return spec.factory()
    except KframeError:
        raise
    except Exception as error:
        raise PluginError(f"{spec.name!r} cannot be made: {type(error).__name__}: {error}") from error


def _bulk(where: str, tier: Tier, function: Any, *, by_broker: bool) -> _Bulk:
    if tier is Tier.NATIVE:
        return _native(where, function, by_broker=by_broker)
    if not callable(function):
        raise PluginError(f"{where}: its factory returned {type(function).__name__}, expected a function")
    if tier is Tier.BULK:
        bulk: _Bulk = function
        return bulk
    return _scalar_costs(function) if by_broker else _scalar_weights(function)


def _scalar_costs(function: Callable[[PartitionPlacement], Any]) -> _Bulk:
    """Costs from mappings by broker id; brokers that a mapping lacks cost nothing."""

    def costs(batch: PlacementBatch) -> Int64:
        index_of = {broker_id: index for index, broker_id in enumerate(batch.broker_ids.tolist())}
        result = np.zeros((len(batch), len(index_of)), np.int64)
        for row, view in enumerate(partition_placements(batch)):
            for broker_id, cost in function(view).items():
                if broker_id not in index_of:
                    raise ValueError(f"{view.topic}-{view.partition}: found broker {broker_id}, expected one of racks")
                result[row, index_of[broker_id]] = _integer(view, cost)
        return result

    return costs


def _scalar_weights(function: Callable[[PartitionPlacement], Any]) -> _Bulk:
    def weights(batch: PlacementBatch) -> Int64:
        weights = (_integer(view, function(view)) for view in partition_placements(batch))
        return np.fromiter(weights, np.int64, len(batch))

    return weights


def _integer(view: PartitionPlacement, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{view.topic}-{view.partition}: found {value!r}, expected an integer")
    return int(value)


def _native(where: str, source: Any, *, by_broker: bool) -> _Bulk:
    address, user_data = native_address(where, source, PLACEMENT_SIGNATURE)

    def call_native(batch: PlacementBatch) -> Int64:
        result = np.zeros((len(batch), len(batch.broker_ids) if by_broker else 1), np.int64)
        _placements.call_native(
            address,
            user_data,
            batch.topic,
            batch.partition,
            batch.weight,
            batch.replicas.offsets,
            batch.replicas.values,
            batch.broker_ids,
            batch.broker_rack,
            by_broker,
            result,
        )
        return result if by_broker else result[:, 0]

    call_native.source = source  # type: ignore[attr-defined]  # Keeps the function alive.
    return call_native


def _validated_result(where: str, function: _Bulk, batch: PlacementBatch, shape: tuple[int, ...]) -> Int64:
    return _checked(where, _call(where, function, batch), shape)


def _call(where: str, function: Callable[..., Any], argument: object) -> Any:
    try:
        return function(argument)
    except Exception as error:
        raise PluginError(f"{where} raised {type(error).__name__}: {error}") from error


def _checked(where: str, result: Any, shape: tuple[int, ...]) -> Int64:
    if not isinstance(result, np.ndarray):
        raise PluginError(f"{where}: found {type(result).__name__}, expected an array int64 {shape}")
    if result.dtype != np.int64 or result.shape != shape:
        raise PluginError(f"{where}: found an array {result.dtype} {result.shape}, expected int64 {shape}")
    return np.ascontiguousarray(result)


def _require_range(where: str, values: Int64, alternative: str = "") -> None:
    wrong = values[(values < 0) | (values > COST_MAX)]
    if len(wrong):
        raise PluginError(f"{where}: found {int(wrong[0])}, expected 0 to 2^53{alternative}")
