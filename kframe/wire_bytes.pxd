"""Kafka's primitive types and arrays of brokers written into a view of bytes, for the kernels of ``_wire*.pyx``.

``*_size`` say how many bytes something takes; ``put_*`` write it at ``at`` and return where the next byte goes.
``compact`` asks for the encoding of flexible versions. Numbers are big-endian.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kframe.column cimport broker_t

cdef enum:
    OFFLINE_DIR = 4

cdef enum:
    NO_LEADER = -1
    LEADER_DURING_DELETE = -2

cdef enum:
    WORD = 8

# A word read from it WORD - count bytes behind its beginning is ``count`` bytes of ones, then zeros, on any machine.
cdef extern from *:
    """
    static const unsigned char KFRAME_ONES[16] = {255, 255, 255, 255, 255, 255, 255, 255};
    """
    const uint8_t KFRAME_ONES[2 * WORD]

cdef extern from *:
    """
    /* Compilers see a byte swap in it; four stores of a byte they merge in some places only. */
    static CYTHON_INLINE uint32_t kframe_big_endian(uint32_t bits) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return bits;
    #else
        return bits >> 24 | (bits >> 8 & 0xFF00) | (bits << 8 & 0xFF0000) | bits << 24;
    #endif
    }
    """
    uint32_t big_endian "kframe_big_endian"(uint32_t bits) noexcept nogil


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
    # The address is that of the last byte, so that a debug build checks the far end.
    cdef uint32_t bits = big_endian(<uint32_t> value)
    memcpy(&out[at + 3] - 3, &bits, 4)
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


cdef inline Py_ssize_t put_state(
    uint8_t[::1] out, Py_ssize_t at, bint three, bint deleting, int32_t partition, int32_t controller_epoch,
    broker_t leader, int32_t leader_epoch, int32_t partition_epoch, const int32_t[::1] broker_ids,
    const broker_t[::1] replica, const broker_t[::1] isr, Py_ssize_t start, Py_ssize_t count, Py_ssize_t in_sync,
    bint compact,
) noexcept nogil:
    """What entries of LeaderAndIsr and UpdateMetadata have in common.

    ``three`` says that the row has three replicas, three of them in sync, and that the encoding is compact: so usual
    that it is worth a path of its own, without loops. ``deleting``: the row's topic is being deleted, and told so.
    """
    cdef Py_ssize_t k
    put_int32(out, at, partition)
    put_int32(out, at + 4, controller_epoch)
    if deleting:
        put_int32(out, at + 8, LEADER_DURING_DELETE)
        leader_epoch = partition_epoch = 0
    else:
        put_int32(out, at + 8, NO_LEADER if leader < 0 else broker_ids[leader])
    put_int32(out, at + 12, leader_epoch)
    if three:
        put_int8(out, at + 16, 4)
        put_int32(out, at + 29, partition_epoch)
        put_int8(out, at + 33, 4)
        for k in range(3):
            put_int32(out, at + 17 + 4 * k, broker_ids[isr[start + k]])
            put_int32(out, at + 34 + 4 * k, broker_ids[replica[start + k]])
        return at + 46
    at = put_brokers(out, at + 16, broker_ids, isr, start, in_sync, compact)
    at = put_int32(out, at, partition_epoch)
    return put_brokers(out, at, broker_ids, replica, start, count, compact)


cdef inline uint64_t each_byte(uint64_t value) noexcept nogil:
    """A byte eight times; of eight bytes, the sums of the first ones, the highest byte that of all."""
    return value * <uint64_t> 0x0101010101010101


cdef inline bint in_word(const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    """Whether the flags of these replicas can be read as one word, which takes less than a loop over a few."""
    return count <= WORD and start + WORD <= replica_flags.shape[0]


cdef inline bint unflagged(
    const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count, uint8_t flags,
) noexcept nogil:
    """Whether one word is enough to tell that none of these replicas carries any of ``flags``."""
    return in_word(replica_flags, start, count) and flag_word(replica_flags, start, count, flags) == 0


cdef inline uint64_t flag_word(
    const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count, uint8_t flags,
) noexcept nogil:
    """A byte for each of the replicas, with those of ``flags`` that it carries."""
    cdef uint64_t eight, ones
    memcpy(&eight, &replica_flags[start], WORD)
    memcpy(&ones, &KFRAME_ONES[WORD - count], WORD)
    return eight & ones & each_byte(flags)


cdef inline Py_ssize_t count_flagged(
    const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count, uint8_t flag,
) noexcept nogil:
    """How many replicas carry ``flag``, a single bit."""
    cdef Py_ssize_t k, found = 0
    if in_word(replica_flags, start, count):
        # The product's highest byte is the sum of all bytes.
        return <Py_ssize_t> (each_byte(flag_word(replica_flags, start, count, flag) // flag) >> 56)
    for k in range(start, start + count):
        found += (replica_flags[k] & flag) != 0
    return found


cdef inline Py_ssize_t put_flagged(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const broker_t[::1] replica,
    const uint8_t[::1] replica_flags, Py_ssize_t start, Py_ssize_t count, uint8_t flag, bint compact,
) noexcept nogil:
    """Array of the ids of those replicas that carry ``flag``, in assignment order."""
    cdef Py_ssize_t k, found = count_flagged(replica_flags, start, count, flag)
    at = put_length(out, at, found, compact)
    if found == 0:
        return at
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
    # Without a loop it takes a fifth less.
    if count == 3 and unflagged(replica_flags, start, count, OFFLINE_DIR):
        for k in range(3):
            found += live[replica[start + k]] == 0
        return found
    for k in range(start, start + count):
        found += is_offline(replica, replica_flags, live, k)
    return found


cdef inline Py_ssize_t put_offline(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const broker_t[::1] replica,
    const uint8_t[::1] replica_flags, const uint8_t[::1] live, Py_ssize_t start, Py_ssize_t count, bint compact,
) noexcept nogil:
    """Array of the ids of those replicas that are not online, in assignment order."""
    cdef Py_ssize_t k, found = count_offline(replica, replica_flags, live, start, count)
    at = put_length(out, at, found, compact)
    if found == 0:
        return at
    for k in range(start, start + count):
        if is_offline(replica, replica_flags, live, k):
            at = put_int32(out, at, broker_ids[replica[k]])
    return at
