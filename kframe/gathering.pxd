"""Writing down who is a candidate and may lead: the parts of ``kframe._select.gather``."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.column cimport broker_t
from kframe.lawful cimport candidate, slot_may_lead
from kframe.scan cimport BLOCK, mark_away
from kframe.selector cimport KFRAME_CONTROLLED_SHUTDOWN, KFRAME_NO_LEADER, KFRAME_OFFLINE_DIR


cdef inline Py_ssize_t gather_row(
    int kind, Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean,
    Py_ssize_t put, int32_t[::1] candidates, uint8_t[::1] may_lead, broker_t *first,
) noexcept nogil:
    """Write down a row's candidates from ``put`` on, and the first that may lead; return where they end."""
    cdef Py_ssize_t at
    cdef bint may
    first[0] = KFRAME_NO_LEADER
    for at in range(start, start + count):
        if candidate(kind, flags, at):
            may = slot_may_lead(kind, start, members, replica, isr, flags, live, unclean, at)
            candidates[put], may_lead[put] = replica[at], may
            if may and first[0] == KFRAME_NO_LEADER:
                first[0] = replica[at]
            put += 1
    return put


cdef inline bint gather_slots(
    Py_ssize_t start, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] flags,
    const uint8_t[::1] live, const broker_t *away, int away_count,
    Py_ssize_t put, int32_t[::1] candidates, uint8_t[::1] may_lead,
) noexcept nogil:
    """Write down BLOCK candidates, with no branch for each, as if each that is in sync stood in the ISR where it stands
    among the replicas; return whether all may lead."""
    cdef const broker_t *brokers = &replica[start + BLOCK - 1] - BLOCK + 1
    cdef const broker_t *members = &isr[start + BLOCK - 1] - BLOCK + 1
    cdef const uint8_t *marks = &flags[start + BLOCK - 1] - BLOCK + 1
    cdef int32_t *named = &candidates[put + BLOCK - 1] - BLOCK + 1
    cdef uint8_t *may = &may_lead[put + BLOCK - 1] - BLOCK + 1
    cdef uint8_t[BLOCK] barred
    cdef uint8_t any_barred = 0
    cdef int k
    mark_away(brokers, live, away, away_count, &barred[0])
    for k in range(BLOCK):
        barred[k] |= (brokers[k] != members[k]) | ((marks[k] & KFRAME_OFFLINE_DIR) != 0)
        any_barred |= barred[k]
    for k in range(BLOCK):
        named[k] = brokers[k]
        may[k] = barred[k] ^ 1
    return any_barred == 0


cdef inline void gather_block(
    Py_ssize_t row, int32_t width, Py_ssize_t start, const int16_t[::1] isr_count, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, const broker_t *away, int away_count,
    Py_ssize_t i, Py_ssize_t put, int32_t[::1] offsets, int32_t[::1] candidates, uint8_t[::1] may_lead,
    broker_t[::1] first,
) noexcept nogil:
    """Write down the candidates of BLOCK rows of a ``plain_width``, all of which are, from ``put`` on; and once more,
    by the rule for a single row, where not all may lead at first sight."""
    cdef Py_ssize_t k, at
    cdef bint all_may = True
    for k in range(width):
        all_may &= gather_slots(start + k * BLOCK, replica, isr, flags, live, away, away_count, put + k * BLOCK,
                                candidates, may_lead)
    for k in range(BLOCK):
        all_may &= isr_count[row + k] == width
        offsets[i + k + 1] = <int32_t>(put + (k + 1) * width)
        first[i + k] = replica[start + k * width]
    if all_may:
        return
    for k in range(BLOCK):
        all_may = isr_count[row + k] == width
        for at in range(put, put + width):
            all_may &= may_lead[at]
        if not all_may:
            gather_row(KFRAME_CONTROLLED_SHUTDOWN, start, width, isr_count[row + k], replica, isr, flags, live, False,
                       put, candidates, may_lead, &first[i + k])
        start += width
        put += width
