"""Calling a native selector and checking its choices: the parts of ``_selectors.choose_leaders_native``."""

from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t

from kframe.kernels.constants cimport ELECT_CONTROLLED_SHUTDOWN, ELECT_PREFERRED, ELECT_REASSIGN, NO_LEADER
from kframe.kernels.eligibility cimport is_candidate, is_eligible, may_lead_slot
from kframe.kernels.scan cimport BLOCK
from kframe.kernels.selector cimport kframe_election, kframe_select
from kframe.kernels.types cimport broker_t


cdef inline int32_t copy_remaining(
    Py_ssize_t start, Py_ssize_t count, const broker_t[::1] replica, const uint8_t[::1] flags, broker_t[::1] brokers,
    uint8_t[::1] flags_copy,
) noexcept nogil:
    """Copy the replicas that stay after a reassignment, and their flags; return how many."""
    cdef Py_ssize_t slot
    cdef int32_t filled = 0
    for slot in range(start, start + count):
        if is_candidate(ELECT_REASSIGN, flags, slot):
            brokers[filled], flags_copy[filled] = replica[slot], flags[slot]
            filled += 1
    return filled


cdef inline int32_t copy_eligible(
    Py_ssize_t start, Py_ssize_t count, const broker_t[::1] replica, const uint8_t[::1] flags,
    const uint8_t[::1] live, broker_t[::1] brokers,
) noexcept nogil:
    """Copy the initial ISR of a new partition; return its size."""
    cdef Py_ssize_t slot
    cdef int32_t filled = 0
    for slot in range(start, start + count):
        if is_eligible(replica, flags, live, slot):
            brokers[filled] = replica[slot]
            filled += 1
    return filled


cdef inline int32_t set_derived_lists(
    kframe_election *e, int kind, Py_ssize_t start, int32_t count, const broker_t[::1] replica,
    const uint8_t[::1] flags, const uint8_t[::1] live, broker_t[::1] brokers, uint8_t[::1] flags_copy,
) noexcept nogil:
    """Set the list that is not a column: the candidates of a REASSIGN, the ISR of an INITIAL. Returns the number of
    candidates."""
    if kind == ELECT_REASSIGN:
        e.candidates, e.candidate_flags = &brokers[0], &flags_copy[0]
        return copy_remaining(start, count, replica, flags, brokers, flags_copy)
    e.isr = &brokers[0]
    e.isr_count = copy_eligible(start, count, replica, flags, live, brokers)
    return count


cdef inline Py_ssize_t candidate_slot(
    int kind, Py_ssize_t start, int32_t position, const uint8_t[::1] flags,
) noexcept nogil:
    """The slot of the candidate at ``position``, which exists, read from the columns: a selector could have overwritten
    its copy."""
    cdef Py_ssize_t slot = start
    if kind != ELECT_REASSIGN:
        return start + position
    while not is_candidate(kind, flags, slot) or position > 0:
        position -= is_candidate(kind, flags, slot)
        slot += 1
    return slot


cdef inline bint check_choice(
    int kind, int32_t position, int32_t count, Py_ssize_t start, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean, int32_t *leader,
) noexcept nogil:
    """Write the broker at ``position`` among the ``count`` candidates of a row; return whether this choice violates a
    safety rule."""
    cdef Py_ssize_t slot
    if <uint32_t>position >= <uint32_t>count:
        leader[0] = NO_LEADER
        return position != NO_LEADER
    slot = candidate_slot(kind, start, position, flags)
    leader[0] = replica[slot]
    return not may_lead_slot(kind, start, members, replica, isr, flags, live, unclean, slot)


cdef inline void call_block(
    kframe_select select, void *user_data, kframe_election *e, Py_ssize_t row, int32_t width,
    const int16_t[::1] isr_count, const broker_t *candidates, const uint8_t *flags, const broker_t *isr,
    int32_t *positions,
) noexcept nogil:
    """Call the selector for BLOCK rows of a ``uniform_candidates`` width. Little is done between two calls, because a
    call leaves few registers to its caller."""
    cdef const int16_t *members = &isr_count[row + BLOCK - 1] - BLOCK + 1
    cdef int k
    e.candidate_count, e.unclean_allowed = width, False
    for k in range(BLOCK):
        e.row, e.isr_count = <int32_t>row + k, members[k]
        e.candidates, e.candidate_flags, e.isr = candidates, flags, isr
        positions[k] = select(e, user_data)
        candidates += width
        flags += width
        isr += width


cdef inline Py_ssize_t check_choices(
    int kind, const int32_t *positions, Py_ssize_t row, int32_t width, Py_ssize_t start,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] flags,
    const uint8_t[::1] live, int32_t[::1] leader, Py_ssize_t i,
) noexcept nogil:
    """Write the brokers at ``positions`` for BLOCK rows; return how many choices violate a safety rule. All replicas
    are candidates, so kinds differ only in which may lead."""
    cdef Py_ssize_t k, violations = 0
    for k in range(BLOCK):
        if kind == ELECT_PREFERRED:
            violations += check_choice(
                ELECT_PREFERRED, positions[k], width, start, isr_count[row + k], replica, isr, flags, live, False,
                &leader[i + k]
            )
        else:
            violations += check_choice(
                ELECT_CONTROLLED_SHUTDOWN, positions[k], width, start, isr_count[row + k], replica, isr, flags, live,
                False, &leader[i + k]
            )
        start += width
    return violations
