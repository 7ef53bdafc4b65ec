"""Kernels that write states into the partition columns, set initial replica states and maintain partition counts.

Conventions and recurring arguments: ``kframe/_core.pyx``. Reference: ``reference/states.py``. INOUT: read and written.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t
from libc.string cimport memcpy

from kframe.kernels.constants cimport (
    ADDING, EPOCH_DURING_DELETE, NO_EPOCH, NO_STATE, OFFLINE_DIR, PARTITION_OFFLINE, PARTITION_REASSIGNING,
    PARTITION_RECOVERING, REPLICA_DELETION_INELIGIBLE, REPLICA_ONLINE,
)
from kframe.kernels.prefetch cimport (
    KFRAME_PREFETCH, PREFETCH_ROWS, is_sparse, prefetch_replicas_and_flags, prefetch_slots,
)
from kframe.kernels.scan cimport BLOCK, MAX_LISTED, list_offline_brokers, mark_offline
from kframe.kernels.status cimport state_of, to_state
from kframe.kernels.types cimport broker_t

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
    const uint16_t[::1] new_epoch_number,    # IN   (k,)
    const int32_t[::1] isr_offsets,          # IN   (k + 1,) where each row's ISR begins in isr_values
    const int32_t[::1] isr_values,           # IN   (m,) broker indexes
    const int32_t[::1] slot_start,           # IN   (n,)
    broker_t[::1] leader,                    # INOUT (n,)
    int32_t[::1] leader_epoch,               # OUT  (n,)
    uint8_t[::1] status,                     # INOUT (n,)
    int32_t[::1] partition_epoch,            # INOUT (n,)
    uint16_t[::1] epoch_number,              # OUT  (n,)
    int16_t[::1] isr_count,                  # OUT  (n,)
    broker_t[::1] isr,                       # OUT  (s,)
    uint8_t[::1] counted,                    # OUT  (k,) 1 where a gauge may change
):
    """Write leadership and ISR of each row; return how many rows. Cost O(k + m).

    Gauges count states and leaders; an ISR affects them during a reassignment only.
    """
    cdef Py_ssize_t i, k, row, start
    with nogil:
        for i in range(rows.shape[0]):
            if i + 2 * PREFETCH_ROWS < rows.shape[0]:
                KFRAME_PREFETCH(&slot_start[rows[i + 2 * PREFETCH_ROWS]])
                row = rows[i + PREFETCH_ROWS]
                KFRAME_PREFETCH(&leader[row])
                KFRAME_PREFETCH(&leader_epoch[row])
                KFRAME_PREFETCH(&status[row])
                KFRAME_PREFETCH(&partition_epoch[row])
                KFRAME_PREFETCH(&epoch_number[row])
                KFRAME_PREFETCH(&isr_count[row])
                if slot_start[row] < isr.shape[0]:
                    KFRAME_PREFETCH(&isr[slot_start[row]])
            row = rows[i]
            counted[i] = (leader[row] != new_leader[i] or partition_epoch[row] == NO_STATE
                          or (status[row] & PARTITION_REASSIGNING) != 0)
            leader[row] = new_leader[i]
            leader_epoch[row] = new_leader_epoch[i]
            status[row] = status[row] & ~PARTITION_RECOVERING | new_recovery[i] & PARTITION_RECOVERING
            partition_epoch[row] = new_partition_epoch[i]
            epoch_number[row] = new_epoch_number[i]
            isr_count[row] = <int16_t>(isr_offsets[i + 1] - isr_offsets[i])
            start = slot_start[row] - isr_offsets[i]
            for k in range(isr_offsets[i], isr_offsets[i + 1]):
                isr[start + k] = isr_values[k]
    return rows.shape[0]


def list_stop_epochs(
    const int32_t[::1] rows,                 # IN   (k,)
    const int32_t[::1] topic,                # IN   (n,)
    const uint8_t[::1] deleting,             # IN   (t,)
    const int32_t[::1] partition_epoch,      # IN   (n,)
    const int32_t[::1] leader_epoch,         # IN   (n,)
    int32_t[::1] epochs,                     # OUT  (k,)
):
    """List the leader epochs of StopReplica; return how many rows are of topics that are queued for deletion.

    Kafka 3.9 ``addStopReplicaRequestForBrokers``. Cost O(k).
    """
    cdef Py_ssize_t i, row, matches = 0
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            if topic[row] >= 0 and deleting[topic[row]]:
                epochs[i] = EPOCH_DURING_DELETE
                matches += 1
            else:
                epochs[i] = NO_EPOCH if partition_epoch[row] == NO_STATE else leader_epoch[row]
    return matches


def set_replica_states(
    const int32_t[::1] rows,             # IN   (k,) row of each replica, may repeat
    const int32_t[::1] slots,            # IN   (k,) slot of each replica
    int sources,                         # IN   bit `1 << state` for every state from which target may follow
    int target,                          # IN   ReplicaState
    const int32_t[::1] topic,            # IN   (n,)
    const uint8_t[::1] is_counted,       # IN   (t,) 1 for topics whose replicas are counted; later topics are not
    uint8_t[::1] replica_status,         # INOUT (s,)
    int32_t[::1] counts,                 # INOUT (states * t,) replicas of each topic, state by state
    int64_t[::1] totals,                 # INOUT (states,) replicas of all counted topics
    uint8_t[::1] legal,                  # OUT  (k,) 1 where the state was one of sources
):
    """Set the state of replicas where that is legal, and move them between the counts of their topics.

    Returns how many transitions are legal. Replicas of a topic mostly follow each other and have the same state: the
    counts change once for such a run. Cost O(k).
    """
    cdef Py_ssize_t i = 0, first, k = rows.shape[0], topics = is_counted.shape[0], matches = 0
    cdef int32_t topic_index
    cdef uint8_t before, is_legal
    cdef bint sparse = rows.shape[0] * 4 < replica_status.shape[0]
    with nogil:
        while i < k:
            first, topic_index, before = i, topic_of(rows[i], topic, topics), state_of(replica_status[slots[i]])
            is_legal = (sources >> before) & 1
            while (i < k and topic_of(rows[i], topic, topics) == topic_index
                    and state_of(replica_status[slots[i]]) == before):
                if sparse and i + PREFETCH_ROWS < k:
                    if topics:
                        KFRAME_PREFETCH(&topic[rows[i + PREFETCH_ROWS]])
                    KFRAME_PREFETCH(&replica_status[slots[i + PREFETCH_ROWS]])
                if is_legal:
                    replica_status[slots[i]] = to_state(replica_status[slots[i]], target)
                legal[i] = is_legal
                i += 1
            matches += is_legal * (i - first)
            if 0 <= topic_index < topics and is_counted[topic_index] and is_legal and before != target:
                counts[before * topics + topic_index] -= <int32_t>(i - first)
                counts[target * topics + topic_index] += <int32_t>(i - first)
                totals[before] -= i - first
                totals[target] += i - first
    return matches


cdef inline int32_t topic_of(Py_ssize_t row, const int32_t[::1] topic, Py_ssize_t topics) noexcept nogil:
    """The topic of a row; -1 for all rows if no topic is counted."""
    return topic[row] if topics else -1


def set_replica_states_on(
    const int32_t[::1] rows,             # IN   (k,) topics >= 0
    int broker,                          # IN   a broker index
    int sources,                         # IN   bit `1 << state` for every state from which target may follow
    int target,                          # IN   ReplicaState
    const int32_t[::1] topic,            # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] is_counted,       # IN   (t,) as in set_replica_states
    uint8_t[::1] replica_status,         # INOUT (s,)
    int32_t[::1] counts,                 # INOUT (states * t,)
    int64_t[::1] totals,                 # INOUT (states,)
    int8_t[::1] legal,                   # OUT  (k,) 1 where the state was one of sources, -1 where not, 0: no replica
):
    """``set_replica_states`` for the replicas of rows on one broker; return how many transitions are legal.

    The position is equally likely to be any, so it is selected without a branch. Cost O(k * r).
    """
    cdef Py_ssize_t i, k, start, slot, row, topics = is_counted.shape[0], matches = 0
    cdef uint8_t status, before
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas_and_flags(rows, i, slot_start, replica_count, replica, replica_status)
                if i + PREFETCH_ROWS < rows.shape[0]:
                    KFRAME_PREFETCH(&topic[rows[i + PREFETCH_ROWS]])
            row, slot, legal[i] = rows[i], -1, 0
            start = slot_start[row]
            for k in range(start, start + replica_count[row]):
                slot = k if replica[k] == broker else slot
            if slot < 0:
                continue
            status = replica_status[slot]
            before = state_of(status)
            legal[i] = 1 if (sources >> before) & 1 else -1
            if legal[i] > 0:
                replica_status[slot] = to_state(status, target)
                matches += 1
                if topic[row] < topics and is_counted[topic[row]] and before != target:
                    counts[before * topics + topic[row]] -= 1
                    counts[target * topics + topic[row]] += 1
                    totals[before] -= 1
                    totals[target] += 1
    return matches


def mark_rows_of_topics(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] topic,            # IN   (n,)
    const uint8_t[::1] chosen_topics,    # IN   (t,) 1 for the requested topics
    uint8_t[::1] mask,                   # OUT  (k,) 1 for their rows
):
    """Mark the rows of the requested topics; return how many. Cost O(k)."""
    cdef Py_ssize_t i, matches = 0
    cdef int32_t topic_index
    with nogil:
        for i in range(rows.shape[0]):
            if i + PREFETCH_ROWS < rows.shape[0]:
                KFRAME_PREFETCH(&topic[rows[i + PREFETCH_ROWS]])
            topic_index = topic[rows[i]]
            mask[i] = topic_index >= 0 and chosen_topics[topic_index] != 0
            matches += mask[i]
    return matches


def count_replica_states(
    const int32_t[::1] rows,             # IN   (k,) each once; topics >= 0
    const int32_t[::1] topic,            # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    int topics,                          # IN   number of topics
    int32_t[::1] counts,                 # INOUT (states * topics,) replicas of each topic, state by state
):
    """Add the replicas of rows to the counts of their topics; return how many. Cost O(k * r).

    Replicas of a row mostly have the same state: their count changes once.
    """
    cdef Py_ssize_t i, k, first, end, row, replicas = 0
    cdef uint8_t state
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            k, end = slot_start[row], slot_start[row] + replica_count[row]
            while k < end:
                first, state = k, state_of(replica_status[k])
                while k < end and state_of(replica_status[k]) == state:
                    k += 1
                counts[<Py_ssize_t>state * topics + topic[row]] += <int32_t>(k - first)
            replicas += replica_count[row]
    return replicas


cdef inline uint8_t imbalanced_bit(
    const broker_t[::1] isr, Py_ssize_t start, Py_ssize_t isr_count, int32_t preferred, int32_t leader, bint adding
) noexcept nogil:
    cdef Py_ssize_t k
    if not adding:
        return IMBALANCED if leader != preferred else 0
    for k in range(start, start + isr_count):
        if isr[k] == preferred:
            return IMBALANCED
    return 0


def update_partition_counts(
    const int32_t[::1] rows,             # IN   (k,) may repeat
    const int32_t[::1] topic,            # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const uint8_t[::1] status,           # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics queued for deletion
    const uint8_t[::1] deletion_started,  # IN  (t,) 1 for those whose deletion has started
    uint8_t[::1] counted,                # INOUT (n,) LED, OFFLINE and IMBALANCED bits that each row is counted under
    int64_t[::1] totals,                 # INOUT (3,) rows counted as LED, as OFFLINE, as IMBALANCED
):
    """Update the counts for the current state of rows; return how many rows changed. Cost O(k).

    LED: the row has a state. OFFLINE: its state is Offline and the deletion of its topic has not started. IMBALANCED:
    the leader is not the preferred replica, and the topic is not queued for deletion. While the preferred replica is
    being added, the row is IMBALANCED once that replica is in the ISR (Kafka 3.9
    ``ControllerContext.hasPreferredLeader``).
    """
    cdef Py_ssize_t i, row, first, changes = 0, with_state = 0, offline = 0, imbalanced = 0
    cdef int32_t topic_index
    cdef uint8_t now, before
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse and i + PREFETCH_ROWS < rows.shape[0]:
                row = rows[i + PREFETCH_ROWS]
                KFRAME_PREFETCH(&topic[row])
                KFRAME_PREFETCH(&partition_epoch[row])
                KFRAME_PREFETCH(&status[row])
                KFRAME_PREFETCH(&leader[row])
                KFRAME_PREFETCH(&counted[row])
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
            row, now = rows[i], 0
            topic_index = topic[row]
            if topic_index >= 0:
                if state_of(status[row]) == PARTITION_OFFLINE and not deletion_started[topic_index]:
                    now = OFFLINE
                if partition_epoch[row] != NO_STATE:
                    now |= LED
                    first = slot_start[row]
                    if replica_count[row] > 0 and not deleting[topic_index]:
                        now |= imbalanced_bit(
                            isr, first, isr_count[row], replica[first], leader[row], replica_status[first] & ADDING)
            before = counted[row]
            if now != before:
                counted[row] = now
                with_state += (now & LED) - (before & LED)
                offline += (now & OFFLINE) - (before & OFFLINE)
                imbalanced += (now & IMBALANCED) - (before & IMBALANCED)
                changes += 1
        totals[0] += with_state // LED
        totals[1] += offline // OFFLINE
        totals[2] += imbalanced // IMBALANCED
    return changes


cdef inline Py_ssize_t initialize_slots(const uint8_t *offline, uint8_t *status) noexcept nogil:
    """Set the initial states of BLOCK replicas without branches; return how many are Online."""
    cdef uint8_t[BLOCK] ineligible, initial
    cdef Py_ssize_t k
    cdef uint8_t online = 0
    for k in range(BLOCK):
        ineligible[k] = offline[k] | (status[k] & OFFLINE_DIR)
    for k in range(BLOCK):
        initial[k] = to_state(status[k], REPLICA_DELETION_INELIGIBLE if ineligible[k] else REPLICA_ONLINE)
    for k in range(BLOCK):
        online += ineligible[k] == 0
    memcpy(status, initial, BLOCK)
    return online


def initialize_replica_states(
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] replica_status,         # INOUT (s,)
):
    """Set initial replica states: Online if the replica is online, else ReplicaDeletionIneligible.

    Returns how many are Online (Kafka 3.9 ``ReplicaStateMachine.initializeReplicaState``). Cost O(s).
    """
    cdef Py_ssize_t row = 0, k, start, end, count = 0
    cdef uint8_t online
    cdef uint8_t[BLOCK] mask
    cdef broker_t[MAX_LISTED] offline
    cdef int offline_count
    with nogil:
        offline_count = list_offline_brokers(live, offline)
        while row < slot_start.shape[0]:
            start = slot_start[row]
            end = start
            while row < slot_start.shape[0] and slot_start[row] == end:  # merge rows with adjacent slots
                end += replica_count[row]
                row += 1
            while start + BLOCK <= end:
                mark_offline(&replica[start], live, offline, offline_count, mask)
                count += initialize_slots(mask, &replica_status[start])
                start += BLOCK
            for k in range(start, end):
                online = (live[replica[k]] != 0) & ((replica_status[k] & OFFLINE_DIR) == 0)
                replica_status[k] = to_state(
                    replica_status[k], REPLICA_ONLINE if online else REPLICA_DELETION_INELIGIBLE)
                count += online
    return count
