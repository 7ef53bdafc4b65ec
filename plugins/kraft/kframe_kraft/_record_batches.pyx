"""Split the records of a batch, read the frames of their values, and join values to records.

The layout is that of Kafka's ``DefaultRecord`` (message format 2). The metadata log uses a part of it: timestamp deltas
are 0, offset deltas count from 0, and there are no headers (Kafka ``RecordsIterator``).

The rules are those of ``kframe/_core.pyx``: typed views, IN and OUT, no allocation, and no GIL. ``_naive_batches.py``
has a reference implementation with the same names and signatures. No read or write passes the end of a view. The cost
is linear in the bytes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe_kraft.wire cimport Sink, Source, has, put_byte, put_bytes, put_signed, read_int8, read_signed, read_unsigned
from kframe_kraft.wire cimport unsigned_size


cdef inline void take_bytes(Source* source, int64_t* at, int32_t* length) noexcept nogil:
    """The position and length of a key or value; the length -1 is null."""
    cdef int64_t size = read_signed(source)
    at[0], length[0] = source.at, -1
    if size < -1:
        source.failed = True
    if size >= 0 and has(source, size):
        length[0] = <int32_t> size
        source.at += size


cdef inline bint take_record(
    Source* source, int64_t number, int64_t* key_at, int32_t* key_length, int64_t* value_at, int32_t* value_length,
) noexcept nogil:
    """One record; false if it is malformed."""
    cdef int64_t size = read_signed(source)
    cdef Py_ssize_t batch_end = source.end
    if source.failed or not has(source, size):
        return False
    source.end = source.at + size
    read_int8(source)
    if read_signed(source) != 0 or read_signed(source) != number:
        return False
    take_bytes(source, key_at, key_length)
    take_bytes(source, value_at, value_length)
    if read_signed(source) != 0 or source.failed or source.at != source.end:
        return False
    source.end = batch_end
    return True


def split_records(
    const uint8_t[::1] payload,   # IN   (b,)  the records of a batch
    int64_t[::1] key_at,          # OUT  (n,)  where the key of each record begins
    int32_t[::1] key_length,      # OUT  (n,)  its bytes; -1 is null
    int64_t[::1] value_at,        # OUT  (n,)
    int32_t[::1] value_length,    # OUT  (n,)
) -> int:
    """Return -1, or the number of the first malformed record; n if bytes follow the last one."""
    cdef Py_ssize_t i, count = key_at.shape[0], malformed = -1
    cdef Source source
    source.data = &payload[0] if payload.shape[0] else NULL
    source.at, source.end, source.failed = 0, payload.shape[0], False
    with nogil:
        for i in range(count):
            if not take_record(&source, i, &key_at[i], &key_length[i], &value_at[i], &value_length[i]):
                malformed = i
                break
        if malformed < 0 and source.at != source.end:
            malformed = count
    return malformed


def read_frames(
    const uint8_t[::1] payload,       # IN   (b,)
    const int64_t[::1] value_at,      # IN   (n,)
    const int32_t[::1] value_length,  # IN   (n,)  within payload
    int32_t[::1] api_key,             # OUT  (n,)  type of each record
    int32_t[::1] version,             # OUT  (n,)
    int64_t[::1] body_at,             # OUT  (n,)  where the body after the frame begins
) -> int:
    """Return -1, or the number of the first value without a frame of version 1."""
    cdef Py_ssize_t i, malformed = -1
    cdef Source source
    source.data = &payload[0] if payload.shape[0] else NULL
    source.failed = False
    with nogil:
        for i in range(value_at.shape[0]):
            source.at, source.end = value_at[i], value_at[i] + value_length[i]
            if value_length[i] < 0 or read_unsigned(&source) != 1:
                malformed = i
                break
            api_key[i], version[i] = <int32_t> read_unsigned(&source), <int32_t> read_unsigned(&source)
            body_at[i] = source.at
            if source.failed:
                malformed = i
                break
    return malformed


def join_records(
    const uint8_t[::1] values,     # IN   (b,)    the values, one after another
    const int64_t[::1] value_at,   # IN   (n+1,)  where each begins, and the end of the last
    int64_t[::1] record_at,        # OUT  (n+1,)  where each record begins in out, and the end of the last
    uint8_t[::1] out,              # OUT  (room,) the records of a batch
) -> int:
    """Return the bytes written, or -1 if ``out`` is too short; b + 20 n bytes suffice."""
    cdef Py_ssize_t i, count = value_at.shape[0] - 1
    cdef int64_t length, body
    cdef Sink sink
    sink.data = &out[0] if out.shape[0] else NULL
    sink.at, sink.end, sink.failed = 0, out.shape[0], False
    with nogil:
        for i in range(count):
            record_at[i] = sink.at
            length = value_at[i + 1] - value_at[i]
            body = 4 + unsigned_size(2 * i) + unsigned_size(2 * length) + length
            put_signed(&sink, body)
            put_byte(&sink, 0)
            put_byte(&sink, 0)
            put_signed(&sink, i)
            put_signed(&sink, -1)
            put_signed(&sink, length)
            put_bytes(&sink, &values[value_at[i]] if length else NULL, length)
            put_byte(&sink, 0)
        record_at[count] = sink.at
    return -1 if sink.failed else sink.at
