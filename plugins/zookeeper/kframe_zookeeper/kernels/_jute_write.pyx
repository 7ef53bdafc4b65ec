"""Encode partition columns as operations of ZooKeeper's multi requests that read or store states.

The path of a state is ``root`` + topic + ``/partitions/`` + N + ``/state``. Its data is the JSON of
``kafka.zk.TopicPartitionStateZNode`` (Kafka 3.9).

The layouts are those of ZooKeeper 3.8's ``zookeeper.jute``. Numbers are big-endian. Strings and buffers follow an int32
length, which is -1 for null. In a multi, each operation follows a header: int32 type, byte done, int32 error.
``session/requests.py`` adds the end marker.

The rules are those of ``kframe/_core.pyx``: typed views, IN and OUT, no allocation, and no GIL. Callers check ranges
once. ``verification/reference/jute.py`` has a reference implementation with the same names and signatures. Every write
is checked against the end of ``out``.

Common arguments: ``topic`` and ``partition`` name the partition of each row. ``name_offsets`` has the offset of each
topic's name in ``names``. The cost is linear in the bytes written.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

cdef enum:
    # Operation codes in the headers of operations.
    CREATE = 1
    GET_DATA = 4
    SET_DATA = 5

cdef struct Sink:
    uint8_t* data
    Py_ssize_t offset
    Py_ssize_t end
    bint full


cdef inline void put_byte(Sink* out, int value) noexcept nogil:
    if out.offset < out.end:
        out.data[out.offset] = <uint8_t> value
        out.offset += 1
    else:
        out.full = True


cdef inline void put_int32(Sink* out, int32_t value) noexcept nogil:
    cdef uint32_t bits = <uint32_t> value
    put_byte(out, bits >> 24)
    put_byte(out, bits >> 16 & 0xFF)
    put_byte(out, bits >> 8 & 0xFF)
    put_byte(out, bits & 0xFF)


cdef inline void put_header(Sink* out, int operation) noexcept nogil:
    put_int32(out, operation)
    put_byte(out, 0)
    put_int32(out, -1)


cdef inline void put_text(Sink* out, const char* text) noexcept nogil:
    cdef Py_ssize_t i = 0
    while text[i] != 0:
        put_byte(out, <uint8_t> text[i])
        i += 1


cdef inline void put_bytes(Sink* out, const uint8_t[::1] source, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        put_byte(out, source[i])


cdef inline void put_decimal(Sink* out, int32_t value) noexcept nogil:
    cdef uint8_t digits[10]
    cdef int count = 0
    cdef uint32_t rest = <uint32_t> value
    if value < 0:
        put_byte(out, 45)
        rest = 0 - rest
    while True:
        digits[count] = <uint8_t> (48 + rest % 10)
        count += 1
        rest //= 10
        if rest == 0:
            break
    while count:
        count -= 1
        put_byte(out, digits[count])


cdef inline void fill_length(Sink* out, Py_ssize_t mark) noexcept nogil:
    """Write the number of bytes since ``mark`` into the int32 at ``mark``."""
    cdef Sink length = Sink(out.data, mark, out.offset, False)
    put_int32(&length, <int32_t> (out.offset - mark - 4))


cdef inline void put_path(
    Sink* out,
    const uint8_t[::1] root,
    const uint8_t[::1] names,
    Py_ssize_t begin,
    Py_ssize_t end,
    int32_t partition,
    bint of_state,
) noexcept nogil:
    """Write the path of a partition, or of its state, with its length."""
    cdef Py_ssize_t mark = out.offset
    put_int32(out, 0)
    put_bytes(out, root, 0, root.shape[0])
    put_bytes(out, names, begin, end)
    put_text(out, b"/partitions/")
    put_decimal(out, partition)
    if of_state:
        put_text(out, b"/state")
    fill_length(out, mark)


def write_reads(
    const int32_t[::1] topic,         # IN   (k,)
    const int32_t[::1] partition,     # IN   (k,)
    const int32_t[::1] name_offsets,  # IN   (t+1,)
    const uint8_t[::1] names,         # IN   (bytes,)
    const uint8_t[::1] root,          # IN   (bytes,)   path of all topics, slash included
    uint8_t[::1] out,                 # OUT  (bytes,)   getData operations, one a row
):
    """Encode a read of the state of each row. Return the bytes written, or -1 if ``out`` is too short."""
    cdef Py_ssize_t i
    cdef Sink sink = Sink(NULL, 0, out.shape[0], False)
    if out.shape[0]:
        sink.data = &out[0]
    with nogil:
        for i in range(topic.shape[0]):
            put_header(&sink, GET_DATA)
            put_path(&sink, root, names, name_offsets[topic[i]], name_offsets[topic[i] + 1], partition[i], True)
            put_byte(&sink, 0)
    return -1 if sink.full else sink.offset


cdef inline void put_state(
    Sink* out,
    int32_t leader,
    int32_t leader_epoch,
    int recovery,
    int32_t controller_epoch,
    const int32_t[::1] isr,
    Py_ssize_t begin,
    Py_ssize_t end,
) noexcept nogil:
    """Write the JSON of a state with its length, with the keys in Kafka's order."""
    cdef Py_ssize_t i, mark = out.offset
    put_int32(out, 0)
    put_text(out, b'{"controller_epoch":')
    put_decimal(out, controller_epoch)
    put_text(out, b',"leader":')
    put_decimal(out, leader)
    put_text(out, b',"version":1')
    if recovery:
        put_text(out, b',"leader_recovery_state":1')
    put_text(out, b',"leader_epoch":')
    put_decimal(out, leader_epoch)
    put_text(out, b',"isr":[')
    for i in range(begin, end):
        if i > begin:
            put_byte(out, 44)
        put_decimal(out, isr[i])
    put_byte(out, 93)
    put_byte(out, 125)
    fill_length(out, mark)


