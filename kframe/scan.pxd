"""Looking for somebody in a list, and for rows of which there are hardly any."""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kframe.prefetch cimport KFRAME_PREFETCH

cdef enum:
    BLOCK = 64
    WORD = 8

# How many bytes ahead a scan asks for memory: the processor by itself does not look beyond a page of 4,096.
cdef enum:
    BEYOND = 8192


cdef inline bint contains(const int32_t[::1] values, Py_ssize_t start, Py_ssize_t count, int32_t wanted) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, start + count):
        if values[k] == wanted:
            return True
    return False


cdef inline Py_ssize_t skip_led(Py_ssize_t row, const int32_t[::1] leader, const uint8_t[::1] live) noexcept nogil:
    """The first row from ``row`` on whose leader is nobody, or on a broker that is not live; blocks of rows without
    such are passed over with no branch in them."""
    cdef Py_ssize_t k
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
    """The first row after ``row`` that is in another state; eight are compared at a time."""
    cdef Py_ssize_t stop = state.shape[0]
    cdef uint8_t alike = state[row]
    cdef uint64_t eight, all_alike = alike * <uint64_t>0x0101010101010101
    while row + WORD <= stop:
        if row % BLOCK < WORD and row + BEYOND < stop:
            KFRAME_PREFETCH(&state[row + BEYOND])
        memcpy(&eight, &state[row], WORD)
        if eight != all_alike:
            break
        row += WORD
    while row < stop and state[row] == alike:
        row += 1
    return row
