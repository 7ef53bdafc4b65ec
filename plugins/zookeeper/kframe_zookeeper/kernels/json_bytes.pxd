"""Scan JSON byte by byte, for the kernels that parse znodes. Unusual JSON is not accepted.

``Text`` is the input. The ``take_*`` functions skip an element, and return false or -1 if it is not there.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef struct Text:
    const uint8_t* data
    Py_ssize_t offset
    Py_ssize_t end


cdef inline void skip_space(Text* text) noexcept nogil:
    while text.offset < text.end and text.data[text.offset] in (32, 9, 10, 13):
        text.offset += 1


cdef inline bint take_byte(Text* text, int expected) noexcept nogil:
    """Skip this byte and the whitespace around it. Return false, and skip nothing, if another byte follows."""
    skip_space(text)
    if text.offset == text.end or text.data[text.offset] != expected:
        return False
    text.offset += 1
    skip_space(text)
    return True


cdef inline bint take_int32(Text* text, int32_t* value) noexcept nogil:
    """Read a JSON integer that fits int32."""
    cdef int64_t number = 0
    cdef bint negative = text.offset < text.end and text.data[text.offset] == 45
    cdef Py_ssize_t first
    text.offset += negative
    first = text.offset
    while text.offset < text.end and 48 <= text.data[text.offset] <= 57 and text.offset - first < 11:
        number = number * 10 + text.data[text.offset] - 48
        text.offset += 1
    if text.offset == first or (text.data[first] == 48 and text.offset - first > 1):
        return False
    if text.offset < text.end and text.data[text.offset] in (46, 69, 101):
        return False
    number = -number if negative else number
    value[0] = <int32_t> number
    return -2147483648 <= number <= 2147483647


cdef inline bint equals(Text* text, Py_ssize_t length, const char* expected) noexcept nogil:
    """Whether the next ``length`` bytes equal ``expected``."""
    cdef Py_ssize_t i
    for i in range(length):
        if expected[i] == 0 or text.data[text.offset + i] != <uint8_t> expected[i]:
            return False
    return expected[length] == 0


cdef inline Py_ssize_t begin_key(Text* text) noexcept nogil:
    """Skip the opening quote of a key. Return the length of the key."""
    cdef Py_ssize_t length = 0
    skip_space(text)
    if text.offset == text.end or text.data[text.offset] != 34:
        return -1
    text.offset += 1
    while text.offset + length < text.end and text.data[text.offset + length] != 34:
        length += 1
    return length


cdef inline bint end_key(Text* text, Py_ssize_t length) noexcept nogil:
    """Skip the rest of a key after ``begin_key``, and its colon."""
    text.offset += length
    return take_byte(text, 34) and take_byte(text, 58)


cdef inline bint contains(int32_t value, int32_t[::1] values, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        if values[i] == value:
            return True
    return False
