from typing import Any

from numpy.typing import NDArray

from kframe.plugin.columns import Int32, Int64, UInt8

def parse_partitions(
    payload: UInt8,
    body_start: Int64,
    body_end: Int64,
    version: Int32,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    leader_epoch: Int32,
    partition_epoch: Int32,
    list_start: Int64,
    list_count: Int32,
) -> int: ...
def parse_changes(
    payload: UInt8,
    body_start: Int64,
    body_end: Int64,
    version: Int32,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    list_start: Int64,
    list_count: Int32,
) -> int: ...
def copy_ids(payload: UInt8, starts: Int64, offsets: Int32, out: Int32) -> int: ...
def copy_directories(payload: UInt8, starts: Int64, offsets: Int32, out: UInt8) -> int: ...
def write_partitions(
    version: int,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    leader_epoch: Int32,
    partition_epoch: Int32,
    ids: Int32,
    directories: UInt8,
    list_start: Int64,
    list_count: Int32,
    value_start: Int64,
    out: UInt8,
) -> int: ...
def write_changes(
    version: int,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    ids: Int32,
    directories: UInt8,
    list_start: Int64,
    list_count: Int32,
    value_start: Int64,
    out: UInt8,
) -> int: ...
