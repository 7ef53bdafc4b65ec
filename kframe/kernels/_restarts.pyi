"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int32, Int64, UInt8

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
) -> int: ...
