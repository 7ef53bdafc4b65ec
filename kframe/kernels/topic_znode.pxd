"""Bounded reading of the data of a topic's znode, which is JSON in a string.

``assigned`` has the partitions, their numbers of replicas, and by partition a mark that is 0 between topics. ``used``
are the partitions and the replicas in the arrays so far. Functions return the offset after what they read, or -1.
"""

from libc.stdint cimport int32_t, uint8_t

from kframe.kernels.json_text cimport is_key, read_integer, read_integers, skip_byte, skip_quote, skip_space

cdef enum:
    # Members of a topic.
    PARTITIONS = 1
    TOPIC_ID = 2
    ADDING_REPLICAS = 4
    REMOVING_REPLICAS = 8
    TOPIC_VERSION = 16
    # Characters of a topic id.
    ID_LENGTH = 22
    # Rows of ``assigned``.
    PARTITION_ROW = 0
    REPLICAS_ROW = 1
    MARK_ROW = 2


cdef inline Py_ssize_t read_topic(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[:, ::1] assigned, int32_t[::1] replicas, int32_t *used,
    int32_t *topic_id,
) noexcept nogil:
    """Read the assignment of a topic without a reassignment; ``topic_id`` is the offset of the id, -1 for none."""
    cdef int members = 0, key = 0
    cdef Py_ssize_t value = 0
    cdef int32_t version
    topic_id[0] = -1
    offset = skip_quote(text, offset, False)
    if offset >= 0:
        offset = skip_byte(text, offset, 123, True)
    while offset >= 0:
        key = topic_member_at(text, offset, &value)
        if key == 0 or members & key:
            return -1
        members |= key
        if key == PARTITIONS:
            offset = read_partitions(text, value, assigned, replicas, used)
        elif key == TOPIC_ID:
            topic_id[0] = <int32_t>skip_quote(text, value, True)
            offset = skip_topic_id(text, topic_id[0])
        elif key == TOPIC_VERSION:
            offset = read_integer(text, value, &version)
        else:
            offset = skip_byte(text, value, 123, True)
            offset = skip_byte(text, offset, 125, True) if offset >= 0 else -1
        offset = skip_space(text, offset, True) if offset >= 0 else -1
        if 0 <= offset < text.shape[0] and text[offset] == 125:
            break
        offset = skip_byte(text, offset, 44, True) if offset >= 0 else -1
    if offset < 0 or not members & PARTITIONS:
        return -1
    return skip_quote(text, skip_space(text, offset + 1, True), False)


cdef inline int topic_member_at(const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *value) noexcept nogil:
    """The member of a topic at an offset, and the offset of its value; 0 for any other."""
    if is_key(text, offset, b"partitions", value, True):
        return PARTITIONS
    if is_key(text, offset, b"topic_id", value, True):
        return TOPIC_ID
    if is_key(text, offset, b"adding_replicas", value, True):
        return ADDING_REPLICAS
    if is_key(text, offset, b"removing_replicas", value, True):
        return REMOVING_REPLICAS
    if is_key(text, offset, b"version", value, True):
        return TOPIC_VERSION
    return 0


cdef inline Py_ssize_t skip_topic_id(const uint8_t[::1] text, Py_ssize_t offset) noexcept nogil:
    """The offset after 22 characters of URL-safe base64 and a quotation mark."""
    cdef Py_ssize_t end = offset + ID_LENGTH
    cdef uint8_t byte
    while 0 <= offset < end and offset < text.shape[0]:
        byte = text[offset]
        if not (97 <= byte <= 122 or 48 <= byte <= 57 or 65 <= byte <= 90 or byte == 95 or byte == 45):
            return -1
        offset += 1
    return skip_quote(text, offset, True) if offset == end else -1


cdef inline Py_ssize_t read_partitions(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[:, ::1] assigned, int32_t[::1] replicas, int32_t *used,
) noexcept nogil:
    """Read the replicas by partition; -1 too where a partition comes twice and where an array is full."""
    cdef int32_t first = used[0], row
    offset = skip_byte(text, offset, 123, True)
    if 0 <= offset < text.shape[0] and text[offset] == 125:
        return offset + 1
    while offset >= 0:
        offset = read_partition(text, offset, assigned, replicas, used)
        offset = skip_space(text, offset, True) if offset >= 0 else -1
        if 0 <= offset < text.shape[0] and text[offset] == 125:
            offset += 1
            break
        offset = skip_byte(text, offset, 44, True) if offset >= 0 else -1
    for row in range(first, used[0]):
        assigned[MARK_ROW, assigned[PARTITION_ROW, row]] = 0
    return offset


cdef inline Py_ssize_t read_partition(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[:, ::1] assigned, int32_t[::1] replicas, int32_t *used,
) noexcept nogil:
    """Read and mark a partition."""
    cdef int32_t partition = 0, row = used[0], replicas_before = used[1]
    offset = skip_quote(text, offset, True)
    offset = read_integer(text, offset, &partition) if offset >= 0 else -1
    offset = skip_quote(text, offset, True) if offset >= 0 else -1
    offset = skip_byte(text, offset, 58, True) if offset >= 0 else -1
    if offset < 0 or row >= assigned.shape[1] or partition >= assigned.shape[1] or assigned[MARK_ROW, partition]:
        return -1
    offset = read_integers(text, offset, replicas, &used[1], True)
    if offset >= 0:
        assigned[PARTITION_ROW, row], assigned[REPLICAS_ROW, row] = partition, used[1] - replicas_before
        assigned[MARK_ROW, partition] = 1
        used[0] += 1
    return offset
