"""Counting the replicas of rows by broker."""

from libc.stdint cimport int16_t, int32_t

from kframe.kernels.blocks cimport RUN
from kframe.kernels.types cimport broker_t


cdef inline void count_uniform_rows(
    const broker_t[::1] replica, Py_ssize_t start, Py_ssize_t count, int32_t[::1] first, int32_t[::1] others,
) noexcept nogil:
    """Count the first replica and the other replicas of RUN rows with ``count`` replicas each."""
    cdef Py_ssize_t position, k
    for k in range(RUN):
        first[replica[start + k * count]] += 1
    for position in range(start + 1, start + count):
        for k in range(RUN):
            others[replica[position + k * count]] += 1


cdef inline void count_rows(
    Py_ssize_t row, Py_ssize_t stop, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, int32_t[::1] preferred,
    int32_t[::1] replicas, int32_t[::1] in_sync,
) noexcept nogil:
    """Count the replicas of rows in any state. The caller adds ``preferred`` to ``replicas`` and ``in_sync`` later."""
    cdef Py_ssize_t k, start
    for row in range(row, stop):
        start = slot_start[row]
        if replica_count[row] > 0:
            preferred[replica[start]] += 1
            in_sync[replica[start]] -= 1
        for k in range(start + 1, start + replica_count[row]):
            replicas[replica[k]] += 1
        for k in range(start, start + isr_count[row]):
            in_sync[isr[k]] += 1
