"""Scan JSON byte by byte, for the kernels that parse znodes. Unusual JSON is not accepted.

``Text`` is the input. The ``take_*`` functions skip an element, and return false or -1 if it is not there.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef struct Text:
    const uint8_t* data
    Py_ssize_t at
    Py_ssize_t end


cdef inline void skip_space(Text* text) noexcept nogil:
    while text.at < text.end and text.data[text.at] in (32, 9, 10, 13):
        text.at += 1


cdef inline bint take_byte(Text* text, int wanted) noexcept nogil:
    """Skip this byte and the whitespace around it. Return false, and skip nothing, if another byte follows."""
    skip_space(text)
    if text.at == text.end or text.data[text.at] != wanted:
        return False
    text.at += 1
    skip_space(text)
    return True


cdef inline bint take_int32(Text* text, int32_t* value) noexcept nogil:
    """Read a JSON integer that fits int32."""
    cdef int64_t number = 0
    cdef bint negative = text.at < text.end and text.data[text.at] == 45
    cdef Py_ssize_t first
    text.at += negative
    first = text.at
    while text.at < text.end and 48 <= text.data[text.at] <= 57 and text.at - first < 11:
        number = number * 10 + text.data[text.at] - 48
        text.at += 1
    if text.at == first or (text.data[first] == 48 and text.at - first > 1):
        return False
    if text.at < text.end and text.data[text.at] in (46, 69, 101):
        return False
    number = -number if negative else number
    value[0] = <int32_t> number
    return -2147483648 <= number <= 2147483647


cdef inline bint same(Text* text, Py_ssize_t length, const char* wanted) noexcept nogil:
    """Whether the next ``length`` bytes equal ``wanted``."""
    cdef Py_ssize_t i
    for i in range(length):
        if wanted[i] == 0 or text.data[text.at + i] != <uint8_t> wanted[i]:
            return False
    return wanted[length] == 0


cdef inline Py_ssize_t begin_key(Text* text) noexcept nogil:
    """Skip the opening quote of a key. Return the length of the key."""
    cdef Py_ssize_t length = 0
    skip_space(text)
    if text.at == text.end or text.data[text.at] != 34:
        return -1
    text.at += 1
    while text.at + length < text.end and text.data[text.at + length] != 34:
        length += 1
    return length


cdef inline bint end_key(Text* text, Py_ssize_t length) noexcept nogil:
    """Skip the rest of a key after ``begin_key``, and its colon."""
    text.at += length
    return take_byte(text, 34) and take_byte(text, 58)


cdef inline bint stands_in(int32_t wanted, int32_t[::1] values, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        if values[i] == wanted:
            return True
    return False
