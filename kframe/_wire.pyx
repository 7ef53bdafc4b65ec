"""Kernels that turn columns into the entries of LeaderAndIsr, UpdateMetadata and StopReplica requests.

An *entry* is what a request says of one partition; ``_wire_sections.pyx`` has the rest of the request. Bytes are
written in two passes, so that memory is allocated once and exactly: ``size_*`` says how long each entry will be,
``frame_sections`` where it goes, and ``write_*`` and ``copy_entries`` fill it in. What was written is compared with
what was planned: the kernels that write return how many entries came out as long as they were sized.

A partition's LeaderAndIsr entry is the same for every broker but for one byte, ``is_new``. It is therefore written once
into a *pool*, whose rows ascend and so read the columns in order, and copied from there for each of its replicas.

The house rules are those of ``_core.pyx``: typed views, IN and OUT, no allocation, the GIL released, callers check
ranges once, a twin of the same name and signature in ``_naive_wire.py``. Arguments that recur: ``rows`` (k,) partition
rows; (n,) row columns, (s,) slot columns and (b,) broker columns as in ``kframe/model``; ``topic_deleting`` (t,) 1
where the topic is queued for deletion; ``compact`` whether the version is flexible: compact lengths, and a count of
tagged fields (always 0) ends each struct. All numbers on the wire are big-endian. Cost is linear in what is read and
written, unless said otherwise.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kframe.blocks cimport RUN, follow
from kframe.column cimport broker_t
from kframe.prefetch cimport AHEAD, KFRAME_PREFETCH, ask_for_flags, ask_for_replicas, ask_for_slots, far_apart
from kframe.wire_bytes cimport (
    OFFLINE_DIR,
    array_size,
    count_flagged,
    count_offline,
    put_bytes,
    put_flagged,
    put_int32,
    put_int8,
    put_offline,
    put_state,
    unflagged,
)
from kframe.wire_runs cimport all_live, size_run, unremarkable

cdef enum:
    ADDING = 1
    REMOVING = 2


cdef inline void ask_for_row(
    Py_ssize_t row, const int32_t[::1] partition, const broker_t[::1] leader, const int32_t[::1] leader_epoch,
    const int32_t[::1] controller_epoch, const int32_t[::1] partition_epoch,
) noexcept nogil:
    """Beside ``ask_for_slots`` for who writes entries. Measured: with both, less than half the time to write them."""
    KFRAME_PREFETCH(&partition[row])
    KFRAME_PREFETCH(&leader[row])
    KFRAME_PREFETCH(&leader_epoch[row])
    KFRAME_PREFETCH(&controller_epoch[row])
    KFRAME_PREFETCH(&partition_epoch[row])


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
    cdef Py_ssize_t i = 0, stop, end = rows.shape[0], start, count, size, row
    cdef int64_t total = 0
    cdef bint compact = version >= 4
    cdef Py_ssize_t fixed = 20 + (version >= 1) + (version >= 6) + compact
    cdef Py_ssize_t none = 2 * array_size(0, compact)
    cdef Py_ssize_t empty = fixed + (2 * none if version >= 3 else none)
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        while i < end:
            stop = min(i + RUN, end)
            if (stop == i + RUN and follow(&rows[i], RUN)
                    and unremarkable(rows[i], slot_start, replica_count, isr_count, replica_flags, ADDING | REMOVING)):
                total += size_run(rows[i], empty, replica_count, isr_count, entry_size)
                i = stop
            while i < stop:
                if far and i + AHEAD < rows.shape[0]:
                    KFRAME_PREFETCH(&entry_size[rows[i + AHEAD]])
                    KFRAME_PREFETCH(&isr_count[rows[i + AHEAD]])
                    ask_for_flags(rows, i, slot_start, replica_count, replica_flags)
                row = rows[i]
                start = slot_start[row]
                count = replica_count[row]
                size = fixed + array_size(isr_count[row], compact) + array_size(count, compact)
                if version >= 3 and unflagged(replica_flags, start, count, ADDING | REMOVING):
                    size += none
                elif version >= 3:
                    size += array_size(count_flagged(replica_flags, start, count, ADDING), compact)
                    size += array_size(count_flagged(replica_flags, start, count, REMOVING), compact)
                entry_size[row] = <int32_t> size
                total += size
                i += 1
    return total


def write_leader_and_isr(
    const int32_t[::1] rows,              # IN   (k,)
    int version,                          # IN           LeaderAndIsr 0 to 7
    const int32_t[::1] partition,         # IN   (n,)
    const broker_t[::1] leader,           # IN   (n,)
    const int32_t[::1] leader_epoch,      # IN   (n,)
    const int32_t[::1] controller_epoch,  # IN   (n,)
    const int32_t[::1] partition_epoch,   # IN   (n,)
    const uint8_t[::1] recovery,          # IN   (n,)
    const int32_t[::1] slot_start,        # IN   (n,)
    const int16_t[::1] replica_count,     # IN   (n,)
    const int16_t[::1] isr_count,         # IN   (n,)
    const broker_t[::1] replica,          # IN   (s,)
    const broker_t[::1] isr,              # IN   (s,)
    const uint8_t[::1] replica_flags,     # IN   (s,)
    const int32_t[::1] broker_ids,        # IN   (b,)
    const int32_t[::1] entry_size,        # IN   (n,)    from size_leader_and_isr
    int64_t[::1] pool_at,                 # OUT  (n,)    where the row's entry stands; other rows untouched
    uint8_t[::1] pool,                    # OUT          entries one after another, ``is_new`` 0
):
    """Write the LeaderAndIsr entries of ``rows``; return how many came out as long as they were sized."""
    cdef Py_ssize_t i = 0, at = 0, start, count, row
    cdef bint three, modern = version >= 6, compact = version >= 4, far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far and i + AHEAD < rows.shape[0]:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
                ask_for_row(rows[i + AHEAD], partition, leader, leader_epoch, controller_epoch, partition_epoch)
                KFRAME_PREFETCH(&recovery[rows[i + AHEAD]])
                KFRAME_PREFETCH(&entry_size[rows[i + AHEAD]])
                KFRAME_PREFETCH(&pool_at[rows[i + AHEAD]])
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            pool_at[row] = at
            three = (modern and count == 3 and isr_count[row] == 3
                     and unflagged(replica_flags, start, count, ADDING | REMOVING))
            at = put_state(
                pool, at, three, False, partition[row], controller_epoch[row], leader[row], leader_epoch[row],
                partition_epoch[row], broker_ids, replica, isr, start, count, isr_count[row], compact,
            )
            if three:
                # Two empty lists, and not new.
                at = put_int32(pool, at, 0x01010000 | recovery[row])
                at = put_int8(pool, at, 0)
            else:
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
    const int32_t[::1] row_size,    # IN   (k,)    from fit_sections
    const int64_t[::1] pool_at,     # IN   (n,)
    const uint8_t[::1] pool,        # IN           entries of all rows
    const int64_t[::1] entry_at,    # IN   (k,)    where the entry of ``rows[i]`` goes, from frame_sections
    uint8_t[::1] out,               # OUT          the group of sections
):
    """Copy the LeaderAndIsr entries of ``rows`` into sections, each with its ``is_new``; return how many."""
    cdef Py_ssize_t i, at, ahead, count = rows.shape[0]
    with nogil:
        for i in range(count):
            if i + 2 * AHEAD < count:
                KFRAME_PREFETCH(&pool_at[rows[i + 2 * AHEAD]])
                ahead = pool_at[rows[i + AHEAD]]
                KFRAME_PREFETCH(&pool[ahead])
                KFRAME_PREFETCH(&pool[ahead + row_size[i + AHEAD] - 1])
            at = put_bytes(out, entry_at[i], pool, pool_at[rows[i]], row_size[i])
            if is_new_back:
                out[at - is_new_back] = is_new[i]
    return count


def size_update_metadata(
    const int32_t[::1] rows,           # IN   (k,)
    int version,                       # IN           UpdateMetadata 0 to 8
    const int32_t[::1] slot_start,     # IN   (n,)
    const int16_t[::1] replica_count,  # IN   (n,)
    const int16_t[::1] isr_count,      # IN   (n,)
    const broker_t[::1] replica,       # IN   (s,)
    const uint8_t[::1] replica_flags,  # IN   (s,)
    const uint8_t[::1] live,           # IN   (b,)    1 where the broker is registered and not shutting down
    int32_t[::1] entry_size,           # OUT  (n,)    bytes of the entry; other rows untouched
):
    """Measure the UpdateMetadata entries of ``rows``; return their bytes in all."""
    cdef Py_ssize_t i = 0, stop, end = rows.shape[0], start, count, size, row
    cdef int64_t total = 0
    cdef bint compact = version >= 6, far = far_apart(rows, slot_start), whole = all_live(live)
    cdef Py_ssize_t none = array_size(0, compact)
    cdef Py_ssize_t empty = 20 + compact + (3 * none if version >= 4 else 2 * none)
    with nogil:
        while i < end:
            stop = min(i + RUN, end)
            if (whole and stop == i + RUN and follow(&rows[i], RUN)
                    and unremarkable(rows[i], slot_start, replica_count, isr_count, replica_flags, OFFLINE_DIR)):
                total += size_run(rows[i], empty, replica_count, isr_count, entry_size)
                i = stop
            while i < stop:
                if far and i + AHEAD < end:
                    KFRAME_PREFETCH(&entry_size[rows[i + AHEAD]])
                    KFRAME_PREFETCH(&isr_count[rows[i + AHEAD]])
                    if whole:
                        ask_for_flags(rows, i, slot_start, replica_count, replica_flags)
                    else:
                        ask_for_replicas(rows, i, slot_start, replica_count, replica, replica_flags)
                row = rows[i]
                start = slot_start[row]
                count = replica_count[row]
                size = 20 + array_size(isr_count[row], compact) + array_size(count, compact) + compact
                if version >= 4 and whole:
                    size += array_size(count_flagged(replica_flags, start, count, OFFLINE_DIR), compact)
                elif version >= 4:
                    size += array_size(count_offline(replica, replica_flags, live, start, count), compact)
                entry_size[row] = <int32_t> size
                total += size
                i += 1
    return total


def write_update_metadata(
    const int32_t[::1] rows,              # IN   (k,)
    int version,                          # IN           UpdateMetadata 0 to 8
    const int32_t[::1] topic,             # IN   (n,)
    const int32_t[::1] partition,         # IN   (n,)
    const broker_t[::1] leader,           # IN   (n,)
    const int32_t[::1] leader_epoch,      # IN   (n,)
    const int32_t[::1] controller_epoch,  # IN   (n,)
    const int32_t[::1] partition_epoch,   # IN   (n,)
    const int32_t[::1] slot_start,        # IN   (n,)
    const int16_t[::1] replica_count,     # IN   (n,)
    const int16_t[::1] isr_count,         # IN   (n,)
    const broker_t[::1] replica,          # IN   (s,)
    const broker_t[::1] isr,              # IN   (s,)
    const uint8_t[::1] replica_flags,     # IN   (s,)
    const int32_t[::1] broker_ids,        # IN   (b,)
    const uint8_t[::1] live,              # IN   (b,)
    const uint8_t[::1] topic_deleting,    # IN   (t,)
    const int32_t[::1] row_size,          # IN   (k,)    from fit_sections
    const int64_t[::1] entry_at,          # IN   (k,)    from frame_sections
    uint8_t[::1] out,                     # OUT          the group of sections
):
    """Write the UpdateMetadata entries of ``rows``; return how many came out as long as they were sized.

    A partition of a topic that is being deleted is told with leader -2, leader epoch 0 and zkVersion 0.
    """
    cdef Py_ssize_t i = 0, at, start, count, row
    cdef bint three, compact = version >= 6, far = far_apart(rows, slot_start), whole = all_live(live)
    with nogil:
        for i in range(rows.shape[0]):
            if far and i + AHEAD < rows.shape[0]:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
                ask_for_row(rows[i + AHEAD], partition, leader, leader_epoch, controller_epoch, partition_epoch)
                KFRAME_PREFETCH(&topic[rows[i + AHEAD]])
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            three = compact and count == 3 and isr_count[row] == 3
            if three and whole:
                three = unflagged(replica_flags, start, count, OFFLINE_DIR)
            elif three:
                three = count_offline(replica, replica_flags, live, start, count) == 0
            at = put_state(
                out, entry_at[i], three, topic_deleting[topic[row]], partition[row], controller_epoch[row], leader[row],
                leader_epoch[row], partition_epoch[row], broker_ids, replica, isr, start, count, isr_count[row],
                compact,
            )
            if three:
                # An empty list.
                at = put_int8(out, at, 1)
            elif version >= 4:
                at = put_offline(out, at, broker_ids, replica, replica_flags, live, start, count, compact)
            if compact:
                at = put_int8(out, at, 0)
            if at - entry_at[i] != row_size[i]:
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
    const int32_t[::1] row_size,      # IN   (k,)    from fit_sections
    const int64_t[::1] entry_at,      # IN   (k,)    from frame_sections
    uint8_t[::1] out,                 # OUT          the group of sections
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
            if at - entry_at[i] != row_size[i]:
                break
        else:
            i = rows.shape[0]
    return i
