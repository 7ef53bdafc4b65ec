"""The kernel that finds the errors in a broker's response to a control request.

As in kframe's own kernels, views are typed, nothing is allocated and the GIL is released.
``verification/reference/responses.py`` has the reference implementation with the same signature. Bytes from a broker
are untrusted: no read goes past ``reply``. Cost is linear in the bytes read.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef inline int64_t read_varint(const uint8_t[::1] reply, Py_ssize_t* offset) noexcept nogil:
    """An unsigned varint of five bytes at most; -1 if there is none. ``offset`` moves past it."""
    cdef int64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 35 and offset[0] < reply.shape[0]:
        byte = reply[offset[0]]
        offset[0] += 1
        value |= <int64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    return -1


cdef inline int64_t read_number(const uint8_t[::1] reply, Py_ssize_t* offset, int size) noexcept nogil:
    """A signed number of 2 or 4 bytes; the caller has checked that they are there. ``offset`` moves past it."""
    cdef uint32_t value = 0
    cdef int byte
    for byte in range(size):
        value = value << 8 | reply[offset[0] + byte]
    offset[0] += size
    return <int16_t><uint16_t>value if size == 2 else <int32_t>value


cdef inline int64_t read_length(const uint8_t[::1] reply, Py_ssize_t* offset, bint flexible, int size) noexcept nogil:
    """A length of ``size`` bytes, or as varint of it + 1; -1 is null, -2 invalid."""
    cdef int64_t length
    if flexible:
        length = read_varint(reply, offset) - 1
    elif offset[0] + size > reply.shape[0]:
        return -2
    else:
        length = read_number(reply, offset, size)
    return length if -1 <= length <= reply.shape[0] else -2


cdef inline bint skip_end(const uint8_t[::1] reply, Py_ssize_t* offset, bint flexible) noexcept nogil:
    """Move past the tagged fields of a struct; false if there are any, or it breaks off."""
    if not flexible:
        return True
    offset[0] += 1
    return offset[0] <= reply.shape[0] and reply[offset[0] - 1] == 0


cdef Py_ssize_t scan(
    const uint8_t[::1] reply, Py_ssize_t offset, bint flexible, bint by_topic_id, Py_ssize_t max_partitions,
    int32_t[:, ::1] errors, int32_t[::1] counts,
) noexcept nogil:
    """See ``scan_response``."""
    cdef int64_t topics, partitions, length
    cdef Py_ssize_t topic, partition_count = 0, error_count = 0
    cdef int64_t index, error
    topics = read_length(reply, &offset, flexible, 4)
    if topics < -1:
        return -1
    while topics > 0:
        topics -= 1
        length = 16 if by_topic_id else read_length(reply, &offset, flexible, 2)
        topic = offset
        if length < 0 or length > reply.shape[0] - offset:
            return -1
        offset += length
        partitions = read_length(reply, &offset, flexible, 4) if by_topic_id else 1
        if partitions < -1:
            return -1
        while partitions > 0:
            partitions -= 1
            partition_count += 1
            if partition_count > max_partitions or offset + 6 > reply.shape[0]:
                return -1
            index, error = read_number(reply, &offset, 4), read_number(reply, &offset, 2)
            if not skip_end(reply, &offset, flexible):
                return -1
            if error != 0:
                errors[error_count, 0], errors[error_count, 1] = <int32_t>topic, <int32_t>length
                errors[error_count, 2], errors[error_count, 3] = <int32_t>index, <int32_t>error
                error_count += 1
        if not skip_end(reply, &offset, by_topic_id):
            return -1
    if not skip_end(reply, &offset, flexible) or offset != reply.shape[0]:
        return -1
    counts[0], counts[1] = <int32_t>partition_count, <int32_t>error_count
    return offset


def scan_response(
    const uint8_t[::1] reply,   # IN   (b,)    a whole response
    Py_ssize_t offset,          # IN           of its array of topics or partitions
    bint flexible,              # IN           compact lengths, and tagged fields end each struct
    bint by_topic_id,           # IN           grouped by topic id; otherwise each entry has the topic's name
    Py_ssize_t max_partitions,  # IN           partitions in the request
    int32_t[:, ::1] errors,     # OUT  (f, 4)  of each error: offset and length of the topic, partition, error code
    int32_t[::1] counts,        # OUT  (2,)    partitions in the response, and those in error
) -> int:
    """The end of the response; -1 if it is truncated, has trailing bytes, or more than ``max_partitions`` partitions.

    ``errors`` needs a row for every sixth byte of the response, or ``max_partitions`` rows, whichever is less.
    """
    cdef Py_ssize_t end
    with nogil:
        end = scan(reply, offset, flexible, by_topic_id, max_partitions, errors, counts)
    return end
