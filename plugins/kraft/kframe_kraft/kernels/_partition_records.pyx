"""Partition and PartitionChange records between bytes and columns, without a Python object for each record.

Decoding has two passes. ``parse_*`` reads the fixed fields and notes where the lists are; ``copy_ids`` and
``copy_directories`` then fill lists of exactly the right size. The fields are those of Kafka 4.4's
``PartitionRecord.json`` and ``PartitionChangeRecord.json``; versions 0 to 2.

The rules are those of ``kframe/_core.pyx``: typed views, IN and OUT, no allocation, and no GIL.
``verification/reference/partition_records.py`` has a reference implementation with the same names and signatures. No
read or write passes the end of a view. The cost is linear in the bytes.

Common arguments: ``list_start`` and ``list_count`` have a row for each list, in the order of the enum below. A count
of -1 is null. Where decoding uses ``list_start`` for bytes, encoding uses it for elements.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kframe_kraft.kernels.wire cimport Sink, Source, has_bytes, put_byte, put_bytes, put_int32, put_unsigned, read_int8
from kframe_kraft.kernels.wire cimport read_int32, read_unsigned, unsigned_size

cdef enum:
    REPLICAS = 0
    ISR = 1
    REMOVING = 2
    ADDING = 3
    ELR = 4
    LAST_KNOWN_ELR = 5
    DIRECTORIES = 6
    PARTITION = 3
    PARTITION_CHANGE = 5
    # The values of a change that keep leader and recovery state.
    NO_LEADER_CHANGE = -2
    NO_RECOVERY_CHANGE = -1


cdef inline void read_list(
    Source* source, int number, bint nullable, Py_ssize_t row, int64_t[:, ::1] list_start, int32_t[:, ::1] list_count,
) noexcept nogil:
    cdef int64_t count = read_unsigned(source) - 1
    cdef int64_t size = count * (16 if number == DIRECTORIES else 4)
    if count < 0:
        if not nullable:
            source.failed = True
        return
    list_start[number, row] = source.position
    if has_bytes(source, size):
        list_count[number, row] = <int32_t> count
        source.position += size


cdef inline int list_of_tag(int64_t tag, int version) noexcept nogil:
    """The list that a tag of PartitionChange has in this version; -1 for none."""
    if tag == 0:
        return ISR
    if 2 <= tag <= 4:
        return REPLICAS if tag == 2 else REMOVING if tag == 3 else ADDING
    if 6 <= tag <= 7 and version >= 2:
        return ELR if tag == 6 else LAST_KNOWN_ELR
    return DIRECTORIES if tag == 8 and version >= 1 else -1


cdef inline void read_tags(
    Source* source, int kind, int version, Py_ssize_t row, int32_t* leader, int8_t* recovery,
    int64_t[:, ::1] list_start, int32_t[:, ::1] list_count,
) noexcept nogil:
    """The tagged fields, which end the record; unknown ones are skipped."""
    cdef int64_t tag, size, previous = -1, tags = read_unsigned(source)
    cdef Py_ssize_t field_end
    cdef int number
    while tags > 0 and not source.failed:
        tags -= 1
        tag, size = read_unsigned(source), read_unsigned(source)
        if tag <= previous or not has_bytes(source, size):
            source.failed = True
            return
        previous, field_end = tag, source.position + size
        if kind == PARTITION_CHANGE:
            number = list_of_tag(tag, version)
        else:
            number = <int> (ELR + tag - 1) if version >= 2 and 1 <= tag <= 2 else -1
        if number >= 0:
            read_list(source, number, True, row, list_start, list_count)
        elif tag == (5 if kind == PARTITION_CHANGE else 0):
            recovery[0] = read_int8(source)
        elif tag == 1 and kind == PARTITION_CHANGE:
            leader[0] = read_int32(source)
        else:
            source.position = field_end
        if source.position != field_end:
            source.failed = True
    if source.position != source.end:
        source.failed = True


cdef inline void read_key(
    Source* source, Py_ssize_t row, int32_t[::1] partition, uint8_t[:, ::1] topic_id, int32_t[:, ::1] list_count,
) noexcept nogil:
    """Partition and topic id; all lists are null at first."""
    cdef int number
    partition[row] = read_int32(source)
    if has_bytes(source, 16):
        memcpy(&topic_id[row, 0], source.data + source.position, 16)
        source.position += 16
    for number in range(DIRECTORIES + 1):
        list_count[number, row] = -1


cdef inline bint open_body(
    Source* source, const uint8_t[::1] payload, int64_t start, int64_t end, int version,
) noexcept nogil:
    """Point the source at a body; false if it is outside ``payload``, or the version is unknown."""
    source.data = &payload[0] if payload.shape[0] else NULL
    source.position, source.end, source.failed = start, end, False
    return 0 <= start <= end <= payload.shape[0] and 0 <= version <= 2


def parse_partitions(
    const uint8_t[::1] payload,         # IN   (b,)
    const int64_t[::1] body_start,      # IN   (n,)     where the body of each record begins
    const int64_t[::1] body_end,        # IN   (n,)
    const int32_t[::1] version,         # IN   (n,)
    int32_t[::1] partition,             # OUT  (n,)
    uint8_t[:, ::1] topic_id,           # OUT  (n, 16)
    int32_t[::1] leader,                # OUT  (n,)
    int8_t[::1] recovery,               # OUT  (n,)
    int32_t[::1] leader_epoch,          # OUT  (n,)
    int32_t[::1] partition_epoch,       # OUT  (n,)
    int64_t[:, ::1] list_start,         # OUT  (7, n)
    int32_t[:, ::1] list_count,         # OUT  (7, n)
) -> int:
    """Return -1, or the number of the first malformed PartitionRecord."""
    cdef Py_ssize_t i, malformed = -1
    cdef int number
    cdef Source source
    with nogil:
        for i in range(body_start.shape[0]):
            if not open_body(&source, payload, body_start[i], body_end[i], version[i]):
                malformed = i
                break
            read_key(&source, i, partition, topic_id, list_count)
            for number in range(ADDING + 1):
                read_list(&source, number, False, i, list_start, list_count)
            leader[i], recovery[i] = read_int32(&source), 0
            leader_epoch[i], partition_epoch[i] = read_int32(&source), read_int32(&source)
            if version[i] >= 1:
                read_list(&source, DIRECTORIES, False, i, list_start, list_count)
            read_tags(&source, PARTITION, version[i], i, &leader[i], &recovery[i], list_start, list_count)
            if source.failed:
                malformed = i
                break
    return malformed


def parse_changes(
    const uint8_t[::1] payload,         # IN   (b,)
    const int64_t[::1] body_start,      # IN   (n,)     where the body of each record begins
    const int64_t[::1] body_end,        # IN   (n,)
    const int32_t[::1] version,         # IN   (n,)
    int32_t[::1] partition,             # OUT  (n,)
    uint8_t[:, ::1] topic_id,           # OUT  (n, 16)
    int32_t[::1] leader,                # OUT  (n,)     -2 keeps the leader
    int8_t[::1] recovery,               # OUT  (n,)     -1 keeps the state
    int64_t[:, ::1] list_start,         # OUT  (7, n)
    int32_t[:, ::1] list_count,         # OUT  (7, n)
) -> int:
    """Return -1, or the number of the first malformed PartitionChangeRecord."""
    cdef Py_ssize_t i, malformed = -1
    cdef Source source
    with nogil:
        for i in range(body_start.shape[0]):
            if not open_body(&source, payload, body_start[i], body_end[i], version[i]):
                malformed = i
                break
            read_key(&source, i, partition, topic_id, list_count)
            leader[i], recovery[i] = NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
            read_tags(&source, PARTITION_CHANGE, version[i], i, &leader[i], &recovery[i], list_start, list_count)
            if source.failed:
                malformed = i
                break
    return malformed


def copy_ids(
    const uint8_t[::1] payload,     # IN   (b,)
    const int64_t[::1] starts,      # IN   (n,)    where each list begins
    const int32_t[::1] offsets,     # IN   (n+1,)  of the lists in out
    int32_t[::1] out,               # OUT  (m,)    broker ids
) -> int:
    """Return the ids copied, or -1 if a list is outside ``payload`` or ``out``."""
    cdef Py_ssize_t i, j
    cdef Source source
    source.data = &payload[0] if payload.shape[0] else NULL
    source.end, source.failed = payload.shape[0], False
    with nogil:
        for i in range(starts.shape[0]):
            if offsets[i] == offsets[i + 1]:
                continue
            if starts[i] < 0 or offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > out.shape[0]:
                source.failed = True
                break
            source.position = starts[i]
            for j in range(offsets[i], offsets[i + 1]):
                out[j] = read_int32(&source)
            if source.failed:
                break
    return -1 if source.failed else offsets[starts.shape[0]]


def copy_directories(
    const uint8_t[::1] payload,     # IN   (b,)
    const int64_t[::1] starts,      # IN   (n,)    where each list begins
    const int32_t[::1] offsets,     # IN   (n+1,)  of the lists in out
    uint8_t[:, ::1] out,            # OUT  (m, 16) directory ids
) -> int:
    """Return the ids copied, or -1 if a list is outside ``payload`` or ``out``."""
    cdef Py_ssize_t i
    cdef int64_t count
    cdef bint failed = False
    with nogil:
        for i in range(starts.shape[0]):
            count = offsets[i + 1] - offsets[i]
            if count == 0:
                continue
            if count < 0 or offsets[i] < 0 or offsets[i + 1] > out.shape[0] or starts[i] < 0 \
                    or 16 * count > payload.shape[0] - starts[i]:
                failed = True
                break
            memcpy(&out[offsets[i], 0], &payload[starts[i]], 16 * count)
    return -1 if failed else offsets[starts.shape[0]]


cdef inline void put_list(
    Sink* out, int number, Py_ssize_t row, const int32_t[::1] ids, const uint8_t[:, ::1] directories,
    const int64_t[:, ::1] list_start, const int32_t[:, ::1] list_count,
) noexcept nogil:
    cdef int64_t i, start = list_start[number, row], count = list_count[number, row]
    put_unsigned(out, count + 1)
    if count > 0 and (start < 0 or count > (directories.shape[0] if number == DIRECTORIES else ids.shape[0]) - start):
        out.failed = True
    elif count > 0 and number == DIRECTORIES:
        put_bytes(out, &directories[start, 0], 16 * count)
    else:
        for i in range(start, start + count):
            put_int32(out, ids[i])


cdef inline void put_tagged_list(
    Sink* out, int tag, int number, Py_ssize_t row, const int32_t[::1] ids, const uint8_t[:, ::1] directories,
    const int64_t[:, ::1] list_start, const int32_t[:, ::1] list_count,
) noexcept nogil:
    cdef int64_t count = list_count[number, row]
    if count < 0:
        return
    put_unsigned(out, tag)
    put_unsigned(out, unsigned_size(count + 1) + (16 if number == DIRECTORIES else 4) * count)
    put_list(out, number, row, ids, directories, list_start, list_count)


cdef inline void put_frame(
    Sink* out, int kind, int version, Py_ssize_t row, const int32_t[::1] partition, const uint8_t[:, ::1] topic_id,
) noexcept nogil:
    put_byte(out, 1)
    put_byte(out, kind)
    put_byte(out, version)
    put_int32(out, partition[row])
    put_bytes(out, &topic_id[row, 0], 16)


cdef inline void put_tagged_number(Sink* out, int tag, int size, int32_t value) noexcept nogil:
    put_byte(out, tag)
    put_byte(out, size)
    if size == 4:
        put_int32(out, value)
    else:
        put_byte(out, value & 0xFF)


def write_partitions(
    int version,                            # IN
    const int32_t[::1] partition,           # IN   (n,)
    const uint8_t[:, ::1] topic_id,         # IN   (n, 16)
    const int32_t[::1] leader,              # IN   (n,)
    const int8_t[::1] recovery,             # IN   (n,)
    const int32_t[::1] leader_epoch,        # IN   (n,)
    const int32_t[::1] partition_epoch,     # IN   (n,)
    const int32_t[::1] ids,                 # IN   (m,)     all lists of brokers
    const uint8_t[:, ::1] directories,      # IN   (d, 16)
    const int64_t[:, ::1] list_start,       # IN   (7, n)
    const int32_t[:, ::1] list_count,       # IN   (7, n)   lists that the version lacks are null
    int64_t[::1] value_start,               # OUT  (n+1,)   where each value begins, and the end of the last
    uint8_t[::1] out,                       # OUT  (capacity,)
) -> int:
    """Return the bytes of the PartitionRecords, or -1 if ``out`` is too short or a list is outside its array."""
    cdef Py_ssize_t i, count = partition.shape[0]
    cdef int number
    cdef Sink sink
    sink.data = &out[0] if out.shape[0] else NULL
    sink.position, sink.end, sink.failed = 0, out.shape[0], False
    with nogil:
        for i in range(count):
            value_start[i] = sink.position
            put_frame(&sink, PARTITION, version, i, partition, topic_id)
            for number in range(ADDING + 1):
                put_list(&sink, number, i, ids, directories, list_start, list_count)
            put_int32(&sink, leader[i])
            put_int32(&sink, leader_epoch[i])
            put_int32(&sink, partition_epoch[i])
            if version >= 1:
                put_list(&sink, DIRECTORIES, i, ids, directories, list_start, list_count)
            put_byte(&sink, (recovery[i] != 0) + (list_count[ELR, i] >= 0) + (list_count[LAST_KNOWN_ELR, i] >= 0))
            if recovery[i] != 0:
                put_tagged_number(&sink, 0, 1, recovery[i])
            put_tagged_list(&sink, 1, ELR, i, ids, directories, list_start, list_count)
            put_tagged_list(&sink, 2, LAST_KNOWN_ELR, i, ids, directories, list_start, list_count)
        value_start[count] = sink.position
    return -1 if sink.failed else sink.position


def write_changes(
    int version,                            # IN
    const int32_t[::1] partition,           # IN   (n,)
    const uint8_t[:, ::1] topic_id,         # IN   (n, 16)
    const int32_t[::1] leader,              # IN   (n,)     -2 keeps the leader
    const int8_t[::1] recovery,             # IN   (n,)     -1 keeps the state
    const int32_t[::1] ids,                 # IN   (m,)     all lists of brokers
    const uint8_t[:, ::1] directories,      # IN   (d, 16)
    const int64_t[:, ::1] list_start,       # IN   (7, n)
    const int32_t[:, ::1] list_count,       # IN   (7, n)   lists that the version lacks are null
    int64_t[::1] value_start,               # OUT  (n+1,)   where each value begins, and the end of the last
    uint8_t[::1] out,                       # OUT  (capacity,)
) -> int:
    """Return the bytes of the PartitionChangeRecords, or -1 if ``out`` is too short or a list is outside its array."""
    cdef Py_ssize_t i, count = partition.shape[0]
    cdef int number, tags, tag
    cdef Sink sink
    sink.data = &out[0] if out.shape[0] else NULL
    sink.position, sink.end, sink.failed = 0, out.shape[0], False
    with nogil:
        for i in range(count):
            value_start[i] = sink.position
            put_frame(&sink, PARTITION_CHANGE, version, i, partition, topic_id)
            tags = (leader[i] != NO_LEADER_CHANGE) + (recovery[i] != NO_RECOVERY_CHANGE)
            for number in range(DIRECTORIES + 1):
                tags += list_count[number, i] >= 0
            put_byte(&sink, tags)
            for tag in range(9):
                if tag == 1 and leader[i] != NO_LEADER_CHANGE:
                    put_tagged_number(&sink, 1, 4, leader[i])
                elif tag == 5 and recovery[i] != NO_RECOVERY_CHANGE:
                    put_tagged_number(&sink, 5, 1, recovery[i])
                elif tag != 1 and tag != 5:
                    put_tagged_list(
                        &sink, tag, list_of_tag(tag, 2), i, ids, directories, list_start, list_count
                    )
        value_start[count] = sink.position
    return -1 if sink.failed else sink.position
