"""Kernels that turn columns into the bytes of LeaderAndIsr, UpdateMetadata and StopReplica requests.

A request's partitions stand in a *section*: an array of topics, each with its name (and topic id) and an array of
*entries*, one a partition; before LeaderAndIsr 2, UpdateMetadata 5 and StopReplica 1 a flat array of entries, the name
before each. Bytes are written in two passes, so that memory is allocated once and exactly: ``size_*`` says how long
each entry will be, ``fit_section`` how many of them a request may hold and how long its section will be;
``frame_section`` writes all that stands between entries and says where each goes, ``write_*`` and ``copy_entries``
fill them in. What was written is compared with what was planned: ``frame_section`` returns a length, the others return
how many entries came out as long as they were sized.

A partition's LeaderAndIsr entry is the same for every broker but for one byte, ``is_new``. It is therefore written once
into a *pool*, whose rows ascend and so read the columns in order, and copied from there for each of its replicas.

The house rules are those of ``_core.pyx``: typed views, IN and OUT, no allocation, the GIL released, callers check
ranges once, a twin of the same name and signature in ``_naive_wire.py``. Arguments that recur: ``rows`` (k,) partition
rows; (n,) row columns, (s,) slot columns and (b,) broker columns as in ``kframe/model``; ``topic_deleting`` (t,) 1 where
the topic is queued for deletion; ``name_offsets`` (t+1,) and ``names`` the topic names in UTF-8; ``topic_ids`` (16t,);
``compact`` whether the version is flexible: compact lengths, and a count of tagged fields (always 0) ends each struct.
All numbers on the wire are big-endian. Cost is linear in what is read and written, unless said otherwise.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cdef enum:
    ADDING = 1
    REMOVING = 2
    OFFLINE_DIR = 4

cdef enum:
    NO_LEADER = -1
    LEADER_DURING_DELETE = -2

cdef enum:
    TOPIC_ID_BYTES = 16

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define KFRAME_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define KFRAME_PREFETCH(address) ((void)0)
    #endif
    """
    void KFRAME_PREFETCH(const void* address) noexcept nogil


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
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const int32_t[::1] column,
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
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const int32_t[::1] replica,
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
    const int32_t[::1] replica, const uint8_t[::1] replica_flags, const uint8_t[::1] live, Py_ssize_t slot,
) noexcept nogil:
    return live[replica[slot]] == 0 or (replica_flags[slot] & OFFLINE_DIR) != 0


cdef inline Py_ssize_t count_offline(
    const int32_t[::1] replica, const uint8_t[::1] replica_flags, const uint8_t[::1] live,
    Py_ssize_t start, Py_ssize_t count,
) noexcept nogil:
    cdef Py_ssize_t k, found = 0
    for k in range(start, start + count):
        found += is_offline(replica, replica_flags, live, k)
    return found


cdef inline Py_ssize_t put_offline(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] broker_ids, const int32_t[::1] replica,
    const uint8_t[::1] replica_flags, const uint8_t[::1] live, Py_ssize_t start, Py_ssize_t count, bint compact,
) noexcept nogil:
    """Array of the ids of those replicas that are not online, in assignment order."""
    cdef Py_ssize_t k
    at = put_length(out, at, count_offline(replica, replica_flags, live, start, count), compact)
    for k in range(start, start + count):
        if is_offline(replica, replica_flags, live, k):
            at = put_int32(out, at, broker_ids[replica[k]])
    return at


def fit_section(
    const int32_t[::1] rows,          # IN   (k,)    grouped by topic
    Py_ssize_t start,                 # IN           first of them that this section holds
    int64_t byte_limit,               # IN           most bytes of the section; its first entry goes in at any length
    const int32_t[::1] entry_size,    # IN   (n,)    bytes of each row's entry
    const int32_t[::1] topic,         # IN   (n,)
    const int32_t[::1] name_offsets,  # IN   (t+1,)
    bint grouped,                     # IN           an array of topics, rather than of entries
    bint compact,                     # IN
    bint with_topic_ids,              # IN           topics carry their id
    int64_t[::1] measured,            # OUT  (2,)    bytes of the section; length of its outer array
):
    """Take rows from ``start`` for as long as they fit; return the position after the last one taken."""
    cdef Py_ssize_t i = start, count = rows.shape[0], items = 0, run = 0
    cdef int64_t growth, total = length_size(0, compact)
    cdef int32_t at_topic, current = -1
    with nogil:
        while i < count:
            if i + 16 < count:
                KFRAME_PREFETCH(&topic[rows[i + 16]])
                KFRAME_PREFETCH(&entry_size[rows[i + 16]])
            at_topic = topic[rows[i]]
            growth = entry_size[rows[i]]
            if grouped and at_topic == current:
                growth += length_size(run + 1, compact) - length_size(run, compact)
            else:
                growth += length_size(items + 1, compact) - length_size(items, compact)
                growth += name_size(name_offsets[at_topic + 1] - name_offsets[at_topic], compact)
                if grouped:
                    growth += TOPIC_ID_BYTES * with_topic_ids + length_size(1, compact) + compact
            if i > start and total + growth > byte_limit:
                break
            if grouped and at_topic == current:
                run += 1
            else:
                items += 1
                run = 1
            current = at_topic
            total += growth
            i += 1
    measured[0] = total
    measured[1] = items
    return i


