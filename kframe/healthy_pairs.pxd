"""Pairs of brokers of healthy rows; ``healthy.pxd`` says what those are, and ``tally_pairs`` what is noted of them."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

from kframe.column cimport broker_t
from kframe.fate cimport NO_STATE
from kframe.healthy cimport ODD, SPARE, TOGETHER, all_in_sync, follower, racks_of, racks_of_threes, third


cdef inline void note_beside(
    Py_ssize_t spare, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica,
    int32_t[:, :, ::1] beside,
) noexcept nogil:
    """Count the pairs of replicas of a healthy row, but for those of its leader and the two that follow."""
    cdef Py_ssize_t j, k, leads = start
    cdef int32_t here, second = follower(leader, start, replicas, replica), last = third(leader, start, replica)
    while replica[leads] != leader:
        leads += 1
    for k in range(start + 2, start + replicas - 1):
        here = replica[k + (leads <= k)]
        beside[spare, leader, here] += 1
        beside[spare, second, here] += 1
        beside[spare, last, here] += 1
        for j in range(start + 2, k):
            beside[spare, replica[j + (leads <= j)], here] += 1


cdef inline bint note_healthy(
    Py_ssize_t at, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, int32_t least,
    const broker_t[::1] replica, const int64_t[::1] rack_bit, int64_t[::1] third_key, int32_t[:, :, ::1] beside,
) noexcept nogil:
    """Note the pairs of a row whose replicas are all in sync; return whether it is not healthy."""
    cdef int64_t spare = min(replicas - least, SPARE), b = rack_bit.shape[0], second
    if racks_of(leader, start, replicas, replica, rack_bit) == ODD:
        return True
    if replicas >= 3:
        second = follower(leader, start, replicas, replica)
        third_key[at] = ((spare * b + leader) * b + second) * b + third(leader, start, replica)
        if replicas > 3 and spare < SPARE:
            note_beside(spare, leader, start, replicas, replica, beside)
    return False


cdef inline uint32_t note_alike(
    Py_ssize_t row, Py_ssize_t at, Py_ssize_t start, Py_ssize_t replicas, int32_t least,
    const broker_t[::1] leader, const broker_t[::1] replica, const int64_t[::1] rack_bit, int64_t[::1] third_key,
    int32_t[:, :, ::1] beside,
) noexcept nogil:
    """Note the pairs of the healthy ones of rows that are alike; return a bit for each other one."""
    cdef Py_ssize_t k
    cdef uint32_t odd = 0
    cdef bint found
    cdef int64_t b = rack_bit.shape[0], key
    least = min(least, <int32_t>replicas)
    if replicas == 3 and racks_of_threes(row, start, leader, replica, rack_bit) != ODD:
        key = (3 - least) * b
        for k in range(TOGETHER):
            third_key[at + k] = ((key + replica[start]) * b + replica[start + 1]) * b + replica[start + 2]
            start += 3
        return 0
    for k in range(TOGETHER):
        third_key[at + k] = -1
        if replicas == 3:  # the compiler shall know the usual number
            found = note_healthy(at + k, leader[row + k], start + 3 * k, 3, least, replica, rack_bit, third_key, beside)
        else:
            found = note_healthy(at + k, leader[row + k], start + replicas * k, replicas, least, replica, rack_bit,
                                 third_key, beside)
        odd |= <uint32_t>found << k
    return odd


cdef inline uint32_t note_each(
    Py_ssize_t row, Py_ssize_t at, Py_ssize_t stop, int32_t min_insync, const broker_t[::1] leader,
    const int32_t[::1] partition_epoch, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, const int64_t[::1] rack_bit,
    int64_t[::1] third_key, int32_t[:, :, ::1] beside,
) noexcept nogil:
    """Note the pairs of the healthy ones of rows of one topic; return a bit for each other one."""
    cdef Py_ssize_t k, start, replicas
    cdef int32_t least
    cdef uint32_t odd = 0
    for k in range(stop - row):
        third_key[at + k] = -1
        start, replicas = slot_start[row + k], replica_count[row + k]
        least = min(min_insync, <int32_t>replicas)
        if isr_count[row + k] != replicas or partition_epoch[row + k] == NO_STATE or least <= 0 or not all_in_sync(
                start, replicas, replica, isr) or note_healthy(at + k, leader[row + k], start, replicas, least, replica,
                                                               rack_bit, third_key, beside):
            odd |= <uint32_t>1 << k
    return odd
