"""Gathering the candidates of rows, and which of them may lead: the parts of ``_selectors.gather_candidates``."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.blocks cimport is_consecutive, is_uniform, uniform_width
from kframe.kernels.constants cimport ELECT_CONTROLLED_SHUTDOWN, NO_LEADER, OFFLINE_DIR
from kframe.kernels.eligibility cimport is_candidate, may_lead_slot
from kframe.kernels.scan cimport BLOCK, mark_offline
from kframe.kernels.types cimport broker_t


cdef inline int32_t uniform_candidates(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const uint8_t[::1] allowed,
) noexcept nogil:
    """The ``uniform_width`` of the BLOCK rows from position ``i`` on if they are consecutive and none is ``allowed`` an
    unclean leader; else 0."""
    cdef Py_ssize_t last = i + BLOCK - 1
    if last >= rows.shape[0] or not is_consecutive(&rows[last] - BLOCK + 1, BLOCK):
        return 0
    if allowed[i] or not is_uniform(&allowed[last] - BLOCK + 1, BLOCK):
        return 0
    return uniform_width(rows[i], BLOCK, slot_start, replica_count)


cdef inline Py_ssize_t gather_row(
    int kind, Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean,
    Py_ssize_t filled, int32_t[::1] candidates, uint8_t[::1] may_lead, broker_t *first,
) noexcept nogil:
    """Write the candidates of a row from ``filled`` on, and the first that may lead; return where they end."""
    cdef Py_ssize_t slot
    cdef bint can_lead
    first[0] = NO_LEADER
    for slot in range(start, start + count):
        if is_candidate(kind, flags, slot):
            can_lead = may_lead_slot(kind, start, members, replica, isr, flags, live, unclean, slot)
            candidates[filled], may_lead[filled] = replica[slot], can_lead
            if can_lead and first[0] == NO_LEADER:
                first[0] = replica[slot]
            filled += 1
    return filled


cdef inline bint gather_slots(
    Py_ssize_t start, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] flags,
    const uint8_t[::1] live, const broker_t *offline, int offline_count,
    Py_ssize_t filled, int32_t[::1] candidates, uint8_t[::1] may_lead,
) noexcept nogil:
    """Write BLOCK candidates without branches, assuming that ISRs equal replica lists; return whether all may lead."""
    cdef const broker_t *brokers = &replica[start + BLOCK - 1] - BLOCK + 1
    cdef const broker_t *members = &isr[start + BLOCK - 1] - BLOCK + 1
    cdef const uint8_t *flags_copy = &flags[start + BLOCK - 1] - BLOCK + 1
    cdef int32_t *out_candidates = &candidates[filled + BLOCK - 1] - BLOCK + 1
    cdef uint8_t *out_may_lead = &may_lead[filled + BLOCK - 1] - BLOCK + 1
    cdef uint8_t[BLOCK] cannot_lead
    cdef uint8_t any_cannot_lead = 0
    cdef int k
    mark_offline(brokers, live, offline, offline_count, &cannot_lead[0])
    for k in range(BLOCK):
        cannot_lead[k] |= (brokers[k] != members[k]) | ((flags_copy[k] & OFFLINE_DIR) != 0)
        any_cannot_lead |= cannot_lead[k]
    for k in range(BLOCK):
        out_candidates[k] = brokers[k]
        out_may_lead[k] = cannot_lead[k] ^ 1
    return any_cannot_lead == 0


cdef inline void gather_block(
    Py_ssize_t row, int32_t width, Py_ssize_t start, const int16_t[::1] isr_count, const broker_t[::1] replica, const
    broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, const broker_t *offline, int offline_count,
    Py_ssize_t i, Py_ssize_t filled, int32_t[::1] offsets, int32_t[::1] candidates, uint8_t[::1] may_lead, broker_t[::1]
    first,
) noexcept nogil:
    """Write the candidates of BLOCK rows of a ``uniform_candidates`` width, and repeat those rows one by one in which
    some candidate may not lead."""
    cdef Py_ssize_t k, slot
    cdef bint all_may_lead = True
    for k in range(width):
        all_may_lead &= gather_slots(
            start + k * BLOCK, replica, isr, flags, live, offline, offline_count, filled + k * BLOCK, candidates,
            may_lead
        )
    for k in range(BLOCK):
        all_may_lead &= isr_count[row + k] == width
        offsets[i + k + 1] = <int32_t>(filled + (k + 1) * width)
        first[i + k] = replica[start + k * width]
    if all_may_lead:
        return
    for k in range(BLOCK):
        all_may_lead = isr_count[row + k] == width
        for slot in range(filled, filled + width):
            all_may_lead &= may_lead[slot]
        if not all_may_lead:
            gather_row(ELECT_CONTROLLED_SHUTDOWN, start, width, isr_count[row + k], replica, isr, flags, live, False,
                       filled, candidates, may_lead, &first[i + k])
        start += width
        filled += width
