"""Kernels of plans in stages: the schedule, and what the failure of a broker harms.

A reassignment ``i`` adds the brokers ``adding[add_offsets[i] .. add_offsets[i + 1]]``, which copy ``size[i]`` bytes
each from the broker ``source[i]``. ``members`` lists the reassignments by group: those of a group have the same
source and the same added brokers. Reference: ``reference/stages.py``.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kframe.kernels.failure_outcome cimport (
    NO_BROKER, OFFLINE, UNCLEAN_ELECTION, UNDER_MIN_ISR, PartitionRow, failure_outcome,
)
from kframe.kernels.scan cimport contains
from kframe.kernels.stage_rows cimport (
    ALONE, fits_disks, fits_limits, free_removed, promote_row, set_pressures, sort_groups, add_to_stage,
)
from kframe.kernels.types cimport broker_t


def schedule_stages(
    const int32_t[::1] group_offsets,    # IN    (g + 1,)
    const uint8_t[::1] rank,             # IN    (g,) groups of a lower rank come first; 3: each alone in its stage
    const int32_t[::1] add_offsets,      # IN    (k + 1,)
    const int32_t[::1] adding,           # IN    broker indexes
    const int32_t[::1] remove_offsets,   # IN    (k + 1,)
    const int32_t[::1] removing,         # IN    brokers whose replicas are deleted after the stage
    const int32_t[::1] source,           # IN    (k,)
    const int64_t[::1] size,             # IN    (k,)
    const int64_t[::1] limits,           # IN    (4,) replicas a broker, bytes a broker, replicas, bytes: in a stage
    int32_t[::1] members,                # INOUT (k,)
    int32_t[::1] heads,                  # INOUT (g,) first pending position of each group in ``members``
    int32_t[::1] queue,                  # INOUT (g,) group numbers
    int32_t[:, ::1] scratch,             # OUT   (2, g)
    int32_t[::1] starts,                 # OUT   (129,) scratch
    int32_t[::1] staged,                  # OUT   (k,) scratch
    int64_t[::1] total,                  # OUT   (2,) scratch
    int64_t[:, ::1] load,                # OUT   (4, b) scratch: replicas in and out, bytes in and out
    int64_t[:, ::1] pending,             # INOUT (4, b) the same of all reassignments without a stage
    double[::1] pressure,                # OUT   (b,) scratch
    int64_t[::1] free,                   # INOUT (b,) bytes of disk
    int32_t[::1] stage,                  # INOUT (k,) -1; the stage from 0, unchanged where none has room on its disks
):
    """Schedule reassignments in stages; return how many stages.

    A stage takes the groups by rank and by the stages that their brokers need at least, and of each group as many
    reassignments as fit. It frees the space of removed replicas at its end. Cost O(k * r + stages * g * r).
    """
    cdef Py_ssize_t i, active = queue.shape[0], count
    cdef int32_t group, row, number = 0
    with nogil:
        while True:
            active = sort_groups(
                active, group_offsets, rank, add_offsets, adding, source, pressure,
                set_pressures(pending, limits, pressure), members, heads, queue, scratch[0], scratch[1], starts)
            load[:, :], total[:], count = 0, 0, 0
            for i in range(active):
                group = scratch[1, i]
                while heads[group] < group_offsets[group + 1]:
                    row = members[heads[group]]
                    if not fits_disks(row, add_offsets, adding, size, free) or (
                        count > 0 if rank[group] == ALONE
                        else not fits_limits(row, add_offsets, adding, source, size, limits, load, total)
                    ):
                        break
                    add_to_stage(row, add_offsets, adding, source, size, load, pending, total, free)
                    stage[row] = number
                    staged[count] = row
                    count += 1
                    heads[group] += 1
                if count == 1 and rank[group] == ALONE:
                    break
            if count == 0 and not promote_row(
                active, scratch[1], group_offsets, add_offsets, adding, size, free, members, heads
            ):
                break
            free_removed(count, staged, remove_offsets, removing, size, free)
            number += count > 0
    return number


cdef inline PartitionRow row_of(
    Py_ssize_t row, const broker_t[::1] leader, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const int32_t[::1] min_isr, const uint8_t[::1] unclean,
) noexcept nogil:
    cdef PartitionRow partition
    partition.start, partition.replicas, partition.members = slot_start[row], replica_count[row], isr_count[row]
    partition.leader, partition.min_isr, partition.unclean = leader[row], min_isr[row], unclean[row]
    partition.has_state, partition.was_offline, partition.was_under_min_isr = True, False, False
    return partition


cdef inline int harm_of(
    PartitionRow before, const broker_t[::1] replica, const broker_t[::1] isr, PartitionRow after,
    const broker_t[::1] new_replica, const broker_t[::1] new_isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t broker,
) noexcept nogil:
    """The bits of the outcome that a failure has after, but not before."""
    return failure_outcome(
        after, new_replica, new_isr, registered, rack, broker, NO_BROKER, NO_BROKER
    ).bits & ~failure_outcome(before, replica, isr, registered, rack, broker, NO_BROKER, NO_BROKER).bits


cdef inline void count_harm(int32_t[:, :, ::1] harm, int32_t group, Py_ssize_t line, int bits) noexcept nogil:
    harm[group, line, 0] += (bits & OFFLINE) != 0
    harm[group, line, 1] += (bits & UNDER_MIN_ISR) != 0
    harm[group, line, 2] += (bits & UNCLEAN_ELECTION) != 0


def count_harmed(
    const int32_t[::1] group,            # IN    (k,) a number of each partition: its stage
    const broker_t[::1] leader,          # IN    (k,) before
    const int32_t[::1] slot_start,       # IN    (k,)
    const int16_t[::1] replica_count,    # IN    (k,)
    const int16_t[::1] isr_count,        # IN    (k,)
    const broker_t[::1] replica,         # IN    (s,)
    const broker_t[::1] isr,             # IN    (s,)
    const int32_t[::1] min_isr,          # IN    (k,) effective min.insync.replicas
    const broker_t[::1] new_leader,      # IN    (k,) the same after
    const int32_t[::1] new_slot_start,   # IN    (k,)
    const int16_t[::1] new_replica_count,  # IN  (k,)
    const int16_t[::1] new_isr_count,    # IN    (k,)
    const broker_t[::1] new_replica,     # IN    (t,)
    const broker_t[::1] new_isr,         # IN    (t,)
    const int32_t[::1] new_min_isr,      # IN    (k,)
    const uint8_t[::1] unclean,          # IN    (k,) 1 where unclean elections are allowed
    const uint8_t[::1] registered,       # IN    (b,)
    const int32_t[::1] rack,             # IN    (b,) -1: no rack fails
    int32_t[:, :, ::1] harm,             # INOUT (groups, b + 1, 3) offline, under min ISR, uncleanly led
):
    """Count the partitions that a change harms, by the broker that fails; return how many are harmed without failure.

    Line ``b`` counts what is so without a failure, after but not before; line ``a`` what is so only if broker ``a``
    fails, after but not before. Outcomes are those of the sweep (``failure_outcome.pxd``). Cost O(k * r^2).
    """
    cdef Py_ssize_t i, k, last = harm.shape[1] - 1, harmed = 0
    cdef PartitionRow before, after
    cdef int32_t broker
    cdef int baseline
    with nogil:
        for i in range(group.shape[0]):
            before = row_of(i, leader, slot_start, replica_count, isr_count, min_isr, unclean)
            after = row_of(i, new_leader, new_slot_start, new_replica_count, new_isr_count, new_min_isr, unclean)
            baseline = harm_of(before, replica, isr, after, new_replica, new_isr, registered, rack, NO_BROKER)
            count_harm(harm, group[i], last, baseline)
            harmed += (baseline & (OFFLINE | UNDER_MIN_ISR | UNCLEAN_ELECTION)) != 0
            for k in range(before.replicas + after.replicas):
                if k < after.replicas:
                    broker = new_replica[after.start + k]
                else:
                    broker = replica[before.start + k - after.replicas]
                    if contains(new_replica, after.start, after.replicas, broker):
                        continue
                if registered[broker]:
                    count_harm(harm, group[i], broker, ~baseline & harm_of(
                        before, replica, isr, after, new_replica, new_isr, registered, rack, broker))
    return harmed
