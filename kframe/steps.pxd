"""A broker's rows as steps from one to the next, for the kernels that index who hosts what.

A step takes seven bits a byte, the lowest first, with the highest bit set in all bytes but the last.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t

from kframe.column cimport broker_t
from kframe.prefetch cimport KFRAME_PREFETCH

cdef enum:
    # What most rows have. Three instructions in a row take less time than a loop that runs three times.
    USUAL = 3

cdef enum:
    # So many bytes ahead memory is asked for where steps are written: that is in as many places as there are brokers,
    # more than the processor follows. Measured: without it ten million replicas and more take half as long again.
    SPARE = 64


cdef inline Py_ssize_t room_for(Py_ssize_t count, Py_ssize_t rows) noexcept nogil:
    """The most bytes that ``count`` of so many rows take: no more steps than these can be of 128 rows, 128 * 128 ..."""
    return count + min(count, rows >> 7) + min(count, rows >> 14) + min(count, rows >> 21) + min(count, rows >> 28)


cdef inline void put_step(
    Py_ssize_t row, broker_t broker, int32_t[::1] last, int64_t[::1] ends, uint8_t[::1] steps,
) noexcept nogil:
    """Write how far a row is from the one before it. There are SPARE bytes more than are written."""
    cdef Py_ssize_t at = ends[broker]
    cdef uint32_t step = <uint32_t>row - <uint32_t>last[broker]
    last[broker] = <int32_t>row
    KFRAME_PREFETCH(&steps[at + SPARE])
    while step >= 0x80:
        steps[at] = <uint8_t>(step & 0x7F | 0x80)
        step >>= 7
        at += 1
    steps[at] = <uint8_t>step
    ends[broker] = at + 1


cdef inline bint add_step(uint8_t byte, uint32_t *row, int *shift, int32_t *out) noexcept nogil:
    """Add one byte of a step to the row before; return whether it was the last one, so that the row stands."""
    cdef bint whole = byte < 0x80
    row[0] += <uint32_t>(byte & 0x7F) << shift[0]
    shift[0] = 0 if whole else shift[0] + 7
    out[0] = <int32_t>row[0]
    return whole
