"""Asking for memory ahead of its use, in kernels that visit rows far apart."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.column cimport broker_t

# How many rows ahead to ask for columns that are read out of order: a broker's rows lie far apart. Measured on a
# million partitions of which nothing is in the cache: without it rows take twice as long, with 12 a fifth longer than
# with 24 to 40.
cdef enum:
    AHEAD = 24

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    /* GCC takes a function that does nothing but this for one without effect, and leaves the call out. */
    #define KFRAME_PREFETCH(address) do { __builtin_prefetch(address); __asm__ volatile(""); } while (0)
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


cdef struct Slots:
    # The first and the last slot of a row.
    Py_ssize_t first
    Py_ssize_t last


cdef inline Slots next_slots(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    Py_ssize_t slots,
) noexcept nogil:
    """Ask for where the slots of the row twice ``AHEAD`` further on are; return those of the row ``AHEAD`` further on,
    of all ``slots``, or -1 where there are none to ask for any more.

    Who reads a whole row asks for both ends: one row of eight or so goes on in the next line of memory, and waiting for
    these alone takes longer than all else.
    """
    cdef Slots found = Slots(-1, -1)
    cdef Py_ssize_t row, start
    if i + 2 * AHEAD >= rows.shape[0]:
        return found
    row = rows[i + 2 * AHEAD]
    KFRAME_PREFETCH(&slot_start[row])
    KFRAME_PREFETCH(&replica_count[row])
    row = rows[i + AHEAD]
    start = slot_start[row]
    if 0 < replica_count[row] <= slots - start:
        found.first, found.last = start, start + replica_count[row] - 1
    return found


cdef inline void ask_for_slots(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] replica_flags,
) noexcept nogil:
    """Ask for what is read of the row ``AHEAD`` further on, and for where its successors' slots are."""
    cdef Slots slots = next_slots(rows, i, slot_start, replica_count, replica.shape[0])
    if slots.first >= 0:
        KFRAME_PREFETCH(&isr_count[rows[i + 2 * AHEAD]])
        KFRAME_PREFETCH(&replica[slots.first])
        KFRAME_PREFETCH(&replica[slots.last])
        KFRAME_PREFETCH(&isr[slots.first])
        KFRAME_PREFETCH(&isr[slots.last])
        KFRAME_PREFETCH(&replica_flags[slots.first])
        KFRAME_PREFETCH(&replica_flags[slots.last])


cdef inline void ask_for_assigned(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const broker_t[::1] replica,
) noexcept nogil:
    """The same for who only looks at whom rows are assigned to."""
    cdef Slots slots = next_slots(rows, i, slot_start, replica_count, replica.shape[0])
    if slots.first >= 0:
        KFRAME_PREFETCH(&replica[slots.first])
        KFRAME_PREFETCH(&replica[slots.last])


cdef inline void ask_for_replicas(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const broker_t[::1] replica, const uint8_t[::1] replica_flags,
) noexcept nogil:
    """The same for who also looks at the flags."""
    cdef Slots slots = next_slots(rows, i, slot_start, replica_count, replica.shape[0])
    if slots.first >= 0:
        KFRAME_PREFETCH(&replica[slots.first])
        KFRAME_PREFETCH(&replica[slots.last])
        KFRAME_PREFETCH(&replica_flags[slots.first])
        KFRAME_PREFETCH(&replica_flags[slots.last])


cdef inline void ask_for_flags(
    const int32_t[::1] rows, Py_ssize_t i, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const uint8_t[::1] replica_flags,
) noexcept nogil:
    """The same for who only looks at the flags of replicas."""
    cdef Slots slots = next_slots(rows, i, slot_start, replica_count, replica_flags.shape[0])
    if slots.first >= 0:
        KFRAME_PREFETCH(&replica_flags[slots.first])
        KFRAME_PREFETCH(&replica_flags[slots.last])
