"""The naive twins of those kernels of ``_hosting.pyx`` that index who hosts what; ``_naive.py`` says what twins are."""

from __future__ import annotations

from kframe.model.columns import Int16, Int32, Int64, UInt8


def size_hosts(slot_start: Int32, replica_count: Int16, replica: Int16, last: Int32, offsets: Int64) -> int:
    """Bytes of each broker's rows, added up."""
    sizes = list(map(len, _steps_by_broker(slot_start, replica_count, replica, last)))
    offsets[:] = [sum(sizes[:broker]) for broker in range(len(sizes) + 1)]
    return sum(sizes)


def index_hosts(
    slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64, last: Int32, put: Int64, steps: UInt8
) -> int:
    """The rows that each broker hosts, broker by broker, as steps."""
    for broker, one in enumerate(_steps_by_broker(slot_start, replica_count, replica, last)):
        put[broker] = offsets[broker] + len(one)
        steps[offsets[broker] : put[broker]] = list(one)
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
