"""See the .pyx file of the same name for shapes and for what is IN or OUT."""

from kframe.model.arrays import Int32, Int64

PLACEMENT_SIZE: int

def call_native(
    function: int,
    user_data: int,
    topic: Int32,
    partition: Int32,
    weight: Int64,
    offsets: Int32,
    values: Int32,
    broker_ids: Int32,
    broker_rack: Int32,
    by_broker: bool,
    result: Int64,
) -> None: ...