def frame_section(
    const int32_t[::1] rows,          # IN   (k,)    grouped by topic
    const int32_t[::1] entry_size,    # IN   (n,)    bytes of each row's entry
    const int32_t[::1] topic,         # IN   (n,)
    const int32_t[::1] name_offsets,  # IN   (t+1,)
    const uint8_t[::1] names,         # IN
    const uint8_t[::1] topic_ids,     # IN   (16t,)
    Py_ssize_t items,                 # IN           length of the outer array, from fit_section
    bint grouped,                     # IN           as for fit_section
    bint compact,                     # IN
    bint with_topic_ids,              # IN
    int64_t[::1] entry_at,            # OUT  (k,)    where the entry of ``rows[i]`` goes
    uint8_t[::1] out,                 # OUT          the section; entries are left as they are
):
    """Write a section but for its entries; return its length."""
    cdef Py_ssize_t i = 0, stop, at, count = rows.shape[0]
    cdef int32_t current
    with nogil:
        at = put_length(out, 0, items, compact)
        while i < count:
            current = topic[rows[i]]
            at = put_name(
                out, at, names, name_offsets[current], name_offsets[current + 1] - name_offsets[current], compact
            )
            stop = i + 1
            if grouped:
                while stop < count and topic[rows[stop]] == current:
                    stop += 1
                if with_topic_ids:
                    at = put_bytes(out, at, topic_ids, TOPIC_ID_BYTES * <Py_ssize_t> current, TOPIC_ID_BYTES)
                at = put_length(out, at, stop - i, compact)
            while i < stop:
                if i + 16 < count:
                    KFRAME_PREFETCH(&topic[rows[i + 16]])
                    KFRAME_PREFETCH(&entry_size[rows[i + 16]])
                    KFRAME_PREFETCH(&name_offsets[topic[rows[i + 8]]])
                entry_at[i] = at
                at += entry_size[rows[i]]
                i += 1
            if compact:
                at = put_int8(out, at, 0)
    return at


def size_leader_and_isr(
    const int32_t[::1] rows,           # IN   (k,)
    int version,                       # IN           LeaderAndIsr 0 to 7
    const int32_t[::1] slot_start,     # IN   (n,)
    const int16_t[::1] replica_count,  # IN   (n,)
    const int16_t[::1] isr_count,      # IN   (n,)
    const uint8_t[::1] replica_flags,  # IN   (s,)
    int32_t[::1] entry_size,           # OUT  (n,)    bytes of the entry; other rows untouched
):
    """Measure the LeaderAndIsr entries of ``rows``; return their bytes in all."""
    cdef Py_ssize_t i, start, count, size, row
    cdef int64_t total = 0
    cdef bint compact = version >= 4
    cdef Py_ssize_t fixed = 20 + (version >= 1) + (version >= 6) + compact
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            size = fixed + array_size(isr_count[row], compact) + array_size(count, compact)
            if version >= 3:
                size += array_size(count_flagged(replica_flags, start, count, ADDING), compact)
                size += array_size(count_flagged(replica_flags, start, count, REMOVING), compact)
            entry_size[row] = <int32_t> size
            total += size
    return total


