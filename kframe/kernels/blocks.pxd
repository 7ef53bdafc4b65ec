"""Uniformity checks: whether a kernel can process a block of rows together.

``count`` is the block size; callers pass a constant, so that the compiler can vectorize the loops. Addresses are taken
at the last entry, so that a debug build checks the far end.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t
from libc.string cimport memcmp

from kframe.kernels.types cimport broker_t

# Usual block size. GCC does not vectorize loops of 16 or fewer.
cdef enum:
    RUN = 32


cdef inline bint is_consecutive(const int32_t *positions, int count) noexcept nogil:
    """Whether positions are consecutive."""
    cdef int32_t mismatch = 0
    cdef int k
    if positions[count - 1] - positions[0] != count - 1:
        return False
    for k in range(count):
        mismatch |= positions[k] - positions[0] - k
    return mismatch == 0


cdef inline bint is_uniform(const uint8_t *states, int count) noexcept nogil:
    """Whether all states are equal."""
    cdef uint8_t mismatch = 0
    cdef int k
    for k in range(count):
        mismatch |= states[k] ^ states[0]
    return mismatch == 0


cdef inline int32_t uniform_width(
    Py_ssize_t row, int count, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
) noexcept nogil:
    """The number of replicas of each row from ``row`` on if it is the same for all and their slots are consecutive;
    else 0."""
    cdef const int32_t *starts = &slot_start[row + count - 1] - (count - 1)
    cdef const int16_t *widths = &replica_count[row + count - 1] - (count - 1)
    cdef int32_t gaps = 0
    cdef int16_t width_mismatch = 0
    cdef int k
    for k in range(count):
        width_mismatch |= widths[k] ^ widths[0]
    for k in range(count - 1):
        gaps |= (starts[k + 1] - starts[k]) ^ widths[0]
    return 0 if gaps or width_mismatch else widths[0]


cdef inline bint isrs_equal_replicas(
    Py_ssize_t row, int count, Py_ssize_t width, const int32_t[::1] slot_start, const int16_t[::1] isr_count,
    const broker_t[::1] replica, const broker_t[::1] isr,
) noexcept nogil:
    """Whether the ISRs of rows of a ``uniform_width``, not 0, equal their replica lists."""
    cdef const int16_t *members = &isr_count[row + count - 1] - (count - 1)
    cdef Py_ssize_t slots = count * width, last = slot_start[row] + slots - 1
    cdef int16_t mismatch = 0
    cdef int k
    for k in range(count):
        mismatch |= members[k] ^ <int16_t>width
    return mismatch == 0 and memcmp(
        &replica[last] - (slots - 1), &isr[last] - (slots - 1), slots * sizeof(broker_t)) == 0
