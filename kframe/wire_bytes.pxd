"""Kafka's primitive types and arrays of brokers written into a view of bytes, for the kernels of ``_wire*.pyx``.

``*_size`` say how many bytes something takes; ``put_*`` write it at ``at`` and return where the next byte goes.
``compact`` asks for the encoding of flexible versions. Numbers are big-endian.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy

from kframe.column cimport broker_t

cdef enum:
    OFFLINE_DIR = 4


cdef inline Py_ssize_t length_size(Py_ssize_t count, bint compact) noexcept nogil:
    """Bytes of an array's length: an int32, or count + 1 as an unsigned varint."""
    cdef Py_ssize_t size = 1
    if not compact:
        return 4
    count += 1
    while count >= 0x80:
        count >>= 7
        size += 1
    return size


cdef inline Py_ssize_t array_size(Py_ssize_t count, bint compact) noexcept nogil:
    """Bytes of an array of ``count`` int32."""
    return length_size(count, compact) + 4 * count


cdef inline Py_ssize_t name_size(Py_ssize_t length, bint compact) noexcept nogil:
    """Bytes of a string of ``length`` bytes: an int16 length, or length + 1 as an unsigned varint, before it."""
    return (length_size(length, True) if compact else 2) + length


cdef inline Py_ssize_t put_int8(uint8_t[::1] out, Py_ssize_t at, uint8_t value) noexcept nogil:
    out[at] = value
    return at + 1


cdef inline Py_ssize_t put_int32(uint8_t[::1] out, Py_ssize_t at, int32_t value) noexcept nogil:
    # Four stores that the compiler merges into a byte swap and one store.
    cdef uint32_t bits = <uint32_t> value
    out[at] = <uint8_t> (bits >> 24)
    out[at + 1] = <uint8_t> (bits >> 16)
    out[at + 2] = <uint8_t> (bits >> 8)
    out[at + 3] = <uint8_t> bits
    return at + 4


cdef inline Py_ssize_t put_varint(uint8_t[::1] out, Py_ssize_t at, Py_ssize_t value) noexcept nogil:
    while value >= 0x80:
        out[at] = <uint8_t> (value & 0x7F | 0x80)
        value >>= 7
        at += 1
    out[at] = <uint8_t> value
    return at + 1


cdef inline Py_ssize_t put_length(uint8_t[::1] out, Py_ssize_t at, Py_ssize_t count, bint compact) noexcept nogil:
    if compact:
        return put_varint(out, at, count + 1)
    return put_int32(out, at, <int32_t> count)


cdef inline Py_ssize_t put_bytes(
    uint8_t[::1] out, Py_ssize_t at, const uint8_t[::1] source, Py_ssize_t start, Py_ssize_t length,
) noexcept nogil:
    # The addresses are those of the last bytes, so that a debug build checks the far ends.
    if length > 0:
        memcpy(&out[at + length - 1] - (length - 1), &source[start + length - 1] - (length - 1), length)
    return at + length


cdef inline Py_ssize_t put_name(
    uint8_t[::1] out, Py_ssize_t at, const uint8_t[::1] names, Py_ssize_t start, Py_ssize_t length, bint compact,
) noexcept nogil:
    if compact:
        at = put_varint(out, at, length + 1)
    else:
        at = put_int8(out, at, <uint8_t> (length >> 8))
        at = put_int8(out, at, <uint8_t> length)
    return put_bytes(out, at, names, start, length)


cdef inline Py_ssize_t put_brokers(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const broker_t[::1] column,
    Py_ssize_t start, Py_ssize_t count, bint compact,
) noexcept nogil:
    """Array of the ids of the broker indexes that stand in ``count`` slots."""
    cdef Py_ssize_t k
    at = put_length(out, at, count, compact)
    for k in range(start, start + count):
        at = put_int32(out, at, broker_ids[column[k]])
    return at


cdef inline Py_ssize_t count_flagged(
    const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count, uint8_t flag,
) noexcept nogil:
    cdef Py_ssize_t k, found = 0
    for k in range(start, start + count):
        found += (replica_flags[k] & flag) != 0
    return found


cdef inline Py_ssize_t put_flagged(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const broker_t[::1] replica,
    const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count, uint8_t flag, bint compact,
) noexcept nogil:
    """Array of the ids of those replicas that carry ``flag``, in assignment order."""
    cdef Py_ssize_t k
    at = put_length(out, at, count_flagged(replica_flags, start, count, flag), compact)
    for k in range(start, start + count):
        if replica_flags[k] & flag:
            at = put_int32(out, at, broker_ids[replica[k]])
    return at


cdef inline bint is_offline(
    const broker_t[::1] replica, const uint8_t[::1] replica_flags, const uint8_t[::1] live, Py_ssize_t slot,
) noexcept nogil:
    return live[replica[slot]] == 0 or (replica_flags[slot] & OFFLINE_DIR) != 0


cdef inline Py_ssize_t count_offline(
    const broker_t[::1] replica, const uint8_t[::1] replica_flags, const uint8_t[::1] live,
    Py_ssize_t start, Py_ssize_t count,
) noexcept nogil:
    cdef Py_ssize_t k, found = 0
    for k in range(start, start + count):
        found += is_offline(replica, replica_flags, live, k)
    return found


cdef inline Py_ssize_t put_offline(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const broker_t[::1] replica,
    const uint8_t[::1] replica_flags, const uint8_t[::1] live, Py_ssize_t start, Py_ssize_t count, bint compact,
) noexcept nogil:
    """Array of the ids of those replicas that are not online, in assignment order."""
    cdef Py_ssize_t k
    at = put_length(out, at, count_offline(replica, replica_flags, live, start, count), compact)
    for k in range(start, start + count):
        if is_offline(replica, replica_flags, live, k):
            at = put_int32(out, at, broker_ids[replica[k]])
    return at
