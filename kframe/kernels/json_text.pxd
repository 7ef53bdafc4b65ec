"""Bounded reading of JSON in its usual form: strings without escapes, integers from 0 that are int32.

With ``escaped`` the text is inside a JSON string: a quotation mark follows a backslash, and spaces are the only
whitespace. Functions return the offset after what they read, or -1 where the text is of another form.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport strlen

from kframe.kernels.text cimport follows, read_digits


cdef inline Py_ssize_t skip_space(const uint8_t[::1] text, Py_ssize_t offset, bint escaped) noexcept nogil:
    while offset < text.shape[0] and (
        text[offset] == 32 or (not escaped and (text[offset] == 10 or text[offset] == 13 or text[offset] == 9))
    ):
        offset += 1
    return offset


cdef inline Py_ssize_t skip_byte(
    const uint8_t[::1] text, Py_ssize_t offset, uint8_t byte, bint escaped,
) noexcept nogil:
    """The offset after whitespace, a byte, and more whitespace."""
    offset = skip_space(text, offset, escaped)
    if offset >= text.shape[0] or text[offset] != byte:
        return -1
    return skip_space(text, offset + 1, escaped)


cdef inline Py_ssize_t skip_quote(const uint8_t[::1] text, Py_ssize_t offset, bint escaped) noexcept nogil:
    if follows(text, offset, b'\\"' if escaped else b'"', 1 + escaped):
        return offset + 1 + escaped
    return -1


cdef inline Py_ssize_t skip_key(
    const uint8_t[::1] text, Py_ssize_t offset, const char *key, Py_ssize_t length, bint escaped,
) noexcept nogil:
    """The offset after a key and the colon; -1 for any other key."""
    offset = skip_quote(text, offset, escaped)
    if offset < 0 or not follows(text, offset, key, length):
        return -1
    offset = skip_quote(text, offset + length, escaped)
    return skip_byte(text, offset, 58, escaped) if offset >= 0 else -1


cdef inline bint is_key(
    const uint8_t[::1] text, Py_ssize_t offset, const char *key, Py_ssize_t *value, bint escaped,
) noexcept nogil:
    """Whether a key is at an offset; ``value`` becomes the offset after the colon. ``key`` is a literal."""
    value[0] = skip_key(text, offset, key, strlen(key), escaped)
    return value[0] >= 0


cdef inline int other_key(
    const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *value, bint escaped,
) noexcept nogil:
    """Read any key; return 0. ``value`` becomes the offset after the colon, or -1 where there is no key."""
    value[0] = skip_string(text, offset, escaped)
    if value[0] >= 0:
        value[0] = skip_byte(text, value[0], 58, escaped)
    return 0


cdef inline Py_ssize_t skip_string(const uint8_t[::1] text, Py_ssize_t offset, bint escaped) noexcept nogil:
    """The offset after a string of printable ASCII."""
    offset = skip_quote(text, offset, escaped)
    if offset < 0:
        return -1
    while offset < text.shape[0] and 32 <= text[offset] < 127 and text[offset] != 34 and text[offset] != 92:
        offset += 1
    return skip_quote(text, offset, escaped)


cdef inline Py_ssize_t read_integer(const uint8_t[::1] text, Py_ssize_t offset, int32_t *number) noexcept nogil:
    """Read an integer without leading zeros. What follows it is not checked."""
    if offset + 1 < text.shape[0] and text[offset] == 48 and 48 <= text[offset + 1] <= 57:
        return -1
    return read_digits(text, offset, number)


cdef inline Py_ssize_t read_integers(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[::1] values, int32_t *count, bint escaped,
) noexcept nogil:
    """Append a list of integers to ``values``; -1 too where they do not fit."""
    offset = skip_byte(text, offset, 91, escaped)
    if offset < 0:
        return -1
    if offset < text.shape[0] and text[offset] == 93:
        return offset + 1
    while count[0] < values.shape[0]:
        offset = read_integer(text, offset, &values[count[0]])
        count[0] += 1
        if offset < 0:
            return -1
        offset = skip_space(text, offset, escaped)
        if offset < text.shape[0] and text[offset] == 93:
            return offset + 1
        offset = skip_byte(text, offset, 44, escaped)
        if offset < 0:
            return -1
    return -1
