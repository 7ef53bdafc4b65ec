"""Which replicas the safety rules let lead a row; ``kframe.core.selectors.leader_selection`` names the rules."""

from libc.stdint cimport int32_t, uint8_t

from kframe.kernels.constants cimport (
    ELECT_INITIAL, ELECT_OFFLINE, ELECT_PREFERRED, ELECT_REASSIGN, OFFLINE_DIR, REMOVING,
)
from kframe.kernels.scan cimport contains
from kframe.kernels.types cimport broker_t


cdef inline bint in_isr(
    const broker_t[::1] isr, Py_ssize_t start, Py_ssize_t count, Py_ssize_t slot, int32_t broker,
) noexcept nogil:
    """Whether ``broker``, whose replica is in ``slot``, is in the ISR of ``count`` members from ``start`` on. In most
    rows the ISR equals the replica list."""
    return (slot < start + count and isr[slot] == broker) or contains(isr, start, count, broker)


cdef inline bint is_eligible(
    const broker_t[::1] replica, const uint8_t[::1] flags, const uint8_t[::1] live, Py_ssize_t slot,
) noexcept nogil:
    return live[replica[slot]] != 0 and (flags[slot] & OFFLINE_DIR) == 0


cdef inline bint has_clean_candidate(
    Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] flags, const uint8_t[::1] live,
) noexcept nogil:
    """Whether any of a row's replicas is eligible and in sync."""
    cdef Py_ssize_t slot
    for slot in range(start, start + count):
        if is_eligible(replica, flags, live, slot) and in_isr(isr, start, members, slot, replica[slot]):
            return True
    return False


cdef inline bint is_unclean_election(
    int kind, bint allowed, Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live,
) noexcept nogil:
    """Whether an out-of-sync replica may lead a row: it is allowed, and no replica is eligible and in sync."""
    return allowed and kind == ELECT_OFFLINE and not has_clean_candidate(
        start, count, members, replica, isr, flags, live
    )


cdef inline bint is_candidate(int kind, const uint8_t[::1] flags, Py_ssize_t slot) noexcept nogil:
    """Whether the replica in a slot is a candidate: a reassignment excludes replicas that are being removed."""
    return kind != ELECT_REASSIGN or (flags[slot] & REMOVING) == 0


cdef inline bint may_lead_slot(
    int kind, Py_ssize_t start, Py_ssize_t members, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean, Py_ssize_t slot,
) noexcept nogil:
    """Whether the safety rules let the replica in ``slot`` lead; ``unclean`` is from ``is_unclean_election``."""
    return (
        is_candidate(kind, flags, slot) and (kind != ELECT_PREFERRED or slot == start)
        and is_eligible(replica, flags, live, slot)
        and (kind == ELECT_INITIAL or unclean or in_isr(isr, start, members, slot, replica[slot])))


cdef inline bint may_lead_row(
    int kind, Py_ssize_t start, Py_ssize_t count, Py_ssize_t members, const broker_t[::1] replica,
    const broker_t[::1] isr, const uint8_t[::1] flags, const uint8_t[::1] live, bint unclean, int32_t broker,
) noexcept nogil:
    """Whether the safety rules let ``broker`` lead a row."""
    cdef Py_ssize_t slot
    for slot in range(start, start + count):
        if replica[slot] == broker and is_candidate(kind, flags, slot):
            return may_lead_slot(kind, start, members, replica, isr, flags, live, unclean, slot)
    return False
