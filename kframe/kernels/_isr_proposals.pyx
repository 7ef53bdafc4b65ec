"""The kernel that checks ISRs proposed by leaders.

Conventions and recurring arguments: ``kframe/_core.pyx``. Reference: ``reference/isr_proposals.py``.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.constants cimport (
    INELIGIBLE_MEMBER, MALFORMED, NEWER_EPOCH, NO_STATE, OLDER_LEADER_EPOCH, OLDER_PARTITION_EPOCH,
    PARTITION_RECOVERING, RECOVERING, REPEATED, STATELESS, VALID,
)
from kframe.kernels.prefetch cimport is_sparse, prefetch_states
from kframe.kernels.types cimport broker_t


cdef inline bint is_stored_isr(
    const int32_t[::1] isr_values, Py_ssize_t first, Py_ssize_t count, const broker_t[::1] isr, Py_ssize_t start
) noexcept nogil:
    """Whether the proposed ISR of ``count`` members begins as the stored one, in the same order."""
    cdef Py_ssize_t k
    for k in range(count):
        if isr_values[first + k] != isr[start + k]:
            return False
    return True


cdef inline bint is_eligible(
    const int32_t[::1] isr_values, const uint8_t[::1] refused_members, Py_ssize_t first, Py_ssize_t end,
    const uint8_t[::1] eligible,
) noexcept nogil:
    """Whether every member is an eligible broker, and none is refused."""
    cdef Py_ssize_t k
    for k in range(first, end):
        if isr_values[k] < 0 or not eligible[isr_values[k]] or refused_members[k]:
            return False
    return True


def check_isr_proposals(
    const int32_t[::1] rows,             # IN   (k,) -1 for a partition that is unknown
    int sender,                          # IN   the broker index of the leader
    const int32_t[::1] new_leader_epoch,     # IN   (k,)
    const int32_t[::1] new_partition_epoch,  # IN   (k,)
    const uint8_t[::1] new_recovery,     # IN   (k,)
    const int32_t[::1] isr_offsets,      # IN   (k + 1,) where each row's ISR begins in isr_values
    const int32_t[::1] isr_values,       # IN   (m,) broker indexes; -1 for a broker that is unknown
    const uint8_t[::1] refused_members,  # IN   (m,) 1 for members that are refused for another reason
    const uint8_t[::1] malformed,        # IN   (k,) 1 for proposals that are malformed for another reason
    const uint8_t[::1] eligible,         # IN   (b,) 1 for brokers that may be members
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] isr,             # IN   (s,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] leader_epoch,     # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const uint8_t[::1] status,           # IN   (n,)
    uint8_t[::1] check,                  # OUT  (k,) ProposalCheck
):
    """List the first check that applies to each proposal, VALID if none does; return how many are valid.

    Kafka 3.9 ``tryProcessAlterPartition``. Cost O(k * r).
    """
    cdef Py_ssize_t i, row, first, count, matches = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_states(rows, i, slot_start, isr_count, isr, leader, leader_epoch, partition_epoch, status)
            row, first = rows[i], isr_offsets[i]
            count = isr_offsets[i + 1] - first
            if row < 0 or partition_epoch[row] == NO_STATE:
                check[i] = STATELESS
            elif new_partition_epoch[i] > partition_epoch[row] or new_leader_epoch[i] > leader_epoch[row]:
                check[i] = NEWER_EPOCH
            elif new_leader_epoch[i] < leader_epoch[row]:
                check[i] = OLDER_LEADER_EPOCH
            elif (leader[row] == sender and new_recovery[i] == status[row] & PARTITION_RECOVERING
                    and count == isr_count[row] and is_stored_isr(isr_values, first, count, isr, slot_start[row])):
                check[i] = REPEATED
            elif new_partition_epoch[i] < partition_epoch[row]:
                check[i] = OLDER_PARTITION_EPOCH
            elif malformed[i] or new_recovery[i] == RECOVERING and (
                    count > 1 or not status[row] & PARTITION_RECOVERING):
                check[i] = MALFORMED
            elif not is_eligible(isr_values, refused_members, first, first + count, eligible):
                check[i] = INELIGIBLE_MEMBER
            else:
                check[i] = VALID
                matches += 1
    return matches
