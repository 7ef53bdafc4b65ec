"""The naive twins of those kernels of ``_hosting.pyx`` that say anew, or index, who hosts what.

``_naive.py`` says what twins are.
"""

from __future__ import annotations

from typing import Final

from kframe.model.columns import Int16, Int32, Int64, UInt8
from kframe.model.ids import ReplicaFlag, ReplicaState

#: Bytes that the kernel asks for ahead of those that it writes.
SPARE: Final = 64


def size_hosts(slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64) -> int:
    """A byte for each replica, and one more for as many as can be 128, 16,384 and so on rows from the one before."""
    rows, held = len(slot_start), [0] * (len(offsets) - 1)
    for start, count in zip(slot_start.tolist(), replica_count.tolist(), strict=True):
        for broker in replica[start : start + count].tolist():
            held[broker] += 1
    sizes = [count + sum(min(count, rows // 128**more) for more in (1, 2, 3, 4)) for count in held]
    offsets[:] = [sum(sizes[:broker]) for broker in range(len(sizes) + 1)]
    return sum(sizes) + SPARE


def index_hosts(
    slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64, last: Int32, ends: Int64, steps: UInt8
) -> int:
    """The rows that each broker hosts, broker by broker, as steps."""
    for broker, one in enumerate(_steps_by_broker(slot_start, replica_count, replica, last)):
        ends[broker] = offsets[broker] + len(one)
        steps[offsets[broker] : ends[broker]] = list(one)
    return int(replica_count.sum())


def _steps_by_broker(slot_start: Int32, replica_count: Int16, replica: Int16, last: Int32) -> list[bytearray]:
    on = [bytearray() for _ in last]
    last[:] = 0
    for row in range(len(slot_start)):
        start = int(slot_start[row])
        for broker in replica[start : start + int(replica_count[row])].tolist():
            step = row - int(last[broker])
            while step >= 128:
                on[broker].append(step % 128 + 128)
                step //= 128
            on[broker].append(step)
            last[broker] = row
    return on


def read_hosts(steps: UInt8, rows: Int32) -> int:
    """Each step is a number whose last byte is below 128; the rows are their sums."""
    found = row = step = 0
    scale = 1
    for one in steps.tolist():
        step, scale = step + one % 128 * scale, scale * 128
        if one < 128:
            row, step, scale = row + step, 0, 1
            rows[found] = row
            found += 1
    return found


def assign_replicas(
    rows: Int32, offsets: Int32, values: Int32, flags: UInt8, slot_start: Int32, replica_count: Int16, replica: Int16,
    replica_state: UInt8, replica_flags: UInt8, old_replica: Int32, old_state: UInt8, old_flags: UInt8, departed: Int32,
) -> int:  # fmt: skip
    """The new list first, then who left it; states go with their replicas."""
    for i, row in enumerate(rows.tolist()):
        start, old = int(slot_start[row]), int(replica_count[row])
        here = slice(start, start + old)
        states = dict(zip(replica[here].tolist(), replica_state[here].tolist(), strict=True))
        dirs = dict(zip(states, (replica_flags[here] & ReplicaFlag.OFFLINE_DIR).tolist(), strict=True))
        wanted = values[offsets[i] : offsets[i + 1]].tolist()
        same = _alike(list(states), wanted)
        old_replica[same:old], old_state[same:old] = list(states)[same:], list(states.values())[same:]
        old_flags[same:old] = list(dirs.values())[same:]
        left = [broker for broker in states if broker not in wanted]
        for place, broker in enumerate(wanted + left):
            replica[start + place] = broker
            replica_state[start + place] = states.get(broker, ReplicaState.NON_EXISTENT)
            given = int(flags[offsets[i] + place]) if place < len(wanted) else 0
            replica_flags[start + place] = given | dirs.get(broker, 0)
        replica_count[row], departed[i] = len(wanted), len(left)
    return int(departed.sum())


def _alike(one: list[int], other: list[int]) -> int:
    """How many values two lists begin with that are the same."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same
