"""Who may lead a row by the safety rules, read out of the columns (``kframe.core.selection.find_faults`` has them)."""

from libc.stdint cimport int32_t, uint8_t

from kframe.column cimport broker_t
from kframe.scan cimport contains
from kframe.selector cimport KFRAME_INITIAL, KFRAME_OFFLINE, KFRAME_OFFLINE_DIR, KFRAME_PREFERRED, KFRAME_REASSIGN

cdef enum:
    REMOVING = 2


cdef inline bint in_isr(
    const broker_t[::1] isr, Py_ssize_t start, Py_ssize_t count, Py_ssize_t at, int32_t broker,
) noexcept nogil:
    """Whether ``broker``, whose replica is in slot ``at``, is in the ISR of ``count`` from ``start`` on. In most rows
    that is the list of replicas, in its order."""
    return (at < start + count and isr[at] == broker) or contains(isr, start, count, broker)


cdef inline bint eligible_slot(
    const broker_t[::1] replica, const uint8_t[::1] flags, const uint8_t[::1] live, Py_ssize_t at,
) noexcept nogil:
    return live[replica[at]] != 0 and (flags[at] & KFRAME_OFFLINE_DIR) == 0


cdef inline bint any_clean(
    Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] flags, const uint8_t[::1] live,
) noexcept nogil:
    """Whether any of a row's replicas is eligible and in sync."""
    cdef Py_ssize_t at
    for at in range(start, start + count):
        if eligible_slot(replica, flags, live, at) and in_isr(isr, start, members, at, replica[at]):
            return True
    return False


cdef inline bint unclean_here(
    int kind, bint allowed, Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live,
) noexcept nogil:
    """Whether a replica out of sync may lead a row: that is allowed, and no other can."""
    return allowed and kind == KFRAME_OFFLINE and not any_clean(start, count, members, replica, isr, flags, live)


cdef inline bint candidate(int kind, const uint8_t[::1] flags, Py_ssize_t at) noexcept nogil:
    """Whether the replica in a slot is asked at all."""
    return kind != KFRAME_REASSIGN or (flags[at] & REMOVING) == 0


cdef inline bint slot_may_lead(
    int kind, Py_ssize_t start, Py_ssize_t members, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean, Py_ssize_t at,
) noexcept nogil:
    """Whether the safety rules let the replica in slot ``at`` lead its row; ``unclean`` is of ``unclean_here``."""
    return (
        candidate(kind, flags, at) and (kind != KFRAME_PREFERRED or at == start)
        and eligible_slot(replica, flags, live, at)
        and (kind == KFRAME_INITIAL or unclean or in_isr(isr, start, members, at, replica[at])))


cdef inline bint lawful(
    int kind, Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean, int32_t broker,
) noexcept nogil:
    """Whether the safety rules let ``broker`` lead a row."""
    cdef Py_ssize_t at
    for at in range(start, start + count):
        if replica[at] == broker and candidate(kind, flags, at):
            return slot_may_lead(kind, start, members, replica, isr, flags, live, unclean, at)
    return False
