"""Counting the replicas of rows, many at a time where they are healthy."""

from libc.stdint cimport int16_t, int32_t

from kframe.blocks cimport RUN
from kframe.column cimport broker_t


cdef inline void count_whole(
    const broker_t[::1] replica, Py_ssize_t start, Py_ssize_t count, int32_t[::1] first, int32_t[::1] others,
) noexcept nogil:
    """Count who is the first of ``count`` replicas in RUN rows, and who another."""
    cdef Py_ssize_t place, k
    for k in range(RUN):
        first[replica[start + k * count]] += 1
    for place in range(start + 1, start + count):
        for k in range(RUN):
            others[replica[place + k * count]] += 1


cdef inline void count_rows(
    Py_ssize_t row, Py_ssize_t stop, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, int32_t[::1] preferred,
    int32_t[::1] hosts, int32_t[::1] in_sync,
) noexcept nogil:
    """Count the replicas of rows in any state. Both counts of who is the first are to go up by ``preferred`` later."""
    cdef Py_ssize_t k, start
    for row in range(row, stop):
        start = slot_start[row]
        if replica_count[row] > 0:
            preferred[replica[start]] += 1
            in_sync[replica[start]] -= 1
        for k in range(start + 1, start + replica_count[row]):
            hosts[replica[k]] += 1
        for k in range(start, start + isr_count[row]):
            in_sync[isr[k]] += 1
