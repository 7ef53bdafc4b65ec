"""Reads the topics of ``kcat -L -J``. Reference: ``reference/kcat_topics.py``.

A topic of another form is left to msgspec, which reads any form and reports errors.
"""

from libc.stdint cimport int32_t, uint8_t

from kframe.kernels.json_text cimport (
    is_key, read_integer, skip_byte, skip_key, skip_quote, skip_space, skip_string,
)
from kframe.kernels.text cimport skip_name

cdef enum:
    PARTITION = 1
    LEADER = 2
    REPLICAS = 4
    ISRS = 8
    ERROR = 16
    REQUIRED = PARTITION | LEADER | REPLICAS | ISRS
    # What the text at an offset is.
    TOPIC_START = 0
    PARTITION_START = 1
    LIST_END = 2


def read_kcat_topics(
    const uint8_t[::1] text,             # IN    topics, of which the last may be incomplete
    Py_ssize_t start,                    # IN    offset of a topic or of a partition
    int state,                           # IN    0: a topic is at the offset, 1: a partition
    int32_t[:, ::1] topics,              # OUT   (m, 4) start and end of the name, the first partition, 1: with an error
    int32_t[::1] partition,              # OUT   (k,)
    int32_t[::1] leader,                 # OUT   (k,) broker id; -1 for none
    int32_t[:, ::1] counts,              # OUT   (2, k) number of replicas, in-sync replicas
    int32_t[:, ::1] values,              # OUT   (2, v) broker ids of the replicas, of the in-sync replicas
    int32_t[::1] result,                 # OUT   (3,) topics, partitions, what is at the offset; 2: the end of the list
):
    """Read topics and partitions; return the offset after the last.

    It stops at text of another form, at an incomplete topic or partition, and where an array is full. Cost O(t).
    """
    cdef Py_ssize_t offset = start, after
    cdef Py_ssize_t[2] name
    cdef int32_t rows = 0, names = 0
    cdef int32_t[2] used
    cdef int32_t[2] ends
    cdef int32_t error = 0
    with nogil:
        used[0], used[1], name[0], name[1] = 0, 0, 0, 0
        while rows < partition.shape[0] and names < topics.shape[0] and state != LIST_END:
            if state == TOPIC_START:
                after = read_topic(text, offset, name, &error)
                if after < 0 or after >= text.shape[0]:
                    break
                if text[after] == 93:
                    after = end_topic(text, after, &state)
                else:
                    state = PARTITION_START
                if after < 0:
                    break
                topics[names, 0], topics[names, 1] = <int32_t>name[0], <int32_t>name[1]
                topics[names, 2], topics[names, 3] = rows, error
                names += 1
            else:
                ends[0], ends[1] = used[0], used[1]
                after = read_partition(text, offset, &partition[rows], &leader[rows], values, ends)
                if after < 0 or after >= text.shape[0]:
                    break
                after = end_topic(text, after, &state) if text[after] == 93 else skip_byte(text, after, 44, False)
                if after < 0:
                    break
                counts[0, rows], counts[1, rows] = ends[0] - used[0], ends[1] - used[1]
                used[0], used[1] = ends[0], ends[1]
                rows += 1
            offset = after
        result[0], result[1], result[2] = names, rows, state
    return offset


cdef inline Py_ssize_t end_topic(const uint8_t[::1] text, Py_ssize_t offset, int *state) noexcept nogil:
    """The offset after the end of a topic and the comma, or at the end of the list; -1 if it is incomplete."""
    offset = skip_byte(text, offset, 93, False)
    if offset >= 0:
        offset = skip_byte(text, offset, 125, False)
    if offset < 0 or offset >= text.shape[0]:
        return -1
    if text[offset] == 93:
        state[0] = LIST_END
        return offset
    offset = skip_byte(text, offset, 44, False)
    if offset >= 0:
        state[0] = TOPIC_START
    return offset


