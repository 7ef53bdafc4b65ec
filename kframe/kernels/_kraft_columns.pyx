"""Kernels that search the columns of a KRaft cluster, and read and write them in rows far apart.

Lists are CSR: list ``i`` of ``values`` is ``values[offsets[i]:offsets[i + 1]]``. Brokers and directories are indexes.
Reference: ``reference/kraft_columns.py``; ``model/kraft/columns.py`` describes the columns.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t, uint64_t

from kframe.kernels.prefetch cimport KFRAME_PREFETCH, PREFETCH_ROWS, is_sparse, prefetch_list
from kframe.kernels.scan cimport BLOCK, PREFETCH_BYTES, contains, equal_slots, in_list, lowest_bit
from kframe.kernels.types cimport broker_t

# The most slots of BLOCK rows that are compared together: fewer wide rows are compared row by row.
cdef enum:
    MAX_SLOTS = 8 * BLOCK


cdef inline bint is_ascending(const int32_t *slot_start) noexcept nogil:
    """Whether BLOCK rows and the next one have their slots one after another. Rows do not share slots."""
    cdef int32_t steps = 0
    cdef int k
    for k in range(BLOCK):
        steps |= slot_start[k + 1] - slot_start[k]
    return steps >= 0


cdef inline Py_ssize_t row_of_slot(const int32_t *slot_start, Py_ssize_t slot) noexcept nogil:
    """The row of a slot among BLOCK ascending rows: most rows have the same number of slots."""
    cdef Py_ssize_t slots = slot_start[BLOCK] - slot_start[0]
    cdef Py_ssize_t row = <int32_t>((slot - slot_start[0]) * BLOCK) // <int32_t>slots
    while slot_start[row] > slot:
        row -= 1
    while slot_start[row + 1] <= slot:
        row += 1
    return row


cdef inline Py_ssize_t list_block(
    Py_ssize_t first_row, const int32_t[::1] slot_start, const int16_t[::1] count, const broker_t[::1] values,
    broker_t broker, int32_t[::1] rows, Py_ssize_t matches,
) noexcept nogil:
    """Append those of BLOCK ascending rows whose list contains the broker; return the new number of ``rows``."""
    cdef Py_ssize_t first = slot_start[first_row], end = slot_start[first_row + BLOCK]
    cdef Py_ssize_t prefetched, slot, row
    cdef uint64_t equal
    while first < end:
        prefetched = first + PREFETCH_BYTES // sizeof(broker_t)
        if prefetched + BLOCK <= values.shape[0]:
            KFRAME_PREFETCH(&values[prefetched])
            KFRAME_PREFETCH(&values[prefetched + BLOCK // 2])
        equal = equal_slots(&values[first + BLOCK - 1] - (BLOCK - 1), broker)
        while equal:
            slot = first + lowest_bit(equal)
            equal &= equal - 1
            if slot >= end:
                break
            row = first_row + row_of_slot(&slot_start[first_row + BLOCK] - BLOCK, slot)
            if slot < slot_start[row] + count[row] and (matches == 0 or rows[matches - 1] != row):
                rows[matches] = <int32_t>row
                matches += 1
        first += BLOCK
    return matches


def list_rows_with_broker(
    const int32_t[::1] slot_start,  # IN   (n,)
    const int16_t[::1] count,       # IN   (n,) length of the list
    const broker_t[::1] values,     # IN   (s,) lists at the start of the slots
    int32_t broker,                 # IN
    int32_t[::1] rows,              # OUT  (n,)
):
    """List the rows whose ISR, ELR or replicas contain a broker; return how many."""
    cdef Py_ssize_t first = 0, end, row, matches = 0, n = slot_start.shape[0]
    with nogil:
        while first < n:
            end = first + BLOCK
            if end < n and is_ascending(&slot_start[end] - BLOCK) \
                    and slot_start[end] - slot_start[first] <= MAX_SLOTS \
                    and slot_start[end] + BLOCK <= values.shape[0]:
                matches = list_block(first, slot_start, count, values, <broker_t>broker, rows, matches)
            else:
                end = min(end, n)
                for row in range(first, end):
                    if contains(values, slot_start[row], count[row], broker):
                        rows[matches] = <int32_t>row
                        matches += 1
            first = end
    return matches


def list_rows_in_directory(
    const int32_t[::1] slot_start,     # IN   (n,)
    const int16_t[::1] replica_count,  # IN   (n,)
    const int32_t[::1] directory,      # IN   (s,)
    int32_t target,                    # IN   directory index
    int32_t[::1] rows,                 # OUT  (n,)
):
    """List the rows with a replica in a directory; return how many."""
    cdef Py_ssize_t row, matches = 0
    with nogil:
        for row in range(slot_start.shape[0]):
            if in_list(directory, slot_start[row], slot_start[row] + replica_count[row], target):
                rows[matches] = <int32_t>row
                matches += 1
    return matches


def read_partitions(
    const int32_t[::1] rows,                  # IN   (k,)
    const int32_t[::1] slot_start,            # IN   (n,)
    const int16_t[::1] replica_count,         # IN   (n,)
    const int16_t[::1] isr_count,             # IN   (n,)
    const int16_t[::1] elr_count,             # IN   (n,)
    const int16_t[::1] last_known_elr_count,  # IN   (n,)
    const int16_t[::1] adding_count,          # IN   (n,)
    const int16_t[::1] removing_count,        # IN   (n,)
    const broker_t[::1] leader,               # IN   (n,)
    int32_t[::1] starts,                      # OUT  (k,) first slot
    int32_t[::1] leaders,                     # OUT  (k,) broker index, or NO_LEADER
    int32_t[::1] replica_offsets,             # OUT  (k + 1,)
    int32_t[::1] isr_offsets,                 # OUT  (k + 1,)
):
    """Read where the lists of rows are, and their leaders; return the number of members in the other four lists."""
    cdef Py_ssize_t i, row, prefetched, members = 0
    cdef int32_t replicas = 0, in_sync = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        replica_offsets[0] = isr_offsets[0] = 0
        for i in range(rows.shape[0]):
            if sparse and i + PREFETCH_ROWS < rows.shape[0]:
                prefetched = rows[i + PREFETCH_ROWS]
                KFRAME_PREFETCH(&slot_start[prefetched])
                KFRAME_PREFETCH(&replica_count[prefetched])
                KFRAME_PREFETCH(&isr_count[prefetched])
                KFRAME_PREFETCH(&elr_count[prefetched])
                KFRAME_PREFETCH(&last_known_elr_count[prefetched])
                KFRAME_PREFETCH(&adding_count[prefetched])
                KFRAME_PREFETCH(&removing_count[prefetched])
                KFRAME_PREFETCH(&leader[prefetched])
            row = rows[i]
            starts[i], leaders[i] = slot_start[row], leader[row]
            replicas += replica_count[row]
            in_sync += isr_count[row]
            members += elr_count[row] + last_known_elr_count[row] + adding_count[row] + removing_count[row]
            replica_offsets[i + 1], isr_offsets[i + 1] = replicas, in_sync
    return members


def copy_lists(
    const int32_t[::1] starts,   # IN   (k,) first slot of each list
    const int32_t[::1] offsets,  # IN   (k + 1,) of the lists in copied
    const broker_t[::1] values,  # IN   (s,)
    int32_t[::1] copied,         # OUT  (offsets[k],)
):
    """Copy lists that may be far apart; return how many values."""
    cdef Py_ssize_t i, k, slot
    with nogil:
        for i in range(starts.shape[0]):
            prefetch_list(starts, offsets, i, values)
            slot = starts[i] - offsets[i]
            for k in range(offsets[i], offsets[i + 1]):
                copied[k] = values[slot + k]
    return offsets[starts.shape[0]]


def remove_from_lists(
    const int32_t[::1] offsets,       # IN   (k + 1,)
    const int32_t[::1] values,        # IN   (v,)
    int32_t broker,                   # IN
    int32_t[::1] remaining_offsets,   # OUT  (k + 1,)
    int32_t[::1] remaining,           # OUT  (v,)
):
    """Copy lists without a broker; return how many values remain."""
    cdef Py_ssize_t i, k
    cdef int32_t count = 0
    with nogil:
        remaining_offsets[0] = 0
        for i in range(offsets.shape[0] - 1):
            for k in range(offsets[i], offsets[i + 1]):
                if values[k] != broker:
                    remaining[count] = values[k]
                    count += 1
            remaining_offsets[i + 1] = count
    return count


def store_isrs(
    const int32_t[::1] rows,           # IN   (k,) unique
    const uint8_t[::1] writes,         # IN   (k,) 1 for rows to store
    const int32_t[::1] offsets,        # IN   (k + 1,)
    const int32_t[::1] members,        # IN   (m,)
    const int32_t[::1] slot_start,     # IN   (n,)
    const int16_t[::1] slot_capacity,  # IN   (n,)
    int16_t[::1] isr_count,            # OUT  (n,)
    broker_t[::1] isr,                 # OUT  (s,)
):
    """Store ISRs that fit into the slots of their rows; return how many do not."""
    cdef Py_ssize_t i, k, row, prefetched, start, count, too_long = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse and i + 2 * PREFETCH_ROWS < rows.shape[0]:
                prefetched = rows[i + 2 * PREFETCH_ROWS]
                KFRAME_PREFETCH(&slot_start[prefetched])
                KFRAME_PREFETCH(&slot_capacity[prefetched])
                KFRAME_PREFETCH(&isr_count[prefetched])
                prefetched = slot_start[rows[i + PREFETCH_ROWS]]
                if prefetched < isr.shape[0]:
                    KFRAME_PREFETCH(&isr[prefetched])
            if not writes[i]:
                continue
            row, count = rows[i], offsets[i + 1] - offsets[i]
            if count > slot_capacity[row]:
                too_long += 1
                continue
            isr_count[row], start = <int16_t>count, slot_start[row]
            for k in range(count):
                isr[start + k] = <broker_t>members[offsets[i] + k]
    return too_long


def store_changes(
    const int32_t[::1] rows,             # IN   (k,) unique
    const uint8_t[::1] changed,          # IN   (k,) 1 for rows that have a record
    const uint8_t[::1] writes_leader,    # IN   (k,) 1 for records with a leader
    const int32_t[::1] new_leader,       # IN   (k,)
    const uint8_t[::1] writes_recovery,  # IN   (k,) 1 for records with a recovery state
    const uint8_t[::1] new_recovery,     # IN   (k,)
    broker_t[::1] leader,                # OUT  (n,)
    int32_t[::1] leader_epoch,           # OUT  (n,)
    uint8_t[::1] recovery,               # OUT  (n,)
    int32_t[::1] partition_epoch,        # OUT  (n,)
):
    """Store the leaders and recovery states of records, and raise the epochs; return how many rows change."""
    cdef Py_ssize_t i, row, prefetched, count = 0
    cdef bint sparse = rows.shape[0] * 4 < leader.shape[0]
    with nogil:
        for i in range(rows.shape[0]):
            if sparse and i + PREFETCH_ROWS < rows.shape[0]:
                prefetched = rows[i + PREFETCH_ROWS]
                KFRAME_PREFETCH(&leader[prefetched])
                KFRAME_PREFETCH(&leader_epoch[prefetched])
                KFRAME_PREFETCH(&partition_epoch[prefetched])
            row = rows[i]
            if writes_leader[i]:
                leader[row] = <broker_t>new_leader[i]
                leader_epoch[row] += 1
            if writes_recovery[i]:
                recovery[row] = new_recovery[i]
            if changed[i]:
                partition_epoch[row] += 1
                count += 1
    return count
