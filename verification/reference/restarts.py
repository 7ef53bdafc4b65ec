"""Reference kernel of ``_restarts.pyx``: a batch is a list of units, and each limit is counted anew."""

from __future__ import annotations

from collections.abc import Sequence

from kframe.model.arrays import Int32, Int64, UInt8

__all__ = ["assign_batches"]


def assign_batches(
    order: Int32,
    unit_start: Int32,
    limit: Int32,
    limit_start: Int32,
    unit: Int32,
    members: Int32,
    capacity: Int32,
    exhausted: Int64,
    group: Int32,
    size: Int32,
    exhausted_max: int,
    size_max: int,
    down: Int32,
    forbidden: UInt8,
    used: Int64,
    batch_group: Int32,
    batch: Int32,
) -> int:
    """A unit joins the first batch that keeps all limits with it."""
    limits = [
        {int(unit[k]): int(members[k]) for k in range(limit_start[number], limit_start[number + 1])}
        for number in range(len(capacity))
    ]

    def is_allowed(units: Sequence[int]) -> bool:
        counts = [sum(counted.get(other, 0) for other in units) for counted in limits]
        at_min = sum(
            int(exhausted[number])
            for number, count in enumerate(counts)
            if count == capacity[number] and limits[number].keys() & set(units)
        )
        return (
            len({int(group[other]) for other in units}) == 1
            and all(count <= capacity[number] for number, count in enumerate(counts))
            and at_min <= exhausted_max
            and sum(int(size[other]) for other in units) <= size_max
        )

    batches: list[list[int]] = []
    for number in order.tolist():
        chosen = next((units for units in batches if is_allowed([*units, number])), None)
        if chosen is None:
            batches.append([number])
        else:
            chosen.append(number)
    for position, units in enumerate(batches):
        batch[units] = position
    return len(batches)