def write_leader_and_isr(
    const int32_t[::1] rows,              # IN   (k,)
    int version,                          # IN           LeaderAndIsr 0 to 7
    const int32_t[::1] partition,         # IN   (n,)
    const int32_t[::1] leader,            # IN   (n,)
    const int32_t[::1] leader_epoch,      # IN   (n,)
    const int32_t[::1] controller_epoch,  # IN   (n,)
    const int32_t[::1] partition_epoch,   # IN   (n,)
    const uint8_t[::1] recovery,          # IN   (n,)
    const int32_t[::1] slot_start,        # IN   (n,)
    const int16_t[::1] replica_count,     # IN   (n,)
    const int16_t[::1] isr_count,         # IN   (n,)
    const int32_t[::1] replica,           # IN   (s,)
    const int32_t[::1] isr,               # IN   (s,)
    const uint8_t[::1] replica_flags,     # IN   (s,)
    const int32_t[::1] broker_ids,        # IN   (b,)
    const int32_t[::1] entry_size,        # IN   (n,)    from size_leader_and_isr
    int64_t[::1] pool_at,                 # OUT  (n,)    where the row's entry stands; other rows untouched
    uint8_t[::1] pool,                    # OUT          entries one after another, ``is_new`` 0
):
    """Write the LeaderAndIsr entries of ``rows``; return how many came out as long as they were sized."""
    cdef Py_ssize_t i = 0, at = 0, start, count, row
    cdef bint compact = version >= 4
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            pool_at[row] = at
            at = put_int32(pool, at, partition[row])
            at = put_int32(pool, at, controller_epoch[row])
            at = put_int32(pool, at, NO_LEADER if leader[row] < 0 else broker_ids[leader[row]])
            at = put_int32(pool, at, leader_epoch[row])
            at = put_brokers(pool, at, broker_ids, isr, start, isr_count[row], compact)
            at = put_int32(pool, at, partition_epoch[row])
            at = put_brokers(pool, at, broker_ids, replica, start, count, compact)
            if version >= 3:
                at = put_flagged(pool, at, broker_ids, replica, replica_flags, start, count, ADDING, compact)
                at = put_flagged(pool, at, broker_ids, replica, replica_flags, start, count, REMOVING, compact)
            if version >= 1:
                at = put_int8(pool, at, 0)
            if version >= 6:
                at = put_int8(pool, at, recovery[row])
            if compact:
                at = put_int8(pool, at, 0)
            if at - pool_at[row] != entry_size[row]:
                break
        else:
            i = rows.shape[0]
    return i


def copy_entries(
    const int32_t[::1] rows,        # IN   (k,)
    const uint8_t[::1] is_new,      # IN   (k,)    1 where the broker is to create the replica
    Py_ssize_t is_new_back,         # IN           where ``is_new`` stands, from the entry's end; 0 if it has none
    const int32_t[::1] entry_size,  # IN   (n,)
    const int64_t[::1] pool_at,     # IN   (n,)
    const uint8_t[::1] pool,        # IN           entries of all rows
    const int64_t[::1] entry_at,    # IN   (k,)    where the entry of ``rows[i]`` goes, from frame_section
    uint8_t[::1] out,               # OUT          the section
):
    """Copy the LeaderAndIsr entries of ``rows`` into a section, each with its ``is_new``; return how many."""
    cdef Py_ssize_t i, at, count = rows.shape[0]
    with nogil:
        for i in range(count):
            # A broker's rows lie far apart, so the pool is read at random: ask for what comes next early.
            if i + 24 < count:
                KFRAME_PREFETCH(&pool_at[rows[i + 24]])
                KFRAME_PREFETCH(&entry_size[rows[i + 24]])
                KFRAME_PREFETCH(&pool[pool_at[rows[i + 12]]])
                KFRAME_PREFETCH(&pool[pool_at[rows[i + 12]] + 50])
            at = put_bytes(out, entry_at[i], pool, pool_at[rows[i]], entry_size[rows[i]])
            if is_new_back:
                out[at - is_new_back] = is_new[i]
    return count


def mark_leaders(
    const int32_t[::1] rows,    # IN   (k,)
    const int32_t[::1] leader,  # IN   (n,)
    uint8_t[::1] leads,         # OUT  (b,)    1 where the broker leads one of the rows; others untouched
):
    """Mark the brokers that lead ``rows``; return how many rows have a leader."""
    cdef Py_ssize_t i, led = 0
    cdef int32_t broker
    with nogil:
        for i in range(rows.shape[0]):
            broker = leader[rows[i]]
            if broker >= 0:
                leads[broker] = 1
                led += 1
    return led


