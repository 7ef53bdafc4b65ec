"""Asking a native selector and judging its answers: the parts of ``kframe._select.choose``."""

from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t

from kframe.column cimport broker_t
from kframe.lawful cimport candidate, eligible_slot, slot_may_lead
from kframe.scan cimport BLOCK
from kframe.selector cimport (
    KFRAME_CONTROLLED_SHUTDOWN, KFRAME_NO_LEADER, KFRAME_PREFERRED, KFRAME_REASSIGN, kframe_election, kframe_select,
)


cdef inline int32_t copy_targets(
    Py_ssize_t start, Py_ssize_t count, const broker_t[::1] replica, const uint8_t[::1] flags, broker_t[::1] brokers,
    uint8_t[::1] marks,
) noexcept nogil:
    """Copy the replicas that a reassignment leaves, and their flags; return how many these are."""
    cdef Py_ssize_t at
    cdef int32_t put = 0
    for at in range(start, start + count):
        if candidate(KFRAME_REASSIGN, flags, at):
            brokers[put], marks[put] = replica[at], flags[at]
            put += 1
    return put


cdef inline int32_t copy_eligible(
    Py_ssize_t start, Py_ssize_t count, const broker_t[::1] replica, const uint8_t[::1] flags,
    const uint8_t[::1] live, broker_t[::1] brokers,
) noexcept nogil:
    """Copy the ISR that a new partition will get; return how many are in it."""
    cdef Py_ssize_t at
    cdef int32_t put = 0
    for at in range(start, start + count):
        if eligible_slot(replica, flags, live, at):
            brokers[put] = replica[at]
            put += 1
    return put


cdef inline int32_t show_made(
    kframe_election *e, int kind, Py_ssize_t start, int32_t count, const broker_t[::1] replica,
    const uint8_t[::1] flags, const uint8_t[::1] live, broker_t[::1] brokers, uint8_t[::1] marks,
) noexcept nogil:
    """Show the list that is not in the columns: the candidates of a REASSIGN, the ISR of an INITIAL; return how many
    candidates there are."""
    if kind == KFRAME_REASSIGN:
        e.candidates, e.candidate_flags = &brokers[0], &marks[0]
        return copy_targets(start, count, replica, flags, brokers, marks)
    e.isr = &brokers[0]
    e.isr_count = copy_eligible(start, count, replica, flags, live, brokers)
    return count


cdef inline Py_ssize_t slot_of(
    int kind, Py_ssize_t start, int32_t position, const uint8_t[::1] flags,
) noexcept nogil:
    """The slot of the candidate at ``position``, which exists: read from the columns, whatever has become of what the
    selector was shown."""
    cdef Py_ssize_t at = start
    if kind != KFRAME_REASSIGN:
        return start + position
    while not candidate(kind, flags, at) or position > 0:
        position -= candidate(kind, flags, at)
        at += 1
    return at


cdef inline bint judge(
    int kind, int32_t position, int32_t count, Py_ssize_t start, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean, int32_t *leader,
) noexcept nogil:
    """Write down who is at ``position`` among the ``count`` candidates of a row; return whether this choice breaks a
    safety rule."""
    cdef Py_ssize_t at
    if <uint32_t>position >= <uint32_t>count:
        leader[0] = KFRAME_NO_LEADER
        return position != KFRAME_NO_LEADER
    at = slot_of(kind, start, position, flags)
    leader[0] = replica[at]
    return not slot_may_lead(kind, start, members, replica, isr, flags, live, unclean, at)


cdef inline void ask_block(
    kframe_select select, void *user_data, kframe_election *e, Py_ssize_t row, int32_t width,
    const int16_t[::1] isr_count, const broker_t *candidates, const uint8_t *flags, const broker_t *isr,
    int32_t *positions,
) noexcept nogil:
    """Ask for the leaders of BLOCK rows of a ``plain_width``, whose lists begin at these places. Nothing is done
    between two calls that can be done before or after all of them: a call leaves but few registers to its caller."""
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


cdef inline Py_ssize_t judge_block(
    int kind, const int32_t *positions, Py_ssize_t row, int32_t width, Py_ssize_t start,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] flags,
    const uint8_t[::1] live, int32_t[::1] leader, Py_ssize_t i,
) noexcept nogil:
    """Write down who is at the ``positions`` from row ``row`` on; return how many choices break a safety rule. All
    replicas are candidates: what is left of the kinds is whether any may lead."""
    cdef Py_ssize_t k, unlawful = 0
    for k in range(BLOCK):
        if kind == KFRAME_PREFERRED:
            unlawful += judge(KFRAME_PREFERRED, positions[k], width, start, isr_count[row + k], replica, isr, flags,
                              live, False, &leader[i + k])
        else:
            unlawful += judge(KFRAME_CONTROLLED_SHUTDOWN, positions[k], width, start, isr_count[row + k], replica, isr,
                              flags, live, False, &leader[i + k])
        start += width
    return unlawful