cdef inline Py_ssize_t read_topic(
    const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *name, int32_t *error,
) noexcept nogil:
    """Read a topic up to its first partition, or to the end of its empty list."""
    cdef Py_ssize_t value
    offset = skip_byte(text, offset, 123, False)
    if offset >= 0:
        offset = skip_key(text, offset, b"topic", 5, False)
    if offset >= 0:
        offset = skip_quote(text, offset, False)
    if offset < 0:
        return -1
    name[0], name[1] = offset, skip_name(text, offset)
    offset = skip_quote(text, name[1], False)
    if offset >= 0:
        offset = skip_byte(text, offset, 44, False)
    if offset < 0:
        return -1
    value = skip_key(text, offset, b"error", 5, False)
    error[0] = value >= 0
    if value >= 0:
        offset = skip_string(text, value, False)
        if offset >= 0:
            offset = skip_byte(text, offset, 44, False)
    if offset >= 0:
        offset = skip_key(text, offset, b"partitions", 10, False)
    return skip_byte(text, offset, 91, False) if offset >= 0 else -1


cdef inline Py_ssize_t read_partition(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t *partition, int32_t *leader, int32_t[:, ::1] values,
    int32_t *ends,
) noexcept nogil:
    """Read a partition; return the offset after it and whitespace."""
    cdef int keys = 0, key = 0
    cdef Py_ssize_t value = 0
    offset = skip_byte(text, offset, 123, False)
    while offset >= 0:
        key = key_at(text, offset, &value)
        if key == 0 or keys & key:
            return -1
        keys |= key
        if key == PARTITION:
            offset = read_integer(text, value, partition)
        elif key == LEADER:
            offset = read_leader(text, value, leader)
        elif key == ERROR:
            offset = skip_string(text, value, False)
        else:
            offset = read_ids(text, value, values[key == ISRS], &ends[key == ISRS])
        if offset < 0:
            return -1
        offset = skip_space(text, offset, False)
        if offset < text.shape[0] and text[offset] == 125:
            return skip_space(text, offset + 1, False) if keys & REQUIRED == REQUIRED else -1
        offset = skip_byte(text, offset, 44, False)
    return -1


cdef inline int key_at(const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *value) noexcept nogil:
    """The key at an offset, and the offset of its value; 0 for any other key."""
    if is_key(text, offset, b"partition", value, False):
        return PARTITION
    if is_key(text, offset, b"leader", value, False):
        return LEADER
    if is_key(text, offset, b"replicas", value, False):
        return REPLICAS
    if is_key(text, offset, b"isrs", value, False):
        return ISRS
    if is_key(text, offset, b"error", value, False):
        return ERROR
    return 0


cdef inline Py_ssize_t read_leader(const uint8_t[::1] text, Py_ssize_t offset, int32_t *leader) noexcept nogil:
    """Read a broker id or -1. The text after the number is not checked."""
    if offset + 1 < text.shape[0] and text[offset] == 45 and text[offset + 1] == 49:
        leader[0] = -1
        return offset + 2
    return read_integer(text, offset, leader)


cdef inline Py_ssize_t read_ids(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[::1] values, int32_t *count,
) noexcept nogil:
    """Append the ids of a list of objects with nothing else; -1 too where they do not fit."""
    offset = skip_byte(text, offset, 91, False)
    if 0 <= offset < text.shape[0] and text[offset] == 93:
        return offset + 1
    while offset >= 0 and count[0] < values.shape[0]:
        offset = skip_byte(text, offset, 123, False)
        if offset >= 0:
            offset = skip_key(text, offset, b"id", 2, False)
        if offset >= 0:
            offset = read_integer(text, offset, &values[count[0]])
            count[0] += 1
        if offset >= 0:
            offset = skip_byte(text, offset, 125, False)
        if 0 <= offset < text.shape[0] and text[offset] == 93:
            return offset + 1
        if offset >= 0:
            offset = skip_byte(text, offset, 44, False)
    return -1
