"""Partitions and brokers as cost terms and goals of plans receive them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe.model.arrays import Float64, Int32, Int64, Ragged, UInt8

#: The cost of a placement that a plan must not make.
FORBIDDEN: Final = 1 << 62
#: The greatest other cost, and the greatest weight of a partition: sums of floats stay exact.
COST_MAX: Final = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class PlacementBatch:
    """``k`` partitions in the scope of a plan, and its ``b`` brokers, ascending by id. Every array is read-only.

    Shapes: ``topic``, ``partition`` and ``weight`` (k,); ``replicas`` k lists of broker indexes, the preferred leader
    first, as they are before the plan; the ``broker_`` arrays (b,). ``weight`` is what copying a replica costs: its
    bytes, or 1 where sizes are unknown.
    """

    topic: Int32
    partition: Int32
    replicas: Ragged
    weight: Int64
    broker_ids: Int32
    broker_rack: Int32
    """Rack number by broker index, -1 where the broker has no rack. ``racks`` has the names."""
    broker_receives: UInt8
    """By broker index: 1 where the plan may place replicas on the broker."""
    racks: tuple[str, ...]
    topic_names: tuple[str, ...]
    """Topic names by topic index."""

    def __len__(self) -> int:
        return len(self.topic)


@dataclass(frozen=True, slots=True, eq=False)
class GoalTotals:
    """What the limits of a goal follow from: ``total`` is the weight of all replicas on brokers that take part.

    All arrays are (b,), as in ``PlacementBatch``. ``capacity`` is the relative capacity of a broker, 0 where it takes
    no part.
    """

    broker_ids: Int32
    broker_rack: Int32
    racks: tuple[str, ...]
    capacity: Float64
    total: int
