"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8

def vacate_replicas(
    order: Int32,
    offsets: Int32,
    replication_factor: Int32,
    in_sync: UInt8,
    leaving: UInt8,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    demanded: Int32,
    share: Float64,
    weight: Int64,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int: ...
def fill_vacancies(
    order: Int32,
    offsets: Int32,
    replication_factor: Int32,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    share: Float64,
    cap: Int64,
    weight: Int64,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int: ...
def transfer_replicas(
    order: Int32,
    offsets: Int32,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    share: Float64,
    cap: Int64,
    weight: Int64,
    lower: Int64,
    upper: Int64,
    over_only: bool,
    under_only: bool,
    within_limits: bool,
    first_slots: bool,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int: ...
def measure_spread(offsets: Int32, values: Int32, rack: Int32, rule: Int32, bounds: Int32, spread: Int32) -> int: ...
def mark_leaders(
    order: Int32, offsets: Int32, replica: Int16, original_offsets: Int32, original: Int16, share: Float64, arcs: UInt8
) -> int: ...
def shift_leaders(
    order: Int32,
    offsets: Int32,
    original_offsets: Int32,
    original: Int16,
    path: Int32,
    moved_only: UInt8,
    max_shifts: int,
    cursors: Int32,
    rows: Int32,
    replica: Int16,
) -> int: ...
def reorder_leaders(
    order: Int32,
    offsets: Int32,
    share: Float64,
    lower: Int64,
    upper: Int64,
    over_only: bool,
    under_only: bool,
    replica: Int16,
    led: Int64,
) -> int: ...
