"""Reads the entries of a reassignment in JSON. Reference: ``reference/assignments.py``.

An entry of another form is left to msgspec, which reads any form and reports errors.
"""

from libc.stdint cimport int32_t, uint8_t

from kframe.kernels.json_text cimport is_key, read_integer, read_integers, skip_byte, skip_quote, skip_space
from kframe.kernels.text cimport follows, is_same, skip_name

# Members of an entry.
cdef enum:
    TOPIC = 1
    PARTITION = 2
    REPLICAS = 4
    LOG_DIRS = 8
    REQUIRED = TOPIC | PARTITION | REPLICAS


def read_assignments(
    const uint8_t[::1] text,             # IN    entries, of which the last may be incomplete
    Py_ssize_t start,                    # IN    offset of an entry
    int32_t[:, ::1] topics,              # OUT   (m, 3) start and end of a topic's name, and its first entry
    int32_t[::1] partition,              # OUT   (k,)
    int32_t[::1] counts,                 # OUT   (k,) number of replicas
    int32_t[::1] log_dirs,               # OUT   (k,) number of log directories, all of which are "any"; -1: no list
    int32_t[::1] values,                 # OUT   (v,) broker ids
    int32_t[::1] result,                 # OUT   (3,) topics, entries, and 1 where the list of entries ends
):
    """Read entries and the commas after them; return the offset after the last.

    It stops at an entry of another form, at an incomplete entry, and where an array is full. Consecutive entries of the
    same topic share a row of ``topics``. Cost O(t).
    """
    cdef Py_ssize_t offset = start, after
    cdef Py_ssize_t[2] name
    cdef int32_t rows = 0, names = 0, used = 0, total
    cdef bint ended = False
    with nogil:
        name[0], name[1] = 0, 0
        while rows < partition.shape[0] and names < topics.shape[0] and not ended:
            total = used
            after = read_entry(text, offset, name, &partition[rows], &log_dirs[rows], values, &total)
            if after < 0 or after >= text.shape[0] or (text[after] != 44 and text[after] != 93):
                break
            ended = text[after] == 93
            offset = after + (not ended)
            counts[rows] = total - used
            used = total
            if names == 0 or name[1] - name[0] != topics[names - 1, 1] - topics[names - 1, 0] or not is_same(
                text, name[0], text, topics[names - 1, 0], name[1] - name[0]
            ):
                topics[names, 0], topics[names, 1], topics[names, 2] = <int32_t>name[0], <int32_t>name[1], rows
                names += 1
            rows += 1
        result[0], result[1], result[2] = names, rows, ended
    return offset


cdef inline Py_ssize_t read_entry(
    const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *name, int32_t *partition, int32_t *log_dirs,
    int32_t[::1] values, int32_t *used,
) noexcept nogil:
    """Read an entry; return the offset after it and whitespace."""
    cdef int keys = 0, key = 0
    cdef Py_ssize_t value = 0
    log_dirs[0] = -1
    offset = skip_byte(text, offset, 123, False)
    while offset >= 0:
        key = key_at(text, offset, &value)
        if key == 0 or keys & key:
            return -1
        keys |= key
        if key == TOPIC:
            name[0] = skip_quote(text, value, False)
            name[1] = skip_name(text, name[0]) if name[0] >= 0 else -1
            offset = skip_quote(text, name[1], False) if name[0] >= 0 else -1
        elif key == PARTITION:
            offset = read_integer(text, value, partition)
        elif key == REPLICAS:
            offset = read_integers(text, value, values, used, False)
        else:
            offset = count_any(text, value, log_dirs)
        if offset < 0:
            return -1
        offset = skip_space(text, offset, False)
        if offset < text.shape[0] and text[offset] == 125:
            return skip_space(text, offset + 1, False) if keys & REQUIRED == REQUIRED else -1
        offset = skip_byte(text, offset, 44, False)
    return -1


cdef inline int key_at(const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *value) noexcept nogil:
    """The key at an offset, and the offset of its value; 0 for any other key."""
    if is_key(text, offset, b"topic", value, False):
        return TOPIC
    if is_key(text, offset, b"partition", value, False):
        return PARTITION
    if is_key(text, offset, b"replicas", value, False):
        return REPLICAS
    if is_key(text, offset, b"log_dirs", value, False):
        return LOG_DIRS
    return 0


cdef inline Py_ssize_t count_any(const uint8_t[::1] text, Py_ssize_t offset, int32_t *count) noexcept nogil:
    """Count the items of a list of which each is ``any``: a log directory that the plan leaves open."""
    offset = skip_byte(text, offset, 91, False)
    count[0] = 0
    if 0 <= offset < text.shape[0] and text[offset] == 93:
        return offset + 1
    while offset >= 0:
        if not follows(text, offset, b'"any"', 5):
            return -1
        count[0] += 1
        offset = skip_space(text, offset + 5, False)
        if offset < text.shape[0] and text[offset] == 93:
            return offset + 1
        offset = skip_byte(text, offset, 44, False)
    return -1
