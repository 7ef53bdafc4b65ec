"""Whether rows lie as most rows do, so that a kernel can take a block of them together.

``count`` is how many are looked at; who calls these names a number, that the compiler may make vectors of the loops.
Addresses are those of the last entries, so that a debug build checks the far ends.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t
from libc.string cimport memcmp

from kframe.column cimport broker_t

# A usual block. GCC makes no vectors of loops of 16 and less.
cdef enum:
    RUN = 32


cdef inline bint follow(const int32_t *positions, int count) noexcept nogil:
    """Whether positions follow on one another."""
    cdef int32_t off = 0
    cdef int k
    if positions[count - 1] - positions[0] != count - 1:
        return False
    for k in range(count):
        off |= positions[k] - positions[0] - k
    return off == 0


cdef inline bint alike(const uint8_t *states, int count) noexcept nogil:
    """Whether states are the same."""
    cdef uint8_t off = 0
    cdef int k
    for k in range(count):
        off |= states[k] ^ states[0]
    return off == 0


cdef inline int32_t even_width(
    Py_ssize_t row, int count, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
) noexcept nogil:
    """How many replicas each of the rows from ``row`` on has, if all have as many and their slots follow on one
    another; else 0."""
    cdef const int32_t *starts = &slot_start[row + count - 1] - (count - 1)
    cdef const int16_t *widths = &replica_count[row + count - 1] - (count - 1)
    cdef int32_t astray = 0
    cdef int16_t uneven = 0
    cdef int k
    for k in range(count):
        uneven |= widths[k] ^ widths[0]
    for k in range(count - 1):
        astray |= (starts[k + 1] - starts[k]) ^ widths[0]
    return 0 if astray or uneven else widths[0]


cdef inline bint in_order(
    Py_ssize_t row, int count, Py_ssize_t width, const int32_t[::1] slot_start, const int16_t[::1] isr_count,
    const broker_t[::1] replica, const broker_t[::1] isr,
) noexcept nogil:
    """Whether the ISRs of rows of an ``even_width``, which is not 0, are their lists of replicas."""
    cdef const int16_t *members = &isr_count[row + count - 1] - (count - 1)
    cdef Py_ssize_t slots = count * width, last = slot_start[row] + slots - 1
    cdef int16_t uneven = 0
    cdef int k
    for k in range(count):
        uneven |= members[k] ^ <int16_t>width
    return uneven == 0 and memcmp(
        &replica[last] - (slots - 1), &isr[last] - (slots - 1), slots * sizeof(broker_t)) == 0
