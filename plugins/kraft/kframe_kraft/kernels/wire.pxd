"""Read and write Kafka's flexible encoding byte by byte, for the kernels of records.

``Source`` is the input, ``Sink`` the output. The functions never pass the end: they set ``failed`` and return 0.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cdef struct Source:
    const uint8_t* data
    Py_ssize_t position
    Py_ssize_t end
    bint failed

cdef struct Sink:
    uint8_t* data
    Py_ssize_t position
    Py_ssize_t end
    bint failed


cdef inline bint has_bytes(Source* source, int64_t size) noexcept nogil:
    """Whether this many bytes follow; if not, ``failed`` is set."""
    if size < 0 or size > source.end - source.position:
        source.failed = True
    return not source.failed


cdef inline int64_t read_unsigned(Source* source) noexcept nogil:
    """An unsigned varint of up to 31 bits."""
    cdef int64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 35 and has_bytes(source, 1):
        byte = source.data[source.position]
        source.position += 1
        value |= <int64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            if value <= 0x7FFFFFFF:
                return value
            break
        shift += 7
    source.failed = True
    return 0


cdef inline int64_t read_signed(Source* source) noexcept nogil:
    """A zigzag varint of up to 31 bits before decoding, as lengths and small deltas are."""
    cdef int64_t value = read_unsigned(source)
    return (value >> 1) ^ -(value & 1)


cdef inline int32_t read_int32(Source* source) noexcept nogil:
    cdef const uint8_t* data = source.data + source.position
    if not has_bytes(source, 4):
        return 0
    source.position += 4
    return <int32_t> (<uint32_t> data[0] << 24 | <uint32_t> data[1] << 16 | <uint32_t> data[2] << 8 | data[3])


cdef inline int8_t read_int8(Source* source) noexcept nogil:
    if not has_bytes(source, 1):
        return 0
    source.position += 1
    return <int8_t> source.data[source.position - 1]


cdef inline void put_byte(Sink* out, int value) noexcept nogil:
    if out.position < out.end:
        out.data[out.position] = <uint8_t> value
        out.position += 1
    else:
        out.failed = True


cdef inline void put_unsigned(Sink* out, int64_t value) noexcept nogil:
    while value > 0x7F:
        put_byte(out, <int> (value & 0x7F | 0x80))
        value >>= 7
    put_byte(out, <int> value)


cdef inline void put_signed(Sink* out, int64_t value) noexcept nogil:
    put_unsigned(out, (value << 1) ^ (value >> 63))


cdef inline void put_int32(Sink* out, int32_t value) noexcept nogil:
    cdef uint32_t bits = <uint32_t> value
    cdef uint8_t* data = out.data + out.position
    if out.end - out.position < 4:
        out.failed = True
        return
    data[0], data[1] = <uint8_t> (bits >> 24), <uint8_t> (bits >> 16)
    data[2], data[3] = <uint8_t> (bits >> 8), <uint8_t> bits
    out.position += 4


cdef inline void put_bytes(Sink* out, const uint8_t* data, int64_t size) noexcept nogil:
    if out.end - out.position < size:
        out.failed = True
    elif size > 0:
        memcpy(out.data + out.position, data, size)
        out.position += size


cdef inline int unsigned_size(int64_t value) noexcept nogil:
    """The bytes of an unsigned varint."""
    cdef int size = 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size
