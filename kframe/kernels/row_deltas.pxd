"""The rows of a broker as varint deltas, for the replica index.

A delta takes seven bits a byte, the lowest first, with the highest bit set in all bytes but the last.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t

from kframe.kernels.prefetch cimport KFRAME_PREFETCH
from kframe.kernels.types cimport broker_t

cdef enum:
    # The usual replication factor: unrolled, it takes less time than a loop.
    COMMON_REPLICAS = 3

cdef enum:
    # Bytes to prefetch ahead of a write. Writes go to as many places as there are brokers, more than the hardware
    # tracks. Measured: without it, ten million replicas and more take half as long again.
    DELTA_SLACK = 64


cdef inline Py_ssize_t max_delta_bytes(Py_ssize_t count, Py_ssize_t rows) noexcept nogil:
    """The most bytes that ``count`` deltas over ``rows`` rows take: few of them can exceed 7, 14, 21 or 28 bits."""
    return count + min(count, rows >> 7) + min(count, rows >> 14) + min(count, rows >> 21) + min(count, rows >> 28)


cdef inline void put_delta(
    Py_ssize_t row, broker_t broker, int32_t[::1] last, int64_t[::1] ends, uint8_t[::1] deltas,
) noexcept nogil:
    """Write the difference to the broker's previous row. DELTA_SLACK bytes follow the last one."""
    cdef Py_ssize_t offset = ends[broker]
    cdef uint32_t delta = <uint32_t>row - <uint32_t>last[broker]
    last[broker] = <int32_t>row
    KFRAME_PREFETCH(&deltas[offset + DELTA_SLACK])
    while delta >= 0x80:
        deltas[offset] = <uint8_t>(delta & 0x7F | 0x80)
        delta >>= 7
        offset += 1
    deltas[offset] = <uint8_t>delta
    ends[broker] = offset + 1


cdef inline bint add_delta(uint8_t byte, uint32_t *row, int *shift, int32_t *out) noexcept nogil:
    """Add one byte of a delta to the previous row; return whether the delta is complete."""
    cdef bint complete = byte < 0x80
    row[0] += <uint32_t>(byte & 0x7F) << shift[0]
    shift[0] = 0 if complete else shift[0] + 7
    out[0] = <int32_t>row[0]
    return complete
