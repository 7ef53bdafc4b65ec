"""Bounded reading of text: every function checks the end of the text and returns an offset, or -1 for other text."""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    INT32_DIGITS = 10
    INT32_MAX = 0x7FFFFFFF


cdef inline Py_ssize_t skip_blanks(const uint8_t[::1] text, Py_ssize_t offset) noexcept nogil:
    """The offset after spaces and tabs."""
    while offset < text.shape[0] and (text[offset] == 32 or text[offset] == 9):
        offset += 1
    return offset


cdef inline bint follows(
    const uint8_t[::1] text, Py_ssize_t offset, const char *word, Py_ssize_t length,
) noexcept nogil:
    """Whether the text continues with a word of ``length`` bytes."""
    cdef Py_ssize_t k
    if text.shape[0] - offset < length:
        return False
    for k in range(length):
        if text[offset + k] != <uint8_t>word[k]:
            return False
    return True


cdef inline bint is_same(
    const uint8_t[::1] text, Py_ssize_t offset, const uint8_t[::1] other, Py_ssize_t start, Py_ssize_t length,
) noexcept nogil:
    """Whether two texts are equal for ``length`` bytes, which both have."""
    cdef Py_ssize_t k
    for k in range(length):
        if text[offset + k] != other[start + k]:
            return False
    return True


cdef inline Py_ssize_t skip_name(const uint8_t[::1] text, Py_ssize_t offset) noexcept nogil:
    """The offset after the letters, digits, dots, underscores and hyphens that a topic name consists of."""
    cdef uint8_t byte
    while offset < text.shape[0]:
        byte = text[offset]
        if not (97 <= byte <= 122 or 48 <= byte <= 57 or 65 <= byte <= 90 or byte == 46 or byte == 95 or byte == 45):
            break
        offset += 1
    return offset


cdef inline Py_ssize_t read_digits(const uint8_t[::1] text, Py_ssize_t offset, int32_t *number) noexcept nogil:
    """Read 1 to 10 digits whose value is an int32."""
    cdef int64_t value = 0
    cdef Py_ssize_t start = offset
    while offset < text.shape[0] and 48 <= text[offset] <= 57:
        if offset - start == INT32_DIGITS:
            return -1
        value = 10 * value + text[offset] - 48
        offset += 1
    if offset == start or value > INT32_MAX:
        return -1
    number[0] = <int32_t>value
    return offset
