"""Looking for somebody in a list, and for rows of which there are hardly any."""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcmp

from kframe.prefetch cimport KFRAME_PREFETCH

cdef enum:
    BLOCK = 64

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
    """A later row, with none between that is in another state than ``row``."""
    if row + BEYOND < state.shape[0]:
        KFRAME_PREFETCH(&state[row + BEYOND])
    if row + BLOCK <= state.shape[0] and memcmp(&state[row], &state[row + 1], BLOCK - 1) == 0:
        return row + BLOCK
    return row + 1
