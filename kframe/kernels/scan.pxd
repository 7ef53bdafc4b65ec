"""Scanning columns for rare values, such as leaders on offline brokers."""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kframe.kernels.blocks cimport is_uniform
from kframe.kernels.types cimport broker_t
from kframe.kernels.prefetch cimport KFRAME_PREFETCH

cdef enum:
    BLOCK = 64
    WORD = 8

# Up to this many offline brokers are compared one by one, which is faster than a table look-up.
cdef enum:
    MAX_LISTED = 8

# How many bytes ahead a scan prefetches: the hardware prefetcher stops at a page of 4,096 bytes.
cdef enum:
    PREFETCH_BYTES = 8192


cdef extern from *:
    """
    /* Moves the lowest bit of each of eight bytes to a bit of its own in the highest byte. */
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define KFRAME_GATHER_BITS 0x8040201008040201ULL
    #else
    #define KFRAME_GATHER_BITS 0x0102040810204080ULL
    #endif

    static CYTHON_INLINE int kframe_lowest_bit(uint64_t bits) {
    #if defined(__GNUC__) || defined(__clang__)
        return __builtin_ctzll(bits);
    #else
        int position = 0;
        while (!(bits >> position & 1)) position++;
        return position;
    #endif
    }
    """
    const uint64_t KFRAME_GATHER_BITS
    int lowest_bit "kframe_lowest_bit"(uint64_t bits) noexcept nogil


cdef inline uint64_t equal_slots(const broker_t *values, broker_t broker) noexcept nogil:
    """A bit for each of BLOCK values, the lowest for the first: 1 where it is the broker."""
    cdef uint8_t[BLOCK] hit
    cdef uint64_t eight, equal = 0
    cdef int k
    for k in range(BLOCK):
        hit[k] = values[k] == broker
    for k in range(BLOCK // WORD):
        memcpy(&eight, &hit[k * WORD], WORD)
        equal |= (eight * KFRAME_GATHER_BITS >> 56) << k * WORD
    return equal


cdef inline bint contains(
    const broker_t[::1] values, Py_ssize_t start, Py_ssize_t count, int32_t value,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, start + count):
        if values[k] == value:
            return True
    return False


cdef inline bint in_list(const int32_t[::1] values, Py_ssize_t start, Py_ssize_t end, int32_t value) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, end):
        if values[k] == value:
            return True
    return False


cdef inline int list_offline_brokers(const uint8_t[::1] live, broker_t[MAX_LISTED] offline) noexcept nogil:
    """List NO_LEADER and the brokers that are not live; return how many, or MAX_LISTED + 1 if they do not fit."""
    cdef Py_ssize_t broker
    cdef int count = 1
    offline[0] = -1
    for broker in range(live.shape[0]):
        if not live[broker]:
            if count == MAX_LISTED:
                return MAX_LISTED + 1
            offline[count] = <broker_t>broker
            count += 1
    return count


cdef inline bint any_offline(const broker_t *leader, const broker_t *offline, int count) noexcept nogil:
    """Whether one of BLOCK leaders is in ``offline``."""
    cdef uint8_t[BLOCK] hit
    cdef uint8_t any_hit = 0
    cdef int a, k
    for k in range(BLOCK):
        hit[k] = leader[k] == offline[0]
    for a in range(1, count):
        for k in range(BLOCK):
            hit[k] |= leader[k] == offline[a]
    for k in range(BLOCK):
        any_hit |= hit[k]
    return any_hit != 0


cdef inline void mark_offline(
    const broker_t *broker, const uint8_t[::1] live, const broker_t *offline, int count, uint8_t *hit,
) noexcept nogil:
    """Set the mask for those of BLOCK brokers that are not live; ``list_offline_brokers`` made ``offline``."""
    cdef int a, k
    if count > MAX_LISTED:
        for k in range(BLOCK):
            hit[k] = live[broker[k]] == 0
        return
    for k in range(BLOCK):
        hit[k] = 0
    for a in range(1, count):
        for k in range(BLOCK):
            hit[k] |= broker[k] == offline[a]


cdef inline Py_ssize_t skip_led_rows(
    Py_ssize_t row, const broker_t[::1] leader, const uint8_t[::1] live, const broker_t *offline, int count,
) noexcept nogil:
    """The first row from ``row`` on without a leader on a live broker, BLOCK rows at a time without branches.

    ``list_offline_brokers`` made ``offline`` and ``count``.
    """
    cdef Py_ssize_t k
    if count <= MAX_LISTED:
        while row + BLOCK <= leader.shape[0] and not any_offline(&leader[row], offline, count):
            row += BLOCK
        while row < leader.shape[0] and leader[row] >= 0 and live[leader[row]]:
            row += 1
        return row
    cdef int32_t signs
    cdef uint8_t has_online_leader
    while row + BLOCK <= leader.shape[0]:
        signs = 0
        for k in range(row, row + BLOCK):
            signs |= leader[k]
        if signs < 0:
            break
        has_online_leader = 1
        for k in range(row, row + BLOCK):
            has_online_leader &= live[leader[k]]
        if not has_online_leader:
            break
        row += BLOCK
    while row < leader.shape[0] and leader[row] >= 0 and live[leader[row]]:
        row += 1
    return row


cdef inline Py_ssize_t skip_equal_rows(Py_ssize_t row, const uint8_t[::1] status) noexcept nogil:
    """The first row after ``row`` with another status, compared a block or a word at a time."""
    cdef Py_ssize_t stop = status.shape[0]
    cdef uint8_t same = status[row]
    cdef uint64_t eight, all_same = same * <uint64_t>0x0101010101010101
    while row + BLOCK <= stop and status[row] == same and is_uniform(&status[row], BLOCK):
        if row + PREFETCH_BYTES < stop:
            KFRAME_PREFETCH(&status[row + PREFETCH_BYTES])
        row += BLOCK
    while row + WORD <= stop:
        memcpy(&eight, &status[row], WORD)
        if eight != all_same:
            break
        row += WORD
    while row < stop and status[row] == same:
        row += 1
    return row
