"""Kernels of reassignments: new assignments, their checks, and how far running ones are.

Conventions and recurring arguments: ``kframe/_core.pyx``. Reference: ``reference/reassignments.py``.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.constants cimport ADDING, REMOVING
from kframe.kernels.prefetch cimport is_sparse, prefetch_flags, prefetch_replicas_and_flags, prefetch_slots
from kframe.kernels.scan cimport contains
from kframe.kernels.types cimport broker_t


cdef inline bint in_origin(
    const broker_t[::1] replica, const uint8_t[::1] replica_status, Py_ssize_t start, Py_ssize_t count, int32_t broker,
) noexcept nogil:
    """Whether the broker has a replica that is not being added."""
    cdef Py_ssize_t k
    for k in range(start, start + count):
        if replica[k] == broker:
            return (replica_status[k] & ADDING) == 0
    return False


cdef inline bint in_list(
    const int32_t[::1] values, Py_ssize_t start, Py_ssize_t end, int32_t value
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, end):
        if values[k] == value:
            return True
    return False


def mark_invalid_targets(
    const int32_t[::1] rows,             # IN   (k,) -1 for a partition that is unknown
    const int32_t[::1] target_offsets,   # IN   (k + 1,) where each row's target begins in targets
    const int32_t[::1] targets,          # IN   (m,) broker indexes; -1 for a broker that is unknown
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] invalid,                # OUT  (k,)
):
    """Mark targets that are empty, repeat a broker, or add one that is unknown or not live; return how many.

    A replica that is being added counts as added (Kafka 3.9 ``validateReplicas``). Cost O(k * r^2).
    """
    cdef Py_ssize_t i, j, row, matches = 0
    cdef int32_t broker
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            invalid[i] = target_offsets[i] == target_offsets[i + 1]
            for j in range(target_offsets[i], target_offsets[i + 1]):
                broker = targets[j]
                if broker < 0 or in_list(targets, target_offsets[i], j, broker) or not (
                    live[broker]
                    or row >= 0 and in_origin(replica, replica_status, slot_start[row], replica_count[row], broker)
                ):
                    invalid[i] = 1
                    break
            matches += invalid[i]
    return matches


def plan_reassignments(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] target_offsets,   # IN   (k + 1,) where each row's target begins in targets
    const int32_t[::1] targets,          # IN   (m,) broker indexes
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    int32_t[::1] offsets,                # OUT  (k + 1,) where each row's list begins in values and flags
    int32_t[::1] values,                 # OUT  (m + sum of replica_count of rows,) broker indexes
    uint8_t[::1] flags,                  # OUT  (m + sum of replica_count of rows,) ReplicaFlag bits
):
    """List the assignments that lead rows to their targets; return how many replicas.

    A list is the target, a repeated broker once, then the other replicas of the origin. A replica of the target that
    is not in the origin is ADDING; one of the origin that is not in the target is REMOVING. Cost O(k * r^2).
    """
    cdef Py_ssize_t i, j, k, row, filled = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        offsets[0] = 0
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas_and_flags(rows, i, slot_start, replica_count, replica, replica_status)
            row = rows[i]
            for j in range(target_offsets[i], target_offsets[i + 1]):
                if in_list(targets, target_offsets[i], j, targets[j]):
                    continue
                values[filled] = targets[j]
                flags[filled] = 0 if in_origin(
                    replica, replica_status, slot_start[row], replica_count[row], targets[j]) else ADDING
                filled += 1
            for k in range(slot_start[row], slot_start[row] + replica_count[row]):
                if replica_status[k] & ADDING or in_list(
                        targets, target_offsets[i], target_offsets[i + 1], replica[k]):
                    continue
                values[filled], flags[filled] = replica[k], REMOVING
                filled += 1
            offsets[i + 1] = <int32_t>filled
    return filled


def mark_reassignment_progress(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    uint8_t[::1] running,                # OUT  (k,) 1 where a replica is being added or removed
    uint8_t[::1] reached,                # OUT  (k,) 1 where each replica that is not being removed is in the ISR
):
    """Mark rows with a running reassignment, and rows whose target is in sync; return how many run. Cost O(k * r^2)."""
    cdef Py_ssize_t i, k, row, start, matches = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
            row = rows[i]
            start = slot_start[row]
            running[i], reached[i] = 0, 1
            for k in range(start, start + replica_count[row]):
                if replica_status[k] & (ADDING | REMOVING):
                    running[i] = 1
                if reached[i] and not replica_status[k] & REMOVING and not contains(
                        isr, start, isr_count[row], replica[k]):
                    reached[i] = 0
            matches += running[i]
    return matches


def list_flagged(
    const int32_t[::1] rows,             # IN   (k,)
    int flags,                    # IN   ReplicaFlag bits
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    int32_t[::1] replica_row,            # OUT  (sum of replica_count of rows,) row of each such replica
    int32_t[::1] positions,              # OUT  (sum of replica_count of rows,) its position in the row's list
):
    """List the replicas of rows that have one of the flags; return how many. Cost O(k * r)."""
    cdef Py_ssize_t i, k, row, start, matches = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_flags(rows, i, slot_start, replica_count, replica_status)
            row = rows[i]
            start = slot_start[row]
            for k in range(replica_count[row]):
                if replica_status[start + k] & flags:
                    replica_row[matches], positions[matches] = <int32_t>row, <int32_t>k
                    matches += 1
    return matches
