"""Kernels that take states over into the partition columns, give replicas their first, and keep account of what a row
counts for.

The house rules are those of ``_core.pyx``; the twins stand in ``_naive.py``. Arrays marked INOUT are read and
written.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kframe.column cimport broker_t
from kframe.prefetch cimport AHEAD, KFRAME_PREFETCH, ask_for_slots, far_apart
from kframe.scan cimport BLOCK, FEW, list_away, mark_away

cdef enum:
    ADDING = 1
    OFFLINE_DIR = 4

cdef enum:
    NO_STATE = -1

cdef enum:
    PARTITION_OFFLINE = 2

cdef enum:
    REPLICA_ONLINE = 2
    REPLICA_INELIGIBLE = 6

cdef enum:
    LED = 1
    OFFLINE = 2
    IMBALANCED = 4


def store_states(
    const int32_t[::1] rows,                 # IN   (k,) unique; each owns slots for its new ISR
    const int32_t[::1] new_leader,           # IN   (k,)
    const int32_t[::1] new_leader_epoch,     # IN   (k,)
    const uint8_t[::1] new_recovery,         # IN   (k,)
    const int32_t[::1] new_partition_epoch,  # IN   (k,)
    const int32_t[::1] new_controller_epoch,  # IN  (k,)
    const int32_t[::1] isr_offsets,          # IN   (k + 1,) where each row's ISR stands in isr_values
    const int32_t[::1] isr_values,           # IN   (m,) broker indexes
    const int32_t[::1] slot_start,           # IN   (n,)
    broker_t[::1] leader,                    # OUT  (n,)
    int32_t[::1] leader_epoch,               # OUT  (n,)
    uint8_t[::1] recovery,                   # OUT  (n,)
    int32_t[::1] partition_epoch,            # OUT  (n,)
    int32_t[::1] controller_epoch,           # OUT  (n,)
    int16_t[::1] isr_count,                  # OUT  (n,)
    broker_t[::1] isr,                       # OUT  (s,)
):
    """Write leadership and ISR of each row; return how many rows. Cost O(k + m)."""
    cdef Py_ssize_t i, k, row, start
    with nogil:
        for i in range(rows.shape[0]):
            if i + AHEAD < rows.shape[0]:
                row = rows[i + AHEAD]
                KFRAME_PREFETCH(&leader[row])
                KFRAME_PREFETCH(&leader_epoch[row])
                KFRAME_PREFETCH(&recovery[row])
                KFRAME_PREFETCH(&partition_epoch[row])
                KFRAME_PREFETCH(&controller_epoch[row])
                KFRAME_PREFETCH(&isr_count[row])
                if slot_start[row] < isr.shape[0]:
                    KFRAME_PREFETCH(&isr[slot_start[row]])
            row = rows[i]
            leader[row] = new_leader[i]
            leader_epoch[row] = new_leader_epoch[i]
            recovery[row] = new_recovery[i]
            partition_epoch[row] = new_partition_epoch[i]
            controller_epoch[row] = new_controller_epoch[i]
            isr_count[row] = <int16_t>(isr_offsets[i + 1] - isr_offsets[i])
            start = slot_start[row] - isr_offsets[i]
            for k in range(isr_offsets[i], isr_offsets[i + 1]):
                isr[start + k] = isr_values[k]
    return rows.shape[0]


cdef inline uint8_t preferred_misses(
    const broker_t[::1] isr, Py_ssize_t start, Py_ssize_t isr_count, int32_t preferred, int32_t leader, bint adding
) noexcept nogil:
    cdef Py_ssize_t k
    if not adding:
        return IMBALANCED if leader != preferred else 0
    for k in range(start, start + isr_count):
        if isr[k] == preferred:
            return IMBALANCED
    return 0


def tally_rows(
    const int32_t[::1] rows,             # IN   (k,) any number of times each
    const int32_t[::1] topic,            # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const uint8_t[::1] state,            # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics queued for deletion
    const uint8_t[::1] deletion_started,  # IN  (t,) 1 for those whose deletion has started
    uint8_t[::1] counted,                # INOUT (n,) LED, OFFLINE and IMBALANCED bits that each row counts for
    int64_t[::1] totals,                 # INOUT (3,) rows that count as LED, as OFFLINE, as IMBALANCED
):
    """Let rows count for what they are now; return how many count for something else than before. Cost O(k).

    LED: it has a state. OFFLINE: unless its topic's deletion has started. IMBALANCED: another than the preferred
    replica leads, unless the topic is queued for deletion; while the preferred replica is being added, as soon as that
    is in the ISR, whoever leads (Kafka 3.9 ``ControllerContext.hasPreferredLeader``).
    """
    cdef Py_ssize_t i, row, first, changes = 0, led = 0, offline = 0, imbalanced = 0
    cdef int32_t of
    cdef uint8_t now, before
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far and i + AHEAD < rows.shape[0]:
                row = rows[i + AHEAD]
                KFRAME_PREFETCH(&topic[row])
                KFRAME_PREFETCH(&partition_epoch[row])
                KFRAME_PREFETCH(&state[row])
                KFRAME_PREFETCH(&leader[row])
                KFRAME_PREFETCH(&counted[row])
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
            row, now = rows[i], 0
            of = topic[row]
            if of >= 0:
                if state[row] == PARTITION_OFFLINE and not deletion_started[of]:
                    now = OFFLINE
                if partition_epoch[row] != NO_STATE:
                    now |= LED
                    first = slot_start[row]
                    if replica_count[row] > 0 and not deleting[of]:
                        now |= preferred_misses(
                            isr, first, isr_count[row], replica[first], leader[row], replica_flags[first] & ADDING
                        )
            before = counted[row]
            if now != before:
                counted[row] = now
                led += (now & LED) - (before & LED)
                offline += (now & OFFLINE) - (before & OFFLINE)
                imbalanced += (now & IMBALANCED) - (before & IMBALANCED)
                changes += 1
        totals[0] += led // LED
        totals[1] += offline // OFFLINE
        totals[2] += imbalanced // IMBALANCED
    return changes


cdef inline Py_ssize_t start_slots(const uint8_t *away, const uint8_t *flags, uint8_t *state) noexcept nogil:
    """Give BLOCK replicas their first state, with no branch for each; return how many are Online."""
    cdef uint8_t[BLOCK] bad, made
    cdef Py_ssize_t k
    cdef uint8_t found = 0
    for k in range(BLOCK):
        bad[k] = away[k] | (flags[k] & OFFLINE_DIR)
    for k in range(BLOCK):
        made[k] = REPLICA_INELIGIBLE if bad[k] else REPLICA_ONLINE
    for k in range(BLOCK):
        found += bad[k] == 0
    memcpy(state, made, BLOCK)
    return found


def start_replicas(
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] replica_state,          # OUT  (s,)
):
    """Give every replica its first state: Online where it is, else ReplicaDeletionIneligible; return how many are
    Online.

    Kafka 3.9 ``ReplicaStateMachine.initializeReplicaState``. Cost O(s).
    """
    cdef Py_ssize_t row = 0, k, start, end, found = 0
    cdef uint8_t online
    cdef uint8_t[BLOCK] hit
    cdef broker_t[FEW] away
    cdef int count
    with nogil:
        count = list_away(live, away)
        while row < slot_start.shape[0]:
            start = slot_start[row]
            end = start
            while row < slot_start.shape[0] and slot_start[row] == end:  # slots that follow on one another go together
                end += replica_count[row]
                row += 1
            while start + BLOCK <= end:
                mark_away(&replica[start], live, away, count, hit)
                found += start_slots(hit, &replica_flags[start], &replica_state[start])
                start += BLOCK
            for k in range(start, end):
                online = (live[replica[k]] != 0) & ((replica_flags[k] & OFFLINE_DIR) == 0)
                replica_state[k] = REPLICA_ONLINE if online else REPLICA_INELIGIBLE
                found += online
    return found
