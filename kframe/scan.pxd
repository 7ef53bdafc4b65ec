"""Looking for somebody in a list, and for rows of which there are hardly any."""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kframe.blocks cimport alike
from kframe.column cimport broker_t
from kframe.prefetch cimport KFRAME_PREFETCH

cdef enum:
    BLOCK = 64
    WORD = 8

# How many brokers that cannot lead are looked for one by one; so few are found faster so than by a table of all.
cdef enum:
    FEW = 8

# How many bytes ahead a scan asks for memory: the processor by itself does not look beyond a page of 4,096.
cdef enum:
    BEYOND = 8192


cdef inline bint contains(
    const broker_t[::1] values, Py_ssize_t start, Py_ssize_t count, int32_t wanted,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, start + count):
        if values[k] == wanted:
            return True
    return False


cdef inline int list_away(const uint8_t[::1] live, broker_t[FEW] away) noexcept nogil:
    """Write down NO_LEADER and who is not live; return how many, more than FEW if they do not fit."""
    cdef Py_ssize_t broker
    cdef int count = 1
    away[0] = -1
    for broker in range(live.shape[0]):
        if not live[broker]:
            if count == FEW:
                return FEW + 1
            away[count] = <broker_t>broker
            count += 1
    return count


cdef inline bint names_any(const broker_t *leader, const broker_t *away, int count) noexcept nogil:
    """Whether one of BLOCK leaders is among ``away``."""
    cdef uint8_t[BLOCK] hit
    cdef uint8_t found = 0
    cdef int a, k
    for k in range(BLOCK):
        hit[k] = leader[k] == away[0]
    for a in range(1, count):
        for k in range(BLOCK):
            hit[k] |= leader[k] == away[a]
    for k in range(BLOCK):
        found |= hit[k]
    return found != 0


cdef inline void mark_away(
    const broker_t *broker, const uint8_t[::1] live, const broker_t *away, int count, uint8_t *hit,
) noexcept nogil:
    """Tell which of BLOCK brokers are not live. ``away`` and ``count`` are as ``list_away`` has left them."""
    cdef int a, k
    if count > FEW:
        for k in range(BLOCK):
            hit[k] = live[broker[k]] == 0
        return
    for k in range(BLOCK):
        hit[k] = 0
    for a in range(1, count):
        for k in range(BLOCK):
            hit[k] |= broker[k] == away[a]


cdef inline Py_ssize_t skip_led(
    Py_ssize_t row, const broker_t[::1] leader, const uint8_t[::1] live, const broker_t *away, int count,
) noexcept nogil:
    """The first row from ``row`` on whose leader is nobody, or on a broker that is not live; rows without such are
    passed over with no branch for each. ``away`` and ``count`` are as ``list_away`` has left them."""
    cdef Py_ssize_t k
    if count <= FEW:
        while row + BLOCK <= leader.shape[0] and not names_any(&leader[row], away, count):
            row += BLOCK
        while row < leader.shape[0] and leader[row] >= 0 and live[leader[row]]:
            row += 1
        return row
    cdef int32_t signs
    cdef uint8_t led
    while row + BLOCK <= leader.shape[0]:
        signs = 0
        for k in range(row, row + BLOCK):
            signs |= leader[k]
        if signs < 0:
            break
        led = 1
        for k in range(row, row + BLOCK):
            led &= live[leader[k]]
        if not led:
            break
        row += BLOCK
    while row < leader.shape[0] and leader[row] >= 0 and live[leader[row]]:
        row += 1
    return row


cdef inline Py_ssize_t skip_alike(Py_ssize_t row, const uint8_t[::1] state) noexcept nogil:
    """The first row after ``row`` that is in another state; so many are compared at a time as are alike."""
    cdef Py_ssize_t stop = state.shape[0]
    cdef uint8_t same = state[row]
    cdef uint64_t eight, all_same = same * <uint64_t>0x0101010101010101
    while row + BLOCK <= stop and state[row] == same and alike(&state[row], BLOCK):
        if row + BEYOND < stop:
            KFRAME_PREFETCH(&state[row + BEYOND])
        row += BLOCK
    while row + WORD <= stop:
        memcpy(&eight, &state[row], WORD)
        if eight != all_same:
            break
        row += WORD
    while row < stop and state[row] == same:
        row += 1
    return row
