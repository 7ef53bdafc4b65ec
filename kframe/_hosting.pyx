"""Kernels of who hosts what and who is told: recipients, grouping by broker, assignments, counts by broker.

The house rules are those of ``_core.pyx``; the twins stand in ``_naive.py``.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kframe.blocks cimport RUN, even_width, in_order
from kframe.column cimport broker_t
from kframe.counting cimport count_rows, count_whole
from kframe.prefetch cimport ask_for_assigned, ask_for_replicas, far_apart
from kframe.scan cimport contains
from kframe.steps cimport SPARE, USUAL, add_step, put_step, room_for

cdef enum:
    OFFLINE_DIR = 4

cdef enum:
    NON_EXISTENT = 7

cdef enum:
    NO_STATE = -1


def size_hosts(
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    int64_t[::1] offsets,                # OUT  (b + 1,) where there is room for the bytes of each broker's rows
):
    """Find out how many bytes ``index_hosts`` writes at most; return how many it needs. Cost O(s + b)."""
    cdef Py_ssize_t row, b, k, start, total = 0, room
    with nogil:
        offsets[:] = 0
        for row in range(slot_start.shape[0]):
            start = slot_start[row]
            if replica_count[row] == USUAL:
                offsets[replica[start]] += 1
                offsets[replica[start + 1]] += 1
                offsets[replica[start + 2]] += 1
                continue
            for k in range(start, start + replica_count[row]):
                offsets[replica[k]] += 1
        for b in range(offsets.shape[0]):
            room = room_for(offsets[b], slot_start.shape[0])
            offsets[b] = total
            total += room
    return total + SPARE


def index_hosts(
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const int64_t[::1] offsets,          # IN   (b + 1,) where there is room for the bytes of each broker's rows
    int32_t[::1] last,                   # SCRATCH (b,)
    int64_t[::1] ends,                   # OUT  (b,) where the bytes of each broker's rows end
    uint8_t[::1] steps,                  # OUT  (what ``size_hosts`` returned,) each broker's rows, ascending
):
    """Sort all rows by the brokers that host them (counting sort); return how many replicas. Cost O(s + b).

    Of each row there is only how far it is from the broker's row before it, or from row 0, seven bits a byte, the
    lowest first, with the highest bit set in all bytes but the last: a broker's rows are seldom far apart.
    """
    cdef Py_ssize_t row, k, start, found = 0
    with nogil:
        last[:] = 0
        ends[:] = offsets[:ends.shape[0]]
        for row in range(slot_start.shape[0]):
            start = slot_start[row]
            found += replica_count[row]
            if replica_count[row] == USUAL:
                put_step(row, replica[start], last, ends, steps)
                put_step(row, replica[start + 1], last, ends, steps)
                put_step(row, replica[start + 2], last, ends, steps)
                continue
            for k in range(start, start + replica_count[row]):
                put_step(row, replica[k], last, ends, steps)
    return found


def read_hosts(
    const uint8_t[::1] steps,            # IN   (m,) one broker's part of what ``index_hosts`` wrote
    int32_t[::1] rows,                   # OUT  (m,)
):
    """Read the rows of one broker; return how many. Cost O(m), with no branch for each."""
    cdef Py_ssize_t at = 0, k, found = 0
    cdef uint64_t eight
    cdef uint32_t row = 0
    cdef int shift = 0
    with nogil:
        while at + 8 <= steps.shape[0]:
            memcpy(&eight, &steps[at + 7] - 7, 8)
            if eight & <uint64_t>0x8080808080808080 == 0:
                row += <uint32_t>steps[at] << shift
                shift = 0
                rows[found] = <int32_t>row
                for k in range(1, 8):
                    row += steps[at + k]
                    rows[found + k] = <int32_t>row
                found += 8
            else:
                for k in range(at, at + 8):
                    found += add_step(steps[k], &row, &shift, &rows[found])
            at += 8
        for k in range(at, steps.shape[0]):
            found += add_step(steps[k], &row, &shift, &rows[found])
    return found


def list_hosted(
    const int32_t[::1] rows,             # IN   (k,) rows to look at
    const uint8_t[::1] chosen,           # IN   (b,) 1 for the brokers asked for
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    int32_t[::1] hosted,                 # OUT  (sum of replica_count of rows,) row of each replica on such a broker
    int32_t[::1] places,                 # OUT  (sum of replica_count of rows,) its place in the row's list
):
    """List the replicas of some rows that the chosen brokers host; return how many. Cost O(k * r)."""
    cdef Py_ssize_t i, k, row, found = 0
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_assigned(rows, i, slot_start, replica_count, replica)
            row = rows[i]
            for k in range(slot_start[row], slot_start[row] + replica_count[row]):
                if chosen[replica[k]]:
                    hosted[found] = <int32_t>row
                    places[found] = <int32_t>(k - slot_start[row])
                    found += 1
    return found


def list_strays(
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
    """List the rows that have a state whose ISR names who is not assigned, topics queued for deletion left out; return
    how many. Cost O(n + s), with one comparison for a member that stands where it does among the replicas."""
    cdef Py_ssize_t row, k, start, found = 0
    with nogil:
        for row in range(topic.shape[0]):
            if topic[row] < 0 or partition_epoch[row] == NO_STATE or deleting[topic[row]]:
                continue
            start = slot_start[row]
            for k in range(isr_count[row]):
                if k < replica_count[row] and isr[start + k] == replica[start + k]:
                    continue
                if not contains(replica, start, replica_count[row], isr[start + k]):
                    rows[found] = <int32_t>row
                    found += 1
                    break
    return found


def list_recipients(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] allowed,          # IN   (b,) 1 for brokers that may be told
    int skip_flags,                      # IN   replicas with any of these ReplicaFlag bits are not told
    int32_t[::1] brokers,                # OUT  (sum of replica_count of rows,) broker index to tell
    int32_t[::1] told,                   # OUT  (sum of replica_count of rows,) the row to tell it of
):
    """List who of the assigned replicas is to be told of each row; return how many pairs. Cost O(k * r)."""
    cdef Py_ssize_t i, k, row, found = 0
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_replicas(rows, i, slot_start, replica_count, replica, replica_flags)
            row = rows[i]
            for k in range(slot_start[row], slot_start[row] + replica_count[row]):
                if allowed[replica[k]] and (replica_flags[k] & skip_flags) == 0:
                    brokers[found] = replica[k]
                    told[found] = <int32_t>row
                    found += 1
    return found


def group_by_broker(
    const int32_t[::1] brokers,          # IN   (m,) broker index of each pair
    const int32_t[::1] rows,             # IN   (m,) row of each pair
    int32_t[::1] offsets,                # OUT  (b + 1,) where each broker's pairs stand
    int32_t[::1] grouped,                # OUT  (m,) rows, broker by broker, in the order of the pairs
    int32_t[::1] origin,                 # OUT  (m,) position of each grouped pair in the input
):
    """Sort pairs by broker (counting sort, stable); return how many brokers have any. Cost O(m + b)."""
    cdef Py_ssize_t i, b, at, used = 0, total = 0, count
    with nogil:
        offsets[:] = 0
        for i in range(brokers.shape[0]):
            offsets[brokers[i]] += 1
        for b in range(offsets.shape[0]):
            count = offsets[b]
            used += count != 0
            offsets[b] = <int32_t>total
            total += count
        for i in range(brokers.shape[0]):
            at = offsets[brokers[i]]
            offsets[brokers[i]] += 1
            grouped[at] = rows[i]
            origin[at] = <int32_t>i
        for b in range(offsets.shape[0] - 1, 0, -1):
            offsets[b] = offsets[b - 1]
        offsets[0] = 0
    return used


def assign_replicas(
    const int32_t[::1] rows,             # IN   (k,) unique
    const int32_t[::1] offsets,          # IN   (k + 1,) where each row's new list stands in values and flags
    const int32_t[::1] values,           # IN   (m,) broker indexes, each once a list
    const uint8_t[::1] flags,            # IN   (m,) ReplicaFlag bits
    const int32_t[::1] slot_start,       # IN   (n,) each row owns slots for its new list and its old one
    int16_t[::1] replica_count,          # OUT  (n,)
    broker_t[::1] replica,               # OUT  (s,)
    uint8_t[::1] replica_state,          # OUT  (s,)
    uint8_t[::1] replica_flags,          # OUT  (s,)
    int32_t[::1] old_replica,            # SCRATCH (the longest old list,)
    uint8_t[::1] old_state,              # SCRATCH (the longest old list,)
    uint8_t[::1] old_flags,              # SCRATCH (the longest old list,)
    int32_t[::1] departed,               # OUT  (k,) replicas that left each row's list
):
    """Give rows new replica lists; return how many replicas left a list.

    Replicas that stay keep their state and OFFLINE_DIR flag; new ones are NonExistent. Those that left keep theirs
    too, in the slots behind the list, until the row is given another one: they still have to be stopped.
    Cost O(k * r^2), or O(k * r) where lists stay as they are: what they begin with alike is left in its place.
    """
    cdef Py_ssize_t i, j, k, start, row, at, old, new, same, gone, total = 0
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_replicas(rows, i, slot_start, replica_count, replica, replica_flags)
            row = rows[i]
            start = slot_start[row]
            at = offsets[i]
            old = replica_count[row]
            new = offsets[i + 1] - at
            same = 0
            while same < old and same < new and replica[start + same] == values[at + same]:
                replica_flags[start + same] = replica_flags[start + same] & OFFLINE_DIR | flags[at + same]
                same += 1
            for k in range(same, old):
                old_replica[k] = replica[start + k]
                old_state[k] = replica_state[start + k]
                old_flags[k] = replica_flags[start + k] & OFFLINE_DIR
            for j in range(same, new):
                replica[start + j] = values[at + j]
                replica_flags[start + j] = flags[at + j]
                replica_state[start + j] = NON_EXISTENT
            gone = 0
            for k in range(same, old):
                for j in range(same, new):
                    if replica[start + j] == old_replica[k]:
                        replica_state[start + j] = old_state[k]
                        replica_flags[start + j] |= old_flags[k]
                        break
                else:
                    replica[start + new + gone] = old_replica[k]
                    replica_state[start + new + gone] = old_state[k]
                    replica_flags[start + new + gone] = old_flags[k]
                    gone += 1
            replica_count[row] = <int16_t>new
            departed[i] = <int32_t>gone
            total += gone
    return total


def copy_assignments(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const int32_t[::1] broker_ids,       # IN   (b,) what to write for each broker index
    int kept_flags,                      # IN   ReplicaFlag bits to copy
    int32_t[::1] values,                 # OUT  (sum of replica_count of rows,) the lists, row by row
    uint8_t[::1] flags,                  # OUT  (sum of replica_count of rows,)
):
    """Copy the replica lists of rows; return how many replicas. Cost O(k * r)."""
    cdef Py_ssize_t i, slot, row, copied = 0
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            for slot in range(slot_start[row], slot_start[row] + replica_count[row]):
                values[copied] = broker_ids[replica[slot]]
                flags[copied] = replica_flags[slot] & <uint8_t>kept_flags
                copied += 1
    return copied


def mark_reassigned(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] offsets,          # IN   (k + 1,) where each row's list stands in values and flags
    const int32_t[::1] values,           # IN   (m,) broker indexes
    const uint8_t[::1] flags,            # IN   (m,) ReplicaFlag bits
    int compared_flags,                  # IN   the bits that count
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    uint8_t[::1] differs,                # OUT  (k,) 1 where the row has another list, or other flags
):
    """Compare lists with the assignments of rows; return how many are others. Cost O(k * r)."""
    cdef Py_ssize_t i, j, slot, row, found = 0
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            differs[i] = offsets[i + 1] - offsets[i] != replica_count[row]
            if not differs[i]:
                slot = slot_start[row]
                for j in range(offsets[i], offsets[i + 1]):
                    if values[j] != replica[slot] or (flags[j] ^ replica_flags[slot]) & compared_flags:
                        differs[i] = 1
                        break
                    slot += 1
            found += differs[i]
    return found


def count_by_broker(
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    int32_t[::1] leads,                  # OUT  (b,) partitions that the broker leads
    int32_t[::1] preferred,              # OUT  (b,) partitions whose first replica it is
    int32_t[::1] hosts,                  # OUT  (b,) replicas on it
    int32_t[::1] in_sync,                # OUT  (b,) ISRs that it is in
):
    """Count what each broker leads and hosts; return how many partitions have a leader. Cost O(s).

    Who is in the ISR of a healthy row need not be counted again: ``leads`` has them until the leaders are counted.
    """
    cdef Py_ssize_t row = 0, stop, width, b, found = 0
    with nogil:
        leads[:] = 0
        preferred[:] = 0
        hosts[:] = 0
        in_sync[:] = 0
        while row < leader.shape[0]:
            stop = min(row + RUN, leader.shape[0])
            width = even_width(row, RUN, slot_start, replica_count) if row + RUN == stop else 0
            if width and in_order(row, RUN, width, slot_start, isr_count, replica, isr):
                count_whole(replica, slot_start[row], width, preferred, leads)
            else:
                count_rows(
                    row, stop, slot_start, replica_count, isr_count, replica, isr, preferred, hosts, in_sync
                )
            row = stop
        for b in range(hosts.shape[0]):
            hosts[b] += preferred[b] + leads[b]
            in_sync[b] += preferred[b] + leads[b]
            leads[b] = 0
        for row in range(leader.shape[0]):
            if leader[row] >= 0:
                leads[leader[row]] += 1
                found += 1
    return found
