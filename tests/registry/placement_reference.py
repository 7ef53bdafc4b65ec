"""Reference of ``kframe.kernels._placements`` in plain Python with a ctypes struct."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint32, c_void_p
from typing import Any

from kframe.model.arrays import Int32, Int64


class Placement(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("broker", c_int32),
        ("broker_count", c_int32),
        ("replica_count", c_int32),
        ("replicas", POINTER(c_int32)),
        ("broker_ids", POINTER(c_int32)),
        ("broker_rack", POINTER(c_int32)),
        ("weight", c_int64),
        ("topic", c_int32),
        ("partition", c_int32),
    ]


#: The C function type of a native cost term or goal.
PLACEMENT_FUNCTION = ctypes.CFUNCTYPE(c_int64, POINTER(Placement), c_void_p)


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
) -> None:
    """See ``kframe.kernels._placements.call_native``."""
    call: Any = PLACEMENT_FUNCTION(function)
    brokers = len(broker_ids)
    ids, racks = (c_int32 * brokers)(*broker_ids.tolist()), (c_int32 * brokers)(*broker_rack.tolist())
    for row in range(len(topic)):
        replicas = values[offsets[row] : offsets[row + 1]].tolist()
        for column, broker in enumerate(range(brokers) if by_broker else (-1,)):
            placement = Placement(
                ctypes.sizeof(Placement),
                broker,
                brokers,
                len(replicas),
                (c_int32 * len(replicas))(*replicas),
                ids,
                racks,
                int(weight[row]),
                int(topic[row]),
                int(partition[row]),
            )
            result[row, column] = call(ctypes.byref(placement), user_data)
