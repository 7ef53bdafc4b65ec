"""Finding rows that lie as most rows do, a block at a time."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.scan cimport BLOCK, alike, follow


cdef inline int32_t plain_width(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const uint8_t[::1] allowed,
) noexcept nogil:
    """How many replicas each of the BLOCK rows from position ``i`` on has, if these rows and their slots follow on one
    another, all have as many, and none is ``allowed`` an unclean leader; else 0."""
    cdef const int32_t *starts
    cdef const int16_t *counts
    cdef Py_ssize_t last = i + BLOCK - 1
    cdef int32_t astray = 0
    cdef int16_t uneven = 0
    cdef int k
    if last >= rows.shape[0] or not follow(&rows[last] - BLOCK + 1):
        return 0
    if allowed[i] or not alike(&allowed[last] - BLOCK + 1):
        return 0
    starts = &slot_start[rows[last]] - BLOCK + 1
    counts = &replica_count[rows[last]] - BLOCK + 1
    for k in range(BLOCK):
        uneven |= counts[k] ^ counts[0]
    for k in range(BLOCK - 1):
        astray |= (starts[k + 1] - starts[k]) ^ counts[0]
    return 0 if astray or uneven else counts[0]