def size_update_metadata(
    const int32_t[::1] rows,           # IN   (k,)
    int version,                       # IN           UpdateMetadata 0 to 8
    const int32_t[::1] slot_start,     # IN   (n,)
    const int16_t[::1] replica_count,  # IN   (n,)
    const int16_t[::1] isr_count,      # IN   (n,)
    const int32_t[::1] replica,        # IN   (s,)
    const uint8_t[::1] replica_flags,  # IN   (s,)
    const uint8_t[::1] live,           # IN   (b,)    1 where the broker is registered and not shutting down
    int32_t[::1] entry_size,           # OUT  (n,)    bytes of the entry; other rows untouched
):
    """Measure the UpdateMetadata entries of ``rows``; return their bytes in all."""
    cdef Py_ssize_t i, start, count, size, row
    cdef int64_t total = 0
    cdef bint compact = version >= 6
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            size = 20 + array_size(isr_count[row], compact) + array_size(count, compact) + compact
            if version >= 4:
                size += array_size(count_offline(replica, replica_flags, live, start, count), compact)
            entry_size[row] = <int32_t> size
            total += size
    return total


def write_update_metadata(
    const int32_t[::1] rows,              # IN   (k,)
    int version,                          # IN           UpdateMetadata 0 to 8
    const int32_t[::1] topic,             # IN   (n,)
    const int32_t[::1] partition,         # IN   (n,)
    const int32_t[::1] leader,            # IN   (n,)
    const int32_t[::1] leader_epoch,      # IN   (n,)
    const int32_t[::1] controller_epoch,  # IN   (n,)
    const int32_t[::1] partition_epoch,   # IN   (n,)
    const int32_t[::1] slot_start,        # IN   (n,)
    const int16_t[::1] replica_count,     # IN   (n,)
    const int16_t[::1] isr_count,         # IN   (n,)
    const int32_t[::1] replica,           # IN   (s,)
    const int32_t[::1] isr,               # IN   (s,)
    const uint8_t[::1] replica_flags,     # IN   (s,)
    const int32_t[::1] broker_ids,        # IN   (b,)
    const uint8_t[::1] live,              # IN   (b,)
    const uint8_t[::1] topic_deleting,    # IN   (t,)
    const int32_t[::1] entry_size,        # IN   (n,)    from size_update_metadata
    const int64_t[::1] entry_at,          # IN   (k,)    from frame_section
    uint8_t[::1] out,                     # OUT          the section
):
    """Write the UpdateMetadata entries of ``rows``; return how many came out as long as they were sized.

    A partition of a topic that is being deleted is told with leader -2, leader epoch 0 and zkVersion 0.
    """
    cdef Py_ssize_t i = 0, at, start, count, row
    cdef int32_t told
    cdef bint deleting, compact = version >= 6
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            deleting = topic_deleting[topic[row]]
            told = NO_LEADER if leader[row] < 0 else broker_ids[leader[row]]
            at = put_int32(out, entry_at[i], partition[row])
            at = put_int32(out, at, controller_epoch[row])
            at = put_int32(out, at, LEADER_DURING_DELETE if deleting else told)
            at = put_int32(out, at, 0 if deleting else leader_epoch[row])
            at = put_brokers(out, at, broker_ids, isr, start, isr_count[row], compact)
            at = put_int32(out, at, 0 if deleting else partition_epoch[row])
            at = put_brokers(out, at, broker_ids, replica, start, count, compact)
            if version >= 4:
                at = put_offline(out, at, broker_ids, replica, replica_flags, live, start, count, compact)
            if compact:
                at = put_int8(out, at, 0)
            if at - entry_at[i] != entry_size[row]:
                break
        else:
            i = rows.shape[0]
    return i


def write_stop_replica(
    const int32_t[::1] rows,          # IN   (k,)
    int version,                      # IN           StopReplica 0 to 4
    const int32_t[::1] partition,     # IN   (n,)
    const int32_t[::1] leader_epoch,  # IN   (k,)    as told; version 3 and later
    const uint8_t[::1] delete,        # IN   (k,)    1 where the replica is to be deleted; version 3 and later
    const int32_t[::1] entry_size,    # IN   (n,)
    const int64_t[::1] entry_at,      # IN   (k,)    from frame_section
    uint8_t[::1] out,                 # OUT          the section
):
    """Write the StopReplica entries of ``rows``; return how many came out as long as they were sized."""
    cdef Py_ssize_t i = 0, at
    with nogil:
        for i in range(rows.shape[0]):
            at = put_int32(out, entry_at[i], partition[rows[i]])
            if version >= 3:
                at = put_int32(out, at, leader_epoch[i])
                at = put_int8(out, at, delete[i])
                at = put_int8(out, at, 0)
            if at - entry_at[i] != entry_size[rows[i]]:
                break
        else:
            i = rows.shape[0]
    return i