def write_states(
    const int32_t[::1] topic,         # IN   (k,)
    const int32_t[::1] partition,     # IN   (k,)
    const int32_t[::1] name_offsets,  # IN   (t+1,)
    const uint8_t[::1] names,         # IN   (bytes,)
    const uint8_t[::1] root,          # IN   (bytes,)   path of all topics, slash included
    const uint8_t[::1] acl,           # IN   (bytes,)   as a create operation holds it
    const int32_t[::1] leader,        # IN   (k,)       broker id or -1
    const int32_t[::1] leader_epoch,  # IN   (k,)
    const uint8_t[::1] recovery,      # IN   (k,)
    const int32_t[::1] isr_offsets,   # IN   (k+1,)
    const int32_t[::1] isr,           # IN   (values,)  broker ids
    const int32_t[::1] expected,      # IN   (k,)       version that must stand; -1: create
    const uint8_t[::1] parent,        # IN   (k,)       1 where .../partitions/N is to be created, too
    int32_t controller_epoch,         # IN
    int64_t[::1] row_offsets,         # OUT  (k+1,)     where the operations of each row begin, and the last end
    uint8_t[::1] out,                 # OUT  (bytes,)   setData or create operations
):
    """Encode the write of the state of each row. Return the bytes written, or -1 if ``out`` is too short."""
    cdef Py_ssize_t i, begin, end
    cdef Sink sink = Sink(NULL, 0, out.shape[0], False)
    if out.shape[0]:
        sink.data = &out[0]
    with nogil:
        row_offsets[0] = 0
        for i in range(topic.shape[0]):
            begin, end = name_offsets[topic[i]], name_offsets[topic[i] + 1]
            if parent[i]:
                put_header(&sink, CREATE)
                put_path(&sink, root, names, begin, end, partition[i], False)
                put_int32(&sink, -1)
                put_bytes(&sink, acl, 0, acl.shape[0])
                put_int32(&sink, 0)
            put_header(&sink, CREATE if expected[i] == -1 else SET_DATA)
            put_path(&sink, root, names, begin, end, partition[i], True)
            put_state(&sink, leader[i], leader_epoch[i], recovery[i], controller_epoch, isr, isr_offsets[i],
                      isr_offsets[i + 1])
            if expected[i] == -1:
                put_bytes(&sink, acl, 0, acl.shape[0])
                put_int32(&sink, 0)
            else:
                put_int32(&sink, expected[i])
            row_offsets[i + 1] = sink.offset
    return -1 if sink.full else sink.offset
