"""Failures of two brokers that a healthy row names; see ``healthy_rows.pxd`` and ``_sweep.count_pair_failures``."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

from kframe.kernels.constants cimport NO_STATE
from kframe.kernels.healthy_rows cimport (
    HEALTHY_BLOCK, IRREGULAR, SPARE_MAX, isr_equals_replicas, rack_layout, rack_layout_rf3, second_successor, successor,
)
from kframe.kernels.types cimport broker_t


cdef inline void record_further_pairs(
    Py_ssize_t spare_members, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica,
    int32_t[:, :, ::1] further_pairs,
) noexcept nogil:
    """Count the pairs of replicas of a healthy row except for those of its leader and two successors."""
    cdef Py_ssize_t j, k, leader_slot = start
    cdef int32_t broker, second = successor(
        leader, start, replicas, replica
    ), third = second_successor(leader, start, replica)
    while replica[leader_slot] != leader:
        leader_slot += 1
    for k in range(start + 2, start + replicas - 1):
        broker = replica[k + (leader_slot <= k)]
        further_pairs[spare_members, leader, broker] += 1
        further_pairs[spare_members, second, broker] += 1
        further_pairs[spare_members, third, broker] += 1
        for j in range(start + 2, k):
            further_pairs[spare_members, replica[j + (leader_slot <= j)], broker] += 1


cdef inline bint record_healthy_row(
    Py_ssize_t position, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, int32_t min_isr,
    const broker_t[::1] replica, const int64_t[::1] rack_bit, int64_t[::1] third_key, int32_t[:, :, ::1] further_pairs,
) noexcept nogil:
    """Record the pairs of a row with a full ISR; return whether it is irregular."""
    cdef int64_t spare_members = min(replicas - min_isr, SPARE_MAX), b = rack_bit.shape[0], second
    if rack_layout(leader, start, replicas, replica, rack_bit) == IRREGULAR:
        return True
    if replicas >= 3:
        second = successor(leader, start, replicas, replica)
        third_key[position] = ((spare_members * b + leader) * b + second) * b + second_successor(leader, start, replica)
        if replicas > 3 and spare_members < SPARE_MAX:
            record_further_pairs(spare_members, leader, start, replicas, replica, further_pairs)
    return False


cdef inline uint32_t record_uniform_block(
    Py_ssize_t row, Py_ssize_t position, Py_ssize_t start, Py_ssize_t replicas, int32_t min_isr,
    const broker_t[::1] leader, const broker_t[::1] replica, const int64_t[::1] rack_bit, int64_t[::1] third_key,
    int32_t[:, :, ::1] further_pairs,
) noexcept nogil:
    """Record the pairs of the healthy rows of a block; return a bit for each irregular row."""
    cdef Py_ssize_t k
    cdef uint32_t irregular = 0
    cdef bint is_irregular
    cdef int64_t b = rack_bit.shape[0], key
    min_isr = min(min_isr, <int32_t>replicas)
    if replicas == 3 and rack_layout_rf3(row, start, leader, replica, rack_bit) != IRREGULAR:
        key = (3 - min_isr) * b
        for k in range(HEALTHY_BLOCK):
            third_key[position + k] = ((key + replica[start]) * b + replica[start + 1]) * b + replica[start + 2]
            start += 3
        return 0
    for k in range(HEALTHY_BLOCK):
        third_key[position + k] = -1
        if replicas == 3:  # a constant, so that the compiler can unroll
            is_irregular = record_healthy_row(
                position + k, leader[row + k], start + 3 * k, 3, min_isr, replica, rack_bit, third_key, further_pairs
            )
        else:
            is_irregular = record_healthy_row(
                position + k, leader[row + k], start + replicas * k, replicas, min_isr, replica, rack_bit, third_key,
                further_pairs
            )
        irregular |= <uint32_t>is_irregular << k
    return irregular


cdef inline uint32_t record_each_row(
    Py_ssize_t row, Py_ssize_t position, Py_ssize_t stop, int32_t min_insync, const broker_t[::1] leader,
    const int32_t[::1] partition_epoch, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, const int64_t[::1] rack_bit,
    int64_t[::1] third_key, int32_t[:, :, ::1] further_pairs,
) noexcept nogil:
    """Record the pairs of the healthy rows of one topic; return a bit for each irregular row."""
    cdef Py_ssize_t k, start, replicas
    cdef int32_t min_isr
    cdef uint32_t irregular = 0
    cdef bint has_full_isr
    for k in range(stop - row):
        third_key[position + k] = -1
        start, replicas = slot_start[row + k], replica_count[row + k]
        min_isr = min(min_insync, <int32_t>replicas)
        has_full_isr = isr_count[row + k] == replicas and partition_epoch[row + k] != NO_STATE and min_isr > 0
        if not has_full_isr or not isr_equals_replicas(start, replicas, replica, isr) or record_healthy_row(
            position + k, leader[row + k], start, replicas, min_isr, replica, rack_bit, third_key, further_pairs
        ):
            irregular |= <uint32_t>1 << k
    return irregular
