"""Kernels of replica placement: the index of replicas by broker, assignments, and counts by broker.

Conventions and recurring arguments: ``kframe/_core.pyx``. Reference: ``reference/replica_index.py``.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kframe.kernels.blocks cimport RUN, isrs_equal_replicas, uniform_width
from kframe.kernels.constants cimport ADDING, NO_STATE, REMOVING, REPLICA_NON_EXISTENT, STATE_SHIFT
from kframe.kernels.prefetch cimport is_sparse, prefetch_replicas, prefetch_replicas_and_flags
from kframe.kernels.replica_counts cimport count_rows, count_uniform_rows
from kframe.kernels.row_deltas cimport COMMON_REPLICAS, DELTA_SLACK, add_delta, max_delta_bytes, put_delta
from kframe.kernels.scan cimport contains
from kframe.kernels.types cimport broker_t


def size_replica_index(
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    int64_t[::1] offsets,                # OUT  (b + 1,) where the bytes of each broker's rows may begin
):
    """Compute the space that ``build_replica_index`` needs at most, in bytes; return the total. Cost O(s + b)."""
    cdef Py_ssize_t row, b, k, start, total = 0, capacity
    with nogil:
        offsets[:] = 0
        for row in range(slot_start.shape[0]):
            start = slot_start[row]
            if replica_count[row] == COMMON_REPLICAS:
                offsets[replica[start]] += 1
                offsets[replica[start + 1]] += 1
                offsets[replica[start + 2]] += 1
                continue
            for k in range(start, start + replica_count[row]):
                offsets[replica[k]] += 1
        for b in range(offsets.shape[0]):
            capacity = max_delta_bytes(offsets[b], slot_start.shape[0])
            offsets[b] = total
            total += capacity
    return total + DELTA_SLACK


def build_replica_index(
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const int64_t[::1] offsets,          # IN   (b + 1,) from ``size_replica_index``
    int32_t[::1] last,                   # SCRATCH (b,)
    int64_t[::1] ends,                   # OUT  (b,) where the bytes of each broker's rows end
    uint8_t[::1] deltas,                 # OUT  (as ``size_replica_index`` returned,) each broker's rows, ascending
):
    """Sort all rows by the brokers of their replicas (counting sort); return how many replicas. Cost O(s + b).

    Each row is stored as the difference to the broker's previous row, as ``row_deltas.pxd`` says: the rows of a broker
    are seldom far apart.
    """
    cdef Py_ssize_t row, k, start, matches = 0
    with nogil:
        last[:] = 0
        ends[:] = offsets[:ends.shape[0]]
        for row in range(slot_start.shape[0]):
            start = slot_start[row]
            matches += replica_count[row]
            if replica_count[row] == COMMON_REPLICAS:
                put_delta(row, replica[start], last, ends, deltas)
                put_delta(row, replica[start + 1], last, ends, deltas)
                put_delta(row, replica[start + 2], last, ends, deltas)
                continue
            for k in range(start, start + replica_count[row]):
                put_delta(row, replica[k], last, ends, deltas)
    return matches


def read_replica_index(
    const uint8_t[::1] deltas,           # IN   (m,) the entries of one broker in the output of ``build_replica_index``
    int32_t[::1] rows,                   # OUT  (m,)
):
    """Read the rows of one broker; return how many. Cost O(m), without a branch per row."""
    cdef Py_ssize_t offset = 0, k, matches = 0
    cdef uint64_t eight
    cdef uint32_t row = 0
    cdef int shift = 0
    with nogil:
        while offset + 8 <= deltas.shape[0]:
            memcpy(&eight, &deltas[offset + 7] - 7, 8)
            if eight & <uint64_t>0x8080808080808080 == 0:
                row += <uint32_t>deltas[offset] << shift
                shift = 0
                rows[matches] = <int32_t>row
                for k in range(1, 8):
                    row += deltas[offset + k]
                    rows[matches + k] = <int32_t>row
                matches += 8
            else:
                for k in range(offset, offset + 8):
                    matches += add_delta(deltas[k], &row, &shift, &rows[matches])
            offset += 8
        for k in range(offset, deltas.shape[0]):
            matches += add_delta(deltas[k], &row, &shift, &rows[matches])
    return matches


def list_replicas_on(
    const int32_t[::1] rows,             # IN   (k,)
    const uint8_t[::1] chosen,           # IN   (b,) 1 for the requested brokers
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    int32_t[::1] replica_row,            # OUT  (sum of replica_count of rows,) row of each replica on such a broker
    int32_t[::1] positions,              # OUT  (sum of replica_count of rows,) its position in the row's list
    int32_t[::1] slots,                  # OUT  (sum of replica_count of rows,) its slot
):
    """List the replicas of some rows on the chosen brokers; return how many. Cost O(k * r)."""
    cdef Py_ssize_t i, k, row, matches = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas(rows, i, slot_start, replica_count, replica)
            row = rows[i]
            for k in range(slot_start[row], slot_start[row] + replica_count[row]):
                if chosen[replica[k]]:
                    replica_row[matches] = <int32_t>row
                    positions[matches] = <int32_t>(k - slot_start[row])
                    slots[matches] = <int32_t>k
                    matches += 1
    return matches


def locate_replicas(
    const int32_t[::1] rows,             # IN   (k,)
    int broker,                          # IN   a broker index
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    int32_t[::1] positions,              # OUT  (k,) position of the broker's replica in the row's list, or -1
    int32_t[::1] slots,                  # OUT  (k,) its slot, or -1
):
    """Locate the replica of one broker in each row; return how many rows have one. Cost O(k * r).

    The position is equally likely to be any, so it is selected without a branch.
    """
    cdef Py_ssize_t i, k, start, row, matches = 0
    cdef int32_t position
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas(rows, i, slot_start, replica_count, replica)
            row = rows[i]
            start, position = slot_start[row], -1
            for k in range(replica_count[row]):
                position = <int32_t>k if replica[start + k] == broker else position
            positions[i] = position
            slots[i] = <int32_t>(start + position) if position >= 0 else -1
            matches += position >= 0
    return matches


def group_by_rank(
    const int32_t[::1] rows,             # IN   (m,) ascending, may repeat
    const int32_t[::1] brokers,          # IN   (m,) broker index of each pair
    const int32_t[::1] rank,             # IN   (b,) rank of each broker, unique among the brokers of a row
    int32_t[::1] offsets,                # OUT  (g + 1,) where each group begins; g: at least the pairs of any row
    int32_t[::1] origin,                 # OUT  (m,) position of each grouped pair in the input
    int32_t[::1] grouped_rows,           # OUT  (m,) rows, group by group, ascending in each
    int32_t[::1] grouped_brokers,        # OUT  (m,)
):
    """Group pairs by how many pairs of the same row have a lower rank; return how many groups. Cost O(m * r).

    Group 0 has the pair of the lowest rank of each row, group 1 the next one.
    """
    cdef Py_ssize_t i, k, g, slot, first = 0, last = 0, total = 0, groups = 0
    cdef int32_t own, lower, count
    with nogil:
        offsets[:] = 0
        for i in range(rows.shape[0]):
            g = 0 if i == 0 or rows[i] != rows[i - 1] else g + 1
            offsets[g] += 1
        for g in range(offsets.shape[0]):
            count = offsets[g]
            groups += count != 0
            offsets[g] = <int32_t>total
            total += count
        while first < rows.shape[0]:
            while last < rows.shape[0] and rows[last] == rows[first]:
                last += 1
            for i in range(first, last):
                own, lower = rank[brokers[i]], 0
                for k in range(first, last):
                    lower += rank[brokers[k]] < own
                slot = offsets[lower]
                offsets[lower] += 1
                origin[slot], grouped_rows[slot], grouped_brokers[slot] = <int32_t>i, rows[i], brokers[i]
            first = last
        for g in range(offsets.shape[0] - 1, 0, -1):
            offsets[g] = offsets[g - 1]
        offsets[0] = 0
    return groups


def list_unassigned_isr_members(
    const int32_t[::1] topic,            # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics queued for deletion
    int32_t[::1] rows,                   # OUT  (n,)
):
    """List the rows whose ISR has an unassigned member, except for topics queued for deletion; return how many.

    Cost O(n + s), with one comparison per member where the ISR equals the replicas.
    """
    cdef Py_ssize_t row, k, start, matches = 0
    with nogil:
        for row in range(topic.shape[0]):
            if topic[row] < 0 or partition_epoch[row] == NO_STATE or deleting[topic[row]]:
                continue
            start = slot_start[row]
            for k in range(isr_count[row]):
                if k < replica_count[row] and isr[start + k] == replica[start + k]:
                    continue
                if not contains(replica, start, replica_count[row], isr[start + k]):
                    rows[matches] = <int32_t>row
                    matches += 1
                    break
    return matches


def assign_replicas(
    const int32_t[::1] rows,             # IN   (k,) unique
    const int32_t[::1] offsets,          # IN   (k + 1,) where each row's new list begins in values and flags
    const int32_t[::1] values,           # IN   (m,) broker indexes, each once a list
    const uint8_t[::1] flags,            # IN   (m,) ReplicaFlag bits
    const int32_t[::1] slot_start,       # IN   (n,) each row owns slots for its new list and its old one
    int16_t[::1] replica_count,          # OUT  (n,)
    broker_t[::1] replica,               # OUT  (s,)
    uint8_t[::1] replica_status,         # OUT  (s,)
    int32_t[::1] old_replica,            # SCRATCH (the longest old list,)
    uint8_t[::1] old_status,             # SCRATCH (the longest old list,)
    int32_t[::1] removed_counts,         # OUT  (k,) replicas removed from each row's list
):
    """Give rows new replica lists; return how many replicas are removed.

    Replicas that stay keep their state and OFFLINE_DIR flag; new ones are NonExistent. Removed replicas keep theirs
    too, in the slots after the list, until the next assignment: they still have to be stopped. Cost O(k * r^2), or
    O(k * r) for unchanged lists: a common prefix stays in place.
    """
    cdef Py_ssize_t i, j, k, start, row, offset, old, new, prefix, removed, total = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas_and_flags(rows, i, slot_start, replica_count, replica, replica_status)
            row = rows[i]
            start = slot_start[row]
            offset = offsets[i]
            old = replica_count[row]
            new = offsets[i + 1] - offset
            prefix = 0
            while prefix < old and prefix < new and replica[start + prefix] == values[offset + prefix]:
                replica_status[start + prefix] = unmarked(replica_status[start + prefix]) | flags[offset + prefix]
                prefix += 1
            for k in range(prefix, old):
                old_replica[k] = replica[start + k]
                old_status[k] = unmarked(replica_status[start + k])
            for j in range(prefix, new):
                replica[start + j] = values[offset + j]
                replica_status[start + j] = REPLICA_NON_EXISTENT << STATE_SHIFT | flags[offset + j]
            removed = 0
            for k in range(prefix, old):
                for j in range(prefix, new):
                    if replica[start + j] == old_replica[k]:
                        replica_status[start + j] = old_status[k] | flags[offset + j]
                        break
                else:
                    replica[start + new + removed] = old_replica[k]
                    replica_status[start + new + removed] = old_status[k]
                    removed += 1
            replica_count[row] = <int16_t>new
            removed_counts[i] = <int32_t>removed
            total += removed
    return total


cdef inline uint8_t unmarked(uint8_t status) noexcept nogil:
    """The status of a replica that is neither added nor removed: its state, and OFFLINE_DIR."""
    return status & ~(ADDING | REMOVING)


def copy_assignments(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const int32_t[::1] broker_ids,       # IN   (b,) value to write for each broker index
    int flag_mask,                      # IN   ReplicaFlag bits to copy
    int32_t[::1] offsets,                # OUT  (k + 1,) where each row's list begins in values and flags
    int32_t[::1] values,                 # OUT  (sum of replica_count of rows,) the lists, row by row
    uint8_t[::1] flags,                  # OUT  (sum of replica_count of rows,)
):
    """Copy the replica lists of rows; return how many replicas. Cost O(k * r)."""
    cdef Py_ssize_t i, slot, row, copied = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        offsets[0] = 0
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas_and_flags(rows, i, slot_start, replica_count, replica, replica_status)
            row = rows[i]
            for slot in range(slot_start[row], slot_start[row] + replica_count[row]):
                values[copied] = broker_ids[replica[slot]]
                flags[copied] = replica_status[slot] & <uint8_t>flag_mask
                copied += 1
            offsets[i + 1] = <int32_t>copied
    return copied


def mark_reassigned(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] offsets,          # IN   (k + 1,) where each row's list begins in values and flags
    const int32_t[::1] values,           # IN   (m,) broker indexes
    const uint8_t[::1] flags,            # IN   (m,) ReplicaFlag bits
    int compared_flags,                  # IN   ReplicaFlag bits to compare
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    uint8_t[::1] differs,                # OUT  (k,) 1 where the list or the flags differ
):
    """Compare lists with the assignments of rows; return how many differ. Cost O(k * r)."""
    cdef Py_ssize_t i, j, slot, row, matches = 0
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            differs[i] = offsets[i + 1] - offsets[i] != replica_count[row]
            if not differs[i]:
                slot = slot_start[row]
                for j in range(offsets[i], offsets[i + 1]):
                    if values[j] != replica[slot] or (flags[j] ^ replica_status[slot]) & compared_flags:
                        differs[i] = 1
                        break
                    slot += 1
            matches += differs[i]
    return matches


def count_by_broker(
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    int32_t[::1] leads,                  # OUT  (b,) partitions that the broker leads
    int32_t[::1] preferred,              # OUT  (b,) partitions whose first replica it is
    int32_t[::1] replicas,               # OUT  (b,) replicas on it
    int32_t[::1] in_sync,                # OUT  (b,) ISRs that it is in
):
    """Count leaders, preferred leaders, replicas and ISR memberships by broker; return how many rows have a leader.

    Cost O(s). ``leads`` holds the other replicas of healthy rows until the leaders are counted.
    """
    cdef Py_ssize_t row = 0, stop, width, b, matches = 0
    with nogil:
        leads[:] = 0
        preferred[:] = 0
        replicas[:] = 0
        in_sync[:] = 0
        while row < leader.shape[0]:
            stop = min(row + RUN, leader.shape[0])
            width = uniform_width(row, RUN, slot_start, replica_count) if row + RUN == stop else 0
            if width and isrs_equal_replicas(row, RUN, width, slot_start, isr_count, replica, isr):
                count_uniform_rows(replica, slot_start[row], width, preferred, leads)
            else:
                count_rows(
                    row, stop, slot_start, replica_count, isr_count, replica, isr, preferred, replicas, in_sync)
            row = stop
        for b in range(replicas.shape[0]):
            replicas[b] += preferred[b] + leads[b]
            in_sync[b] += preferred[b] + leads[b]
            leads[b] = 0
        for row in range(leader.shape[0]):
            if leader[row] >= 0:
                leads[leader[row]] += 1
                matches += 1
    return matches
