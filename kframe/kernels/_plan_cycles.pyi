"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8

def rate_transfers(
    order: Int32,
    offsets: Int32,
    replica: Int16,
    original_offsets: Int32,
    original: Int16,
    rack: Int32,
    share: Float64,
    costlier_targets: Int32,
    rates: UInt8,
) -> int: ...
def collect_transfers(
    slots: Int32,
    owner: Int32,
    offsets: Int32,
    replica: Int16,
    original_offsets: Int32,
    original: Int16,
    rack: Int32,
    weight: Int64,
    used: UInt8,
    source: int,
    target: int,
    rate: int,
    weight_limit: int,
    chosen: Int32,
) -> int: ...
def load_at_prices(
    order: Int32,
    original_offsets: Int32,
    original: Int16,
    replication_factor: Int32,
    required_racks: Int32,
    leaving: UInt8,
    rack: Int32,
    weight: Int64,
    price: Int64,
    targets: Int32,
    chosen: Int16,
    load: Int64,
) -> int: ...
def assign_at_prices(
    order: Int32,
    offsets: Int32,
    original_offsets: Int32,
    original: Int16,
    replication_factor: Int32,
    required_racks: Int32,
    leaving: UInt8,
    rack: Int32,
    share: Float64,
    cap: Int64,
    weight: Int64,
    upper: Int64,
    price: Int64,
    chosen: Int16,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int: ...
