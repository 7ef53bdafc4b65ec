"""Asking for memory ahead of its use, in kernels that visit rows far apart."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.column cimport broker_t

# How many rows ahead to ask for columns that are read out of order: a broker's rows lie far apart. Measured: without it
# copying takes half as long again, and 8 to 16 are alike.
cdef enum:
    AHEAD = 12

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define KFRAME_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define KFRAME_PREFETCH(address) ((void)0)
    #endif
    """
    void KFRAME_PREFETCH(const void* address) noexcept nogil


cdef inline bint far_apart(const int32_t[::1] rows, const int32_t[::1] slot_start) noexcept nogil:
    """Whether so few of all rows are visited that the processor will not guess which come next."""
    return rows.shape[0] * 4 < slot_start.shape[0]


cdef inline void ask_for_isr(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] isr_count,
    const broker_t[::1] isr, const broker_t[::1] leader,
) noexcept nogil:
    """Ask for a row's leader and ISR ``AHEAD`` of their use, and for where its successors' ISRs are."""
    cdef Py_ssize_t row
    if i + 2 * AHEAD < rows.shape[0]:
        row = rows[i + 2 * AHEAD]
        KFRAME_PREFETCH(&slot_start[row])
        KFRAME_PREFETCH(&isr_count[row])
        KFRAME_PREFETCH(&leader[row])
        row = slot_start[rows[i + AHEAD]]
        if row < isr.shape[0]:
            KFRAME_PREFETCH(&isr[row])


cdef inline void ask_for_epochs(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] leader_epoch, const uint8_t[::1] recovery,
    const int32_t[::1] partition_epoch,
) noexcept nogil:
    """Beside ``ask_for_isr`` for who also looks at the epochs of a state."""
    cdef Py_ssize_t row
    if i + AHEAD < rows.shape[0]:
        row = rows[i + AHEAD]
        KFRAME_PREFETCH(&leader_epoch[row])
        KFRAME_PREFETCH(&recovery[row])
        KFRAME_PREFETCH(&partition_epoch[row])


cdef inline Py_ssize_t first_slot(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
) noexcept nogil:
    """Ask for where the slots of the row twice ``AHEAD`` further on are; return the first one of the row ``AHEAD``
    further on, or -1 where there is none to ask for any more."""
    cdef Py_ssize_t row
    if i + 2 * AHEAD >= rows.shape[0]:
        return -1
    row = rows[i + 2 * AHEAD]
    KFRAME_PREFETCH(&slot_start[row])
    KFRAME_PREFETCH(&replica_count[row])
    return slot_start[rows[i + AHEAD]]


cdef inline void ask_for_slots(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] replica_flags,
) noexcept nogil:
    """Ask for what is read of the row ``AHEAD`` further on, and for where its successors' slots are."""
    cdef Py_ssize_t slot = first_slot(rows, i, slot_start, replica_count)
    if 0 <= slot < replica.shape[0]:
        KFRAME_PREFETCH(&isr_count[rows[i + 2 * AHEAD]])
        KFRAME_PREFETCH(&replica[slot])
        KFRAME_PREFETCH(&isr[slot])
        KFRAME_PREFETCH(&replica_flags[slot])


cdef inline void ask_for_assigned(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const broker_t[::1] replica,
) noexcept nogil:
    """The same for who only looks at whom rows are assigned to."""
    cdef Py_ssize_t slot = first_slot(rows, i, slot_start, replica_count)
    if 0 <= slot < replica.shape[0]:
        KFRAME_PREFETCH(&replica[slot])


cdef inline void ask_for_replicas(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const broker_t[::1] replica, const uint8_t[::1] replica_flags,
) noexcept nogil:
    """The same for who also looks at the flags."""
    cdef Py_ssize_t slot = first_slot(rows, i, slot_start, replica_count)
    if 0 <= slot < replica.shape[0]:
        KFRAME_PREFETCH(&replica[slot])
        KFRAME_PREFETCH(&replica_flags[slot])


cdef inline void ask_for_flags(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const uint8_t[::1] replica_flags,
) noexcept nogil:
    """The same for who only looks at the flags of replicas."""
    cdef Py_ssize_t slot = first_slot(rows, i, slot_start, replica_count)
    if 0 <= slot < replica_flags.shape[0]:
        KFRAME_PREFETCH(&replica_flags[slot])
