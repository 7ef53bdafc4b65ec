"""The kernel that looks for errors in a broker's answer, which speaks of each partition of a request.

The house rules are those of kframe's own kernels: typed views, IN and OUT, nothing allocated, the GIL released, a twin
of the same name and signature in ``_naive_answers.py``. What comes from a broker is trusted in nothing: no read goes
past ``reply``, whatever stands in it. Cost is linear in the bytes read.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef inline int64_t read_varint(const uint8_t[::1] reply, Py_ssize_t* at) noexcept nogil:
    """An unsigned varint of five bytes at most; -1 if there is none. ``at`` moves past it."""
    cdef int64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 35 and at[0] < reply.shape[0]:
        byte = reply[at[0]]
        at[0] += 1
        value |= <int64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    return -1


cdef inline int64_t read_number(const uint8_t[::1] reply, Py_ssize_t* at, int size) noexcept nogil:
    """A signed number of 2 or 4 bytes; the caller has checked that they are there. ``at`` moves past it."""
    cdef uint32_t value = 0
    cdef int byte
    for byte in range(size):
        value = value << 8 | reply[at[0] + byte]
    at[0] += size
    return <int16_t><uint16_t>value if size == 2 else <int32_t>value


cdef inline int64_t read_length(const uint8_t[::1] reply, Py_ssize_t* at, bint flexible, int size) noexcept nogil:
    """A length of ``size`` bytes, or as varint of it + 1; -1 is null, -2 invalid."""
    cdef int64_t length
    if flexible:
        length = read_varint(reply, at) - 1
    elif at[0] + size > reply.shape[0]:
        return -2
    else:
        length = read_number(reply, at, size)
    return length if -1 <= length <= reply.shape[0] else -2


cdef inline bint skip_end(const uint8_t[::1] reply, Py_ssize_t* at, bint flexible) noexcept nogil:
    """Move past the tagged fields of a struct; false if there are any, or it breaks off."""
    if not flexible:
        return True
    at[0] += 1
    return at[0] <= reply.shape[0] and reply[at[0] - 1] == 0


cdef Py_ssize_t scan(
    const uint8_t[::1] reply, Py_ssize_t at, bint flexible, bint grouped, Py_ssize_t most, int32_t[:, ::1] errors,
    int32_t[::1] counts,
) noexcept nogil:
    """See ``scan_answer``."""
    cdef int64_t topics, partitions, length
    cdef Py_ssize_t topic, answered = 0, in_error = 0
    cdef int64_t index, error
    topics = read_length(reply, &at, flexible, 4)
    if topics < -1:
        return -1
    while topics > 0:
        topics -= 1
        length = 16 if grouped else read_length(reply, &at, flexible, 2)
        topic = at
        if length < 0 or length > reply.shape[0] - at:
            return -1
        at += length
        partitions = read_length(reply, &at, flexible, 4) if grouped else 1
        if partitions < -1:
            return -1
        while partitions > 0:
            partitions -= 1
            answered += 1
            if answered > most or at + 6 > reply.shape[0]:
                return -1
            index, error = read_number(reply, &at, 4), read_number(reply, &at, 2)
            if not skip_end(reply, &at, flexible):
                return -1
            if error != 0:
                errors[in_error, 0], errors[in_error, 1] = <int32_t>topic, <int32_t>length
                errors[in_error, 2], errors[in_error, 3] = <int32_t>index, <int32_t>error
                in_error += 1
        if not skip_end(reply, &at, grouped):
            return -1
    if not skip_end(reply, &at, flexible) or at != reply.shape[0]:
        return -1
    counts[0], counts[1] = <int32_t>answered, <int32_t>in_error
    return at


def scan_answer(
    const uint8_t[::1] reply,  # IN   (b,)    a whole answer
    Py_ssize_t at,             # IN           where its array of topics or partitions begins
    bint flexible,             # IN           compact lengths, and tagged fields end each struct
    bint grouped,              # IN           by topic id; otherwise each entry has the topic's name
    Py_ssize_t most,           # IN           partitions that were asked for
    int32_t[:, ::1] errors,     # OUT  (f, 4)  of each error: where the topic stands, its bytes, partition, error
    int32_t[::1] counts,       # OUT  (2,)    partitions answered for, and those in error
) -> int:
    """Where the answer ends; -1 if it breaks off, goes on behind its end, or tells of more than ``most`` partitions.

    ``errors`` needs room for every sixth byte of the answer, or for ``most``, whichever is less.
    """
    cdef Py_ssize_t end
    with nogil:
        end = scan(reply, at, flexible, grouped, most, errors, counts)
    return end
