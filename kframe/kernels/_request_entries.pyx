"""Kernels that encode the partition entries of LeaderAndIsr, UpdateMetadata and StopReplica requests.

An *entry* is the part of a request about one partition; ``_request_sections.pyx`` has the rest of the request.
Encoding takes two passes, so that memory is allocated once and exactly: ``size_*`` return the length of each entry,
``frame_sections`` returns its offset, and ``write_*`` and ``copy_entries`` fill it in. The kernels that write return
how many entries have the length that was computed for them, which callers compare with the number of rows.

The LeaderAndIsr entry of a partition is the same for every broker but for one byte, ``is_new``. It is written once
into a *pool*, whose rows ascend, and copied from there for each replica.

Conventions: ``kframe/_core.pyx``. Reference: ``reference/requests.py``. Recurring arguments: ``rows`` (k,) partition
rows; (n,) row columns, (s,) slot columns and (b,) broker columns as in ``kframe/model``; ``topic_deleting`` (t,) 1
where the topic is queued for deletion; ``compact`` 1 for flexible versions, which have compact lengths and end each
struct with a count of tagged fields, always 0. Numbers are big-endian. Cost is linear in what is read and written,
unless stated.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t

from kframe.kernels.blocks cimport RUN, is_consecutive
from kframe.kernels.constants cimport ADDING, OFFLINE_DIR, PARTITION_RECOVERING, REMOVING
from kframe.kernels.encoding cimport (
    array_size, count_flagged, count_offline, has_no_flags, put_bytes, put_flagged, put_int32, put_int8, put_offline,
    put_state,
)
from kframe.kernels.entry_sizes cimport all_live, is_plain_run, size_run
from kframe.kernels.prefetch cimport (
    KFRAME_PREFETCH, PREFETCH_ROWS, is_sparse, prefetch_flags, prefetch_replicas_and_flags, prefetch_slots,
)
from kframe.kernels.types cimport broker_t


cdef inline void prefetch_row(
    Py_ssize_t row, const int32_t[::1] partition, const broker_t[::1] leader, const int32_t[::1] leader_epoch,
    const uint16_t[::1] epoch_number, const int32_t[::1] partition_epoch,
) noexcept nogil:
    """Prefetch the other columns of an entry. Measured: with ``prefetch_slots``, half the time to write entries."""
    KFRAME_PREFETCH(&partition[row])
    KFRAME_PREFETCH(&leader[row])
    KFRAME_PREFETCH(&leader_epoch[row])
    KFRAME_PREFETCH(&epoch_number[row])
    KFRAME_PREFETCH(&partition_epoch[row])


def size_leader_and_isr(
    const int32_t[::1] rows,            # IN   (k,)
    int version,                        # IN           LeaderAndIsr 0 to 7
    const int32_t[::1] slot_start,      # IN   (n,)
    const int16_t[::1] replica_count,   # IN   (n,)
    const int16_t[::1] isr_count,       # IN   (n,)
    const uint8_t[::1] replica_status,  # IN   (s,)
    int32_t[::1] entry_size,            # OUT  (n,)    bytes of the entry; other rows unchanged
):
    """Compute the sizes of the LeaderAndIsr entries of ``rows``; return the total."""
    cdef Py_ssize_t i = 0, stop, end = rows.shape[0], start, count, size, row
    cdef int64_t total = 0
    cdef bint compact = version >= 4
    cdef Py_ssize_t fixed = 20 + (version >= 1) + (version >= 6) + compact
    cdef Py_ssize_t empty_arrays = 2 * array_size(0, compact)
    cdef Py_ssize_t empty = fixed + (2 * empty_arrays if version >= 3 else empty_arrays)
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        while i < end:
            stop = min(i + RUN, end)
            if (stop == i + RUN and is_consecutive(&rows[i], RUN)
                    and is_plain_run(rows[i], slot_start, replica_count, isr_count, replica_status, ADDING | REMOVING)):
                total += size_run(rows[i], empty, replica_count, isr_count, entry_size)
                i = stop
            while i < stop:
                if sparse and i + PREFETCH_ROWS < rows.shape[0]:
                    KFRAME_PREFETCH(&entry_size[rows[i + PREFETCH_ROWS]])
                    KFRAME_PREFETCH(&isr_count[rows[i + PREFETCH_ROWS]])
                    prefetch_flags(rows, i, slot_start, replica_count, replica_status)
                row = rows[i]
                start = slot_start[row]
                count = replica_count[row]
                size = fixed + array_size(isr_count[row], compact) + array_size(count, compact)
                if version >= 3 and has_no_flags(replica_status, start, count, ADDING | REMOVING):
                    size += empty_arrays
                elif version >= 3:
                    size += array_size(count_flagged(replica_status, start, count, ADDING), compact)
                    size += array_size(count_flagged(replica_status, start, count, REMOVING), compact)
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
    const uint16_t[::1] epoch_number,     # IN   (n,)
    const int32_t[::1] controller_epochs,  # IN  (e,)    by number
    const int32_t[::1] partition_epoch,   # IN   (n,)
    const uint8_t[::1] status,            # IN   (n,)
    const int32_t[::1] slot_start,        # IN   (n,)
    const int16_t[::1] replica_count,     # IN   (n,)
    const int16_t[::1] isr_count,         # IN   (n,)
    const broker_t[::1] replica,          # IN   (s,)
    const broker_t[::1] isr,              # IN   (s,)
    const uint8_t[::1] replica_status,    # IN   (s,)
    const int32_t[::1] broker_ids,        # IN   (b,)
    const int32_t[::1] entry_size,        # IN   (n,)    from size_leader_and_isr
    int64_t first,                        # IN           offset of the first entry in the pool
    int64_t[::1] pool_offset,             # OUT  (n,)    offset of the row's entry; other rows unchanged
    uint8_t[::1] pool,                    # OUT          the entries, ``is_new`` 0
):
    """Write the LeaderAndIsr entries of ``rows``; return how many have the computed size."""
    cdef Py_ssize_t i = 0, offset = first, start, count, row
    cdef bint is_rf3, compact = version >= 4, sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse and i + PREFETCH_ROWS < rows.shape[0]:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
                prefetch_row(rows[i + PREFETCH_ROWS], partition, leader, leader_epoch, epoch_number, partition_epoch)
                KFRAME_PREFETCH(&status[rows[i + PREFETCH_ROWS]])
                KFRAME_PREFETCH(&entry_size[rows[i + PREFETCH_ROWS]])
                KFRAME_PREFETCH(&pool_offset[rows[i + PREFETCH_ROWS]])
            row = rows[i]
            start, count, pool_offset[row] = slot_start[row], replica_count[row], offset
            is_rf3 = (version >= 6 and count == 3 and isr_count[row] == 3
                      and has_no_flags(replica_status, start, count, ADDING | REMOVING))
            offset = put_state(
                pool, offset, is_rf3, False, partition[row], controller_epochs[epoch_number[row]], leader[row],
                leader_epoch[row], partition_epoch[row], broker_ids, replica, isr, start, count, isr_count[row],
                compact)
            if is_rf3:  # both arrays are empty
                offset = put_int8(pool, put_int32(pool, offset, 0x01010000 | status[row] & PARTITION_RECOVERING), 0)
            else:
                if version >= 3:
                    offset = put_flagged(
                        pool, offset, broker_ids, replica, replica_status, start, count, ADDING, compact)
                    offset = put_flagged(
                        pool, offset, broker_ids, replica, replica_status, start, count, REMOVING, compact)
                if version >= 1:
                    offset = put_int8(pool, offset, 0)
                if version >= 6:
                    offset = put_int8(pool, offset, status[row] & PARTITION_RECOVERING)
                if compact:
                    offset = put_int8(pool, offset, 0)
            if offset - pool_offset[row] != entry_size[row]:
                break
        else:
            i = rows.shape[0]
    return i


def copy_entries(
    const int32_t[::1] rows,        # IN   (k,)
    const uint8_t[::1] is_new,      # IN   (k,)    1 where the broker creates the replica
    Py_ssize_t is_new_from_end,         # IN           offset of ``is_new`` from the end of the entry; 0 if it has none
    const int32_t[::1] row_size,    # IN   (k,)    from fit_sections
    const int64_t[::1] pool_offset,     # IN   (n,)
    const uint8_t[::1] pool,        # IN           entries of all rows
    const int64_t[::1] entry_offset,  # IN (k,)    where the entry of ``rows[i]`` goes, from frame_sections
    uint8_t[::1] out,               # OUT          the group of sections
):
    """Copy the LeaderAndIsr entries of ``rows`` into sections and set ``is_new``; return how many."""
    cdef Py_ssize_t i, offset, next_offset, count = rows.shape[0]
    with nogil:
        for i in range(count):
            if i + 2 * PREFETCH_ROWS < count:
                KFRAME_PREFETCH(&pool_offset[rows[i + 2 * PREFETCH_ROWS]])
                next_offset = pool_offset[rows[i + PREFETCH_ROWS]]
                KFRAME_PREFETCH(&pool[next_offset])
                KFRAME_PREFETCH(&pool[next_offset + row_size[i + PREFETCH_ROWS] - 1])
            offset = put_bytes(out, entry_offset[i], pool, pool_offset[rows[i]], row_size[i])
            if is_new_from_end:
                out[offset - is_new_from_end] = is_new[i]
    return count


def size_update_metadata(
    const int32_t[::1] rows,            # IN   (k,)
    int version,                        # IN           UpdateMetadata 0 to 8
    const int32_t[::1] slot_start,      # IN   (n,)
    const int16_t[::1] replica_count,   # IN   (n,)
    const int16_t[::1] isr_count,       # IN   (n,)
    const broker_t[::1] replica,        # IN   (s,)
    const uint8_t[::1] replica_status,  # IN   (s,)
    const uint8_t[::1] live,            # IN   (b,)    1 where the broker is registered and not shutting down
    int32_t[::1] entry_size,            # OUT  (n,)    bytes of the entry; other rows unchanged
):
    """Compute the sizes of the UpdateMetadata entries of ``rows``; return the total."""
    cdef Py_ssize_t i = 0, stop, end = rows.shape[0], start, count, size, row
    cdef int64_t total = 0
    cdef bint compact = version >= 6, sparse = is_sparse(rows, slot_start), all_brokers_live = all_live(live)
    cdef Py_ssize_t empty_arrays = array_size(0, compact)
    cdef Py_ssize_t empty = 20 + compact + (3 * empty_arrays if version >= 4 else 2 * empty_arrays)
    with nogil:
        while i < end:
            stop = min(i + RUN, end)
            if (all_brokers_live and stop == i + RUN and is_consecutive(&rows[i], RUN)
                    and is_plain_run(rows[i], slot_start, replica_count, isr_count, replica_status, OFFLINE_DIR)):
                total += size_run(rows[i], empty, replica_count, isr_count, entry_size)
                i = stop
            while i < stop:
                if sparse and i + PREFETCH_ROWS < end:
                    KFRAME_PREFETCH(&entry_size[rows[i + PREFETCH_ROWS]])
                    KFRAME_PREFETCH(&isr_count[rows[i + PREFETCH_ROWS]])
                    if all_brokers_live:
                        prefetch_flags(rows, i, slot_start, replica_count, replica_status)
                    else:
                        prefetch_replicas_and_flags(rows, i, slot_start, replica_count, replica, replica_status)
                row = rows[i]
                start = slot_start[row]
                count = replica_count[row]
                size = 20 + array_size(isr_count[row], compact) + array_size(count, compact) + compact
                if version >= 4 and all_brokers_live:
                    size += array_size(count_flagged(replica_status, start, count, OFFLINE_DIR), compact)
                elif version >= 4:
                    size += array_size(count_offline(replica, replica_status, live, start, count), compact)
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
    const uint16_t[::1] epoch_number,     # IN   (n,)
    const int32_t[::1] controller_epochs,  # IN  (e,)    by number
    const int32_t[::1] partition_epoch,   # IN   (n,)
    const int32_t[::1] slot_start,        # IN   (n,)
    const int16_t[::1] replica_count,     # IN   (n,)
    const int16_t[::1] isr_count,         # IN   (n,)
    const broker_t[::1] replica,          # IN   (s,)
    const broker_t[::1] isr,              # IN   (s,)
    const uint8_t[::1] replica_status,    # IN   (s,)
    const int32_t[::1] broker_ids,        # IN   (b,)
    const uint8_t[::1] live,              # IN   (b,)
    const uint8_t[::1] topic_deleting,    # IN   (t,)
    const int32_t[::1] row_size,          # IN   (k,)    from fit_sections
    const int64_t[::1] entry_offset,      # IN   (k,)    from frame_sections
    uint8_t[::1] out,                     # OUT          the group of sections
):
    """Write the UpdateMetadata entries of ``rows``; return how many have the computed size.

    A partition of a topic that is being deleted has leader -2, leader epoch 0 and zkVersion 0.
    """
    cdef Py_ssize_t i = 0, offset, start, count, row
    cdef bint is_rf3, compact = version >= 6, sparse = is_sparse(rows, slot_start), all_brokers_live = all_live(live)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse and i + PREFETCH_ROWS < rows.shape[0]:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
                prefetch_row(rows[i + PREFETCH_ROWS], partition, leader, leader_epoch, epoch_number, partition_epoch)
                KFRAME_PREFETCH(&topic[rows[i + PREFETCH_ROWS]])
            row = rows[i]
            start = slot_start[row]
            count = replica_count[row]
            is_rf3 = compact and count == 3 and isr_count[row] == 3
            if is_rf3 and all_brokers_live:
                is_rf3 = has_no_flags(replica_status, start, count, OFFLINE_DIR)
            elif is_rf3:
                is_rf3 = count_offline(replica, replica_status, live, start, count) == 0
            offset = put_state(
                out, entry_offset[i], is_rf3, topic_deleting[topic[row]], partition[row],
                controller_epochs[epoch_number[row]], leader[row], leader_epoch[row], partition_epoch[row], broker_ids,
                replica, isr, start, count, isr_count[row], compact)
            if is_rf3:
                # An empty array.
                offset = put_int8(out, offset, 1)
            elif version >= 4:
                offset = put_offline(out, offset, broker_ids, replica, replica_status, live, start, count, compact)
            if compact:
                offset = put_int8(out, offset, 0)
            if offset - entry_offset[i] != row_size[i]:
                break
        else:
            i = rows.shape[0]
    return i


def write_stop_replica(
    const int32_t[::1] rows,          # IN   (k,)
    int version,                      # IN           StopReplica 0 to 4
    const int32_t[::1] partition,     # IN   (n,)
    const int32_t[::1] leader_epoch,  # IN   (k,)    version 3 and later
    const uint8_t[::1] delete,        # IN   (k,)    1 to delete the replica; version 3 and later
    const int32_t[::1] row_size,      # IN   (k,)    from fit_sections
    const int64_t[::1] entry_offset,  # IN   (k,)    from frame_sections
    uint8_t[::1] out,                 # OUT          the group of sections
):
    """Write the StopReplica entries of ``rows``; return how many have the computed size."""
    cdef Py_ssize_t i = 0, offset
    with nogil:
        for i in range(rows.shape[0]):
            if i + PREFETCH_ROWS < rows.shape[0]:
                KFRAME_PREFETCH(&partition[rows[i + PREFETCH_ROWS]])
            offset = put_int32(out, entry_offset[i], partition[rows[i]])
            if version >= 3:
                offset = put_int32(out, offset, leader_epoch[i])
                offset = put_int8(out, offset, delete[i])
                offset = put_int8(out, offset, 0)
            if offset - entry_offset[i] != row_size[i]:
                break
        else:
            i = rows.shape[0]
    return i
