"""Entries measured a run of rows at a time: rows that follow on one another, of which there is nothing special to tell.

Such are most rows of most batches. Measured: together they take a fifth of the time that they take one by one.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memchr

from kframe.blocks cimport RUN

# Most slots that they are spread over.
cdef enum:
    SPREAD = 8 * RUN

# A shorter list's length takes as many bytes as that of an empty one.
cdef enum:
    LONG = 0x7F


cdef inline bint all_live(const uint8_t[::1] live) noexcept nogil:
    return live.shape[0] == 0 or memchr(&live[0], 0, live.shape[0]) == NULL


cdef inline bint unremarkable(
    Py_ssize_t row, const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const uint8_t[::1] replica_flags, uint8_t flags,
) noexcept nogil:
    """Whether RUN rows from ``row`` on have short lists and lie close together, in slots with none of ``flags``."""
    cdef Py_ssize_t k, first = slot_start[row], behind = slot_start[row + RUN - 1] + replica_count[row + RUN - 1]
    cdef int32_t outside = 0
    cdef int16_t longest = 0
    cdef uint8_t met = 0
    if not 0 <= behind - first <= SPREAD:
        return False
    for k in range(RUN):
        outside |= slot_start[row + k] - <int32_t> first
        outside |= <int32_t> behind - slot_start[row + k] - replica_count[row + k]
        longest |= isr_count[row + k] | replica_count[row + k]
    if outside < 0 or longest >= LONG:
        return False
    for k in range(first, behind):
        met |= replica_flags[k]
    return met & flags == 0


cdef inline int64_t size_run(
    Py_ssize_t row, Py_ssize_t empty, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    int32_t[::1] entry_size,
) noexcept nogil:
    """Measure the entries of RUN rows from ``row`` on, ``empty`` bytes each and two lists; return the sum."""
    cdef int32_t size, total = 0
    cdef Py_ssize_t k
    for k in range(row, row + RUN):
        size = <int32_t> empty + 4 * (isr_count[k] + replica_count[k])
        entry_size[k] = size
        total += size
    return total
