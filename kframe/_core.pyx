"""Bulk state transitions of partitions, and request batching by broker.

Every kernel takes typed views, ``const`` where it only reads, and writes into views marked OUT that the caller has
allocated. It returns counts, releases the GIL and allocates nothing. Callers check shapes and index ranges once
(``kframe.model.columns`` builds valid columns); a wrong dtype is a ValueError from the view itself. Each kernel has a
reference of the same name and signature in ``verification/reference/core.py``. Other kernels: ``kframe/kernels/``.

Recurring arguments: ``rows`` (k,) partition rows, unique; ``slot_start``, ``replica_count``, ``isr_count`` (n,) row
columns; ``replica``, ``isr``, ``replica_status`` (s,) slot columns, as in ``model/columns.py``; ``live`` (b,) 1 where a
broker is registered and not shutting down. A replica is *online* if its broker is live and its OFFLINE_DIR flag is
clear (Kafka 3.9 ``ControllerContext.isReplicaOnline``). An unassigned ISR member is online if its broker is live.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.blocks cimport is_consecutive, is_uniform
from kframe.kernels.constants cimport (
    ELECT_CONTROLLED_SHUTDOWN, ELECT_INITIAL, ELECT_OFFLINE, NO_LEADER, NO_STATE, OFFLINE_DIR, PARTITION_NEW,
    PARTITION_OFFLINE, PARTITION_ONLINE, PARTITION_RECOVERING,
)
from kframe.kernels.online cimport has_online_leader, member_online
from kframe.kernels.prefetch cimport (
    is_sparse, prefetch_replicas_and_flags, prefetch_slots, prefetch_states,
)
from kframe.kernels.scan cimport BLOCK, contains, skip_equal_rows
from kframe.kernels.status cimport state_of, to_state
from kframe.kernels.types cimport broker_t

cdef extern from *:
    """
    #ifdef KFRAME_DEBUG
    #define KFRAME_CHECKED 1
    #else
    #define KFRAME_CHECKED 0
    #endif
    """
    const int KFRAME_CHECKED

#: Whether this build checks the bounds of every access (KFRAME_DEBUG=1 at build time).
DEBUG = bool(KFRAME_CHECKED)


def plan_elections(
    int kind,                            # IN   ElectionKind
    bint recovery_supported,             # IN   whether the inter-broker protocol has the recovery state
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] leader,           # IN   (k,) leader chosen for each row, never NO_LEADER
    const int32_t[::1] old_epoch,        # IN   (n,) leader_epoch column
    const uint8_t[::1] status,           # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] shutting_down,    # IN   (b,)
    int32_t[::1] leader_epoch,           # OUT  (k,)
    uint8_t[::1] recovery,               # OUT  (k,)
    int32_t[::1] isr_offsets,            # OUT  (k + 1,)
    int32_t[::1] isr_values,             # OUT  (sum of max(replica_count, isr_count) of rows,)
):
    """Compute the state that follows from each row's chosen leader; return how many elections are unclean.

    New ISR: OFFLINE keeps the online members, or only the leader if it is not a member (RECOVERING where supported).
    CONTROLLED_SHUTDOWN drops members that are shutting down. REASSIGN and PREFERRED keep the ISR. INITIAL takes all
    online replicas at leader epoch 0. ISR order is kept (Kafka 3.9 ``Election``). Cost O(k * r^2).
    """
    cdef Py_ssize_t i, k, start, count, members, row, filled = 0, unclean = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        isr_offsets[0] = 0
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
            row = rows[i]
            start, count, members = slot_start[row], replica_count[row], isr_count[row]
            leader_epoch[i], recovery[i] = old_epoch[row] + 1, status[row] & PARTITION_RECOVERING
            if kind == ELECT_INITIAL:
                leader_epoch[i], recovery[i] = 0, 0
                for k in range(start, start + count):
                    if live[replica[k]] and (replica_status[k] & OFFLINE_DIR) == 0:
                        isr_values[filled] = replica[k]
                        filled += 1
            elif kind == ELECT_OFFLINE and not contains(isr, start, members, leader[i]):
                isr_values[filled] = leader[i]
                filled += 1
                unclean += 1
                recovery[i] = status[row] & PARTITION_RECOVERING | recovery_supported
            elif kind == ELECT_OFFLINE:
                for k in range(start, start + members):
                    if member_online(replica, replica_status, live, start, count, k, isr[k]):
                        isr_values[filled] = isr[k]
                        filled += 1
            else:
                for k in range(start, start + members):
                    if kind != ELECT_CONTROLLED_SHUTDOWN or shutting_down[isr[k]] == 0:
                        isr_values[filled] = isr[k]
                        filled += 1
            isr_offsets[i + 1] = <int32_t>filled
    return unclean


def plan_removals(
    const int32_t[::1] brokers,          # IN   (k,) broker index to remove from the ISR of each row
    const int32_t[::1] rows,             # IN   (k,)
    const broker_t[::1] old_leader,      # IN   (n,) leader column
    const int32_t[::1] old_epoch,        # IN   (n,) leader_epoch column
    const uint8_t[::1] status,           # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] isr,             # IN   (s,)
    int32_t[::1] changed,                # OUT  (k,) rows whose ISR has the broker; only the returned count is written
    int32_t[::1] leader,                 # OUT  (k,) of the changed rows, like all below
    int32_t[::1] leader_epoch,           # OUT  (k,)
    uint8_t[::1] recovery,               # OUT  (k,)
    int32_t[::1] expected,               # OUT  (k,) current partition epoch
    int32_t[::1] isr_offsets,            # OUT  (k + 1,)
    int32_t[::1] isr_values,             # OUT  (sum of isr_count of rows,)
):
    """Remove a broker from the ISR of each row; return how many ISRs had it.

    The leader epoch is incremented. The leader becomes NO_LEADER if it was that broker. The last member of an ISR stays
    (Kafka 3.9 ``ReplicaStateMachine.removeReplicasFromIsr``). Rows whose ISR lacks the broker are left out. Cost
    O(k * r).
    """
    cdef Py_ssize_t i, k, start, row, members, hits, position, filled = 0, matches = 0
    cdef int32_t broker
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        isr_offsets[0] = 0
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_states(
                    rows, i, slot_start, isr_count, isr, old_leader, old_epoch, partition_epoch, status)
            row = rows[i]
            start, members, broker, hits, position = slot_start[row], isr_count[row], brokers[i], 0, 0
            for k in range(members):  # without branches: any member may be the broker
                hits += isr[start + k] == broker
                position = k if isr[start + k] == broker else position
            if hits == 0:
                continue
            if hits == 1 and members > 1:
                for k in range(members - 1):
                    isr_values[filled + k] = isr[start + k + (k >= position)]
                filled += members - 1
            else:
                for k in range(start, start + members):
                    if isr[k] != broker or members == 1:
                        isr_values[filled] = isr[k]
                        filled += 1
            changed[matches] = <int32_t>row
            leader[matches] = NO_LEADER if old_leader[row] == broker else old_leader[row]
            leader_epoch[matches] = old_epoch[row] + 1
            recovery[matches], expected[matches] = status[row] & PARTITION_RECOVERING, partition_epoch[row]
            matches += 1
            isr_offsets[matches] = <int32_t>filled
    return matches


def check_transitions(
    const int32_t[::1] positions,        # IN   (k,) rows or slots
    const uint8_t[::1] status,           # IN   (n,) or (s,) their status column
    int allowed,                         # IN   bit `1 << state` for every valid previous state
    uint8_t[::1] valid,                  # OUT  (k,) 1 where the transition is valid
):
    """Tell valid state transitions from invalid ones; return how many are valid. Cost O(k).

    Consecutive positions mostly share one status: then one comparison is enough for a block.
    """
    cdef Py_ssize_t i = 0, k, slot, stop, matches = 0
    cdef uint8_t legal
    with nogil:
        while i < positions.shape[0]:
            stop = min(i + BLOCK, positions.shape[0])
            slot = positions[i]
            if (stop == i + BLOCK and 0 <= slot <= status.shape[0] - BLOCK
                    and is_consecutive(&positions[i], BLOCK) and is_uniform(&status[slot], BLOCK)):
                legal = (allowed >> state_of(status[slot])) & 1
                for k in range(i, stop):
                    valid[k] = legal
                matches += legal * BLOCK
            else:
                for k in range(i, stop):
                    legal = (allowed >> state_of(status[positions[k]])) & 1
                    valid[k] = legal
                    matches += legal
            i = stop
    return matches


def mark_online_replicas(
    const int32_t[::1] slots,            # IN   (m,) slot of each replica
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] online,                 # OUT  (m,) 1 where the replica is online
):
    """Mark the online replicas; return how many. Cost O(m)."""
    cdef Py_ssize_t i, slot, matches = 0
    with nogil:
        for i in range(slots.shape[0]):
            slot = slots[i]
            online[i] = (live[replica[slot]] != 0) & ((replica_status[slot] & OFFLINE_DIR) == 0)
            matches += online[i]
    return matches


def list_in_states(
    const int32_t[::1] topic,            # IN   (n,)
    const uint8_t[::1] status,           # IN   (n,)
    int state_mask,                      # IN   bit `1 << state` for every requested state
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics to leave out
    int32_t[::1] rows,                   # OUT  (n,)
):
    """List the rows in one of the requested states; return how many. Cost O(n)."""
    cdef Py_ssize_t row = 0, matches = 0
    with nogil:
        while row < topic.shape[0]:
            if ((state_mask >> state_of(status[row])) & 1) == 0:
                row = skip_equal_rows(row, status)
                continue
            if topic[row] >= 0 and deleting[topic[row]] == 0:
                rows[matches] = <int32_t>row
                matches += 1
            row += 1
    return matches


def initialize_partition_states(
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] status,                 # INOUT (n,)
):
    """Set initial partition states: New without leadership, Online with an online leader, else Offline.

    Returns how many are not Online (Kafka 3.9 ``PartitionStateMachine.initializePartitionState``). Cost O(n).
    """
    cdef Py_ssize_t row, matches = 0
    with nogil:
        for row in range(leader.shape[0]):
            if partition_epoch[row] == NO_STATE:
                status[row] = to_state(status[row], PARTITION_NEW)
            elif has_online_leader(row, leader, slot_start, replica_count, replica, replica_status, live):
                status[row] = to_state(status[row], PARTITION_ONLINE)
                continue
            else:
                status[row] = to_state(status[row], PARTITION_OFFLINE)
            matches += 1
    return matches


def list_recipients(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] allowed,          # IN   (b,) 1 for brokers that may receive requests
    int skip_flags,                      # IN   skip replicas with any of these ReplicaFlag bits
    int new_flags,                       # IN   replicas with any of these ReplicaFlag bits are new
    int32_t[::1] brokers,                # OUT  (sum of replica_count of rows,) broker index of the recipient
    int32_t[::1] announced,              # OUT  (sum of replica_count of rows,) row to announce to it
    uint8_t[::1] is_new,                 # OUT  (sum of replica_count of rows,) 1 where its replica is new
):
    """List the brokers that receive each row; return how many (broker, row) pairs. Cost O(k * r)."""
    cdef Py_ssize_t i, k, row, matches = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_replicas_and_flags(rows, i, slot_start, replica_count, replica, replica_status)
            row = rows[i]
            for k in range(slot_start[row], slot_start[row] + replica_count[row]):
                if allowed[replica[k]] and (replica_status[k] & skip_flags) == 0:
                    brokers[matches] = replica[k]
                    announced[matches] = <int32_t>row
                    is_new[matches] = (replica_status[k] & new_flags) != 0
                    matches += 1
    return matches


def group_by_broker(
    const int32_t[::1] brokers,          # IN   (m,) broker index of each pair
    const int32_t[::1] rows,             # IN   (m,) row of each pair
    int32_t[::1] offsets,                # OUT  (b + 1,) where each broker's pairs begin
    int32_t[::1] grouped,                # OUT  (m,) rows, broker by broker, in the order of the pairs
    int32_t[::1] origin,                 # OUT  (m,) position of each grouped pair in the input; may be empty
):
    """Sort pairs by broker (counting sort, stable); return how many brokers have any. Cost O(m + b)."""
    cdef Py_ssize_t i, b, slot, used = 0, total = 0, count
    cdef bint with_origin = origin.shape[0] > 0
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
            slot = offsets[brokers[i]]
            offsets[brokers[i]] += 1
            grouped[slot] = rows[i]
            if with_origin:
                origin[slot] = <int32_t>i
        for b in range(offsets.shape[0] - 1, 0, -1):
            offsets[b] = offsets[b - 1]
        offsets[0] = 0
    return used
