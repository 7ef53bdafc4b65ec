"""Split the records of a batch, read the frames of their values, and join values to records.

The layout is that of Kafka's ``DefaultRecord`` (message format 2). The metadata log uses a part of it: timestamp deltas
are 0, offset deltas count from 0, and there are no headers (Kafka ``RecordsIterator``).

The rules are those of ``kframe/_core.pyx``: typed views, IN and OUT, no allocation, and no GIL.
``verification/reference/record_batches.py`` has a reference implementation with the same names and signatures. No read
or write passes the end of a view. The cost is linear in the bytes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe_kraft.kernels.wire cimport Sink, Source, has_bytes, put_byte, put_bytes, put_signed, read_int8, read_signed
from kframe_kraft.kernels.wire cimport read_unsigned, unsigned_size


cdef inline void read_byte_string(Source* source, int64_t* start, int32_t* length) noexcept nogil:
    """The position and length of a key or value; the length -1 is null."""
    cdef int64_t size = read_signed(source)
    start[0], length[0] = source.position, -1
    if size < -1:
        source.failed = True
    if size >= 0 and has_bytes(source, size):
        length[0] = <int32_t> size
        source.position += size


cdef inline bint read_record(
    Source* source, int64_t number, int64_t* key_start, int32_t* key_length, int64_t* value_start,
    int32_t* value_length,
) noexcept nogil:
    """One record; false if it is malformed."""
    cdef int64_t size = read_signed(source)
    cdef Py_ssize_t batch_end = source.end
    if source.failed or not has_bytes(source, size):
        return False
    source.end = source.position + size
    read_int8(source)
    if read_signed(source) != 0 or read_signed(source) != number:
        return False
    read_byte_string(source, key_start, key_length)
    read_byte_string(source, value_start, value_length)
    if read_signed(source) != 0 or source.failed or source.position != source.end:
        return False
    source.end = batch_end
    return True


def split_records(
    const uint8_t[::1] payload,   # IN   (b,)  the records of a batch
    int64_t[::1] key_start,       # OUT  (n,)  where the key of each record begins
    int32_t[::1] key_length,      # OUT  (n,)  its bytes; -1 is null
    int64_t[::1] value_start,     # OUT  (n,)
    int32_t[::1] value_length,    # OUT  (n,)
) -> int:
    """Return -1, or the number of the first malformed record; n if bytes follow the last one."""
    cdef Py_ssize_t i, count = key_start.shape[0], malformed = -1
    cdef Source source
    source.data = &payload[0] if payload.shape[0] else NULL
    source.position, source.end, source.failed = 0, payload.shape[0], False
    with nogil:
        for i in range(count):
            if not read_record(&source, i, &key_start[i], &key_length[i], &value_start[i], &value_length[i]):
                malformed = i
                break
        if malformed < 0 and source.position != source.end:
            malformed = count
    return malformed


def read_frames(
    const uint8_t[::1] payload,       # IN   (b,)
    const int64_t[::1] value_start,   # IN   (n,)
    const int32_t[::1] value_length,  # IN   (n,)  within payload
    int32_t[::1] api_key,             # OUT  (n,)  type of each record
    int32_t[::1] version,             # OUT  (n,)
    int64_t[::1] body_start,          # OUT  (n,)  where the body after the frame begins
) -> int:
    """Return -1, or the number of the first value without a frame of version 1."""
    cdef Py_ssize_t i, malformed = -1
    cdef Source source
    source.data = &payload[0] if payload.shape[0] else NULL
    source.failed = False
    with nogil:
        for i in range(value_start.shape[0]):
            source.position, source.end = value_start[i], value_start[i] + value_length[i]
            if value_length[i] < 0 or read_unsigned(&source) != 1:
                malformed = i
                break
            api_key[i], version[i] = <int32_t> read_unsigned(&source), <int32_t> read_unsigned(&source)
            body_start[i] = source.position
            if source.failed:
                malformed = i
                break
    return malformed


def join_records(
    const uint8_t[::1] values,       # IN   (b,)         the values, one after another
    const int64_t[::1] value_start,  # IN   (n+1,)       where each begins, and the end of the last
    int64_t[::1] record_start,       # OUT  (n+1,)       where each record begins in out, and the end of the last
    uint8_t[::1] out,                # OUT  (capacity,)  the records of a batch
) -> int:
    """Return the bytes written, or -1 if ``out`` is too short; b + 20 n bytes suffice."""
    cdef Py_ssize_t i, count = value_start.shape[0] - 1
    cdef int64_t length, body
    cdef Sink sink
    sink.data = &out[0] if out.shape[0] else NULL
    sink.position, sink.end, sink.failed = 0, out.shape[0], False
    with nogil:
        for i in range(count):
            record_start[i] = sink.position
            length = value_start[i + 1] - value_start[i]
            body = 4 + unsigned_size(2 * i) + unsigned_size(2 * length) + length
            put_signed(&sink, body)
            put_byte(&sink, 0)
            put_byte(&sink, 0)
            put_signed(&sink, i)
            put_signed(&sink, -1)
            put_signed(&sink, length)
            put_bytes(&sink, &values[value_start[i]] if length else NULL, length)
            put_byte(&sink, 0)
        record_start[count] = sink.position
    return -1 if sink.failed else sink.position
