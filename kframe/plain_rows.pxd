"""Finding rows that selectors can be asked of a block at a time."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.blocks cimport alike, even_width, follow
from kframe.scan cimport BLOCK


cdef inline int32_t plain_width(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const uint8_t[::1] allowed,
) noexcept nogil:
    """The ``even_width`` of the BLOCK rows from position ``i`` on, if these rows follow on one another, and none is
    ``allowed`` an unclean leader; else 0."""
    cdef Py_ssize_t last = i + BLOCK - 1
    if last >= rows.shape[0] or not follow(&rows[last] - BLOCK + 1, BLOCK):
        return 0
    if allowed[i] or not alike(&allowed[last] - BLOCK + 1, BLOCK):
        return 0
    return even_width(rows[i], BLOCK, slot_start, replica_count)
