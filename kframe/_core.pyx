"""Kernels of the controller: array passes over the partition columns.

Every function takes typed views, ``const`` where it only reads, and writes into views marked OUT that the caller has
allocated; it returns counts. The GIL is released and nothing is allocated. Callers check shapes and index ranges once
(``kframe.model.columns`` builds them right by construction); a wrong dtype is a ValueError from the view itself. Each
kernel has a naive twin of the same name and signature in ``_naive.py``.

``_hosting.pyx`` has the kernels of who hosts what and who is told, ``_state.pyx`` those that take states over.

Arguments that recur: ``rows`` (k,) partition rows, unique; ``slot_start``, ``replica_count``, ``isr_count`` (n,) row
columns and ``replica``, ``isr``, ``replica_flags`` (s,) slot columns, as in ``model/columns.py``; ``live`` (b,) 1 where
a broker is registered and not shutting down. A replica is *online* if its broker is live and its OFFLINE_DIR flag is
clear (Kafka 3.9 ``ControllerContext.isReplicaOnline``); an ISR member that is not assigned is judged by its broker
alone.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.blocks cimport alike, follow
from kframe.column cimport broker_t
from kframe.prefetch cimport ask_for_epochs, ask_for_isr, ask_for_slots, far_apart
from kframe.scan cimport BLOCK, FEW, contains, list_away, skip_alike, skip_led

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

cdef enum:
    ADDING = 1
    REMOVING = 2
    OFFLINE_DIR = 4

cdef enum:
    OFFLINE = 0
    REASSIGN = 1
    PREFERRED = 2
    CONTROLLED_SHUTDOWN = 3
    INITIAL = 4

cdef enum:
    NO_LEADER = -1
    NO_STATE = -1

cdef enum:
    PARTITION_NEW = 0
    PARTITION_ONLINE = 1
    PARTITION_OFFLINE = 2


cdef inline bint member_online(
    const broker_t[::1] replica, const uint8_t[::1] replica_flags, const uint8_t[::1] live,
    Py_ssize_t start, Py_ssize_t count, Py_ssize_t at, int32_t broker,
) noexcept nogil:
    """Whether ``broker``, a member of this row's ISR or its leader, is online. Its replica is mostly in slot ``at``."""
    cdef Py_ssize_t k
    if live[broker] == 0:
        return False
    if at < start + count and replica[at] == broker:
        return (replica_flags[at] & OFFLINE_DIR) == 0
    for k in range(start, start + count):
        if replica[k] == broker:
            return (replica_flags[k] & OFFLINE_DIR) == 0
    return True


cdef inline bint led(
    Py_ssize_t row, const broker_t[::1] leader, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const broker_t[::1] replica, const uint8_t[::1] replica_flags, const uint8_t[::1] live,
) noexcept nogil:
    """Whether a row has a leader that is online; mostly that is its first replica."""
    cdef Py_ssize_t start = slot_start[row]
    return leader[row] >= 0 and member_online(
        replica, replica_flags, live, start, replica_count[row], start, leader[row])


def choose_leaders(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] unclean_allowed,  # IN   (k,) 1 where an out-of-sync leader is permitted
    int32_t[::1] leader,                 # OUT  (k,) broker index, or NO_LEADER
):
    """Choose each row's leader by Kafka's built-in rule (3.9 ``PartitionLeaderElectionAlgorithms``); return how many
    have one.

    Candidates stand in assignment order; the first online one that is in the ISR wins. REASSIGN leaves out replicas
    that are being removed, PREFERRED looks at the first replica only, INITIAL does not ask for the ISR, and OFFLINE
    falls back to the first online replica where ``unclean_allowed``. Cost O(k * r^2).
    """
    cdef Py_ssize_t i, k, start, last, row, found = 0
    cdef int32_t chosen, fallback, broker
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
            row = rows[i]
            start = slot_start[row]
            last = start + replica_count[row]
            if kind == PREFERRED and last > start:
                last = start + 1
            chosen = NO_LEADER
            fallback = NO_LEADER
            for k in range(start, last):
                broker = replica[k]
                if live[broker] == 0 or replica_flags[k] & OFFLINE_DIR:
                    continue
                if kind == REASSIGN and replica_flags[k] & REMOVING:
                    continue
                if kind == INITIAL or contains(isr, start, isr_count[row], broker):
                    chosen = broker
                    break
                if fallback == NO_LEADER:
                    fallback = broker
            if chosen == NO_LEADER and kind == OFFLINE and unclean_allowed[i]:
                chosen = fallback
            leader[i] = chosen
            found += chosen != NO_LEADER
    return found


def mark_dead_isr(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] dead,                   # OUT  (k,) 1 where no ISR member is online
):
    """Mark the rows for which only an unclean election can find a leader; return how many. Cost O(k * r^2)."""
    cdef Py_ssize_t i, k, start, row, found = 0
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
            row = rows[i]
            start = slot_start[row]
            dead[i] = 1
            for k in range(start, start + isr_count[row]):
                if member_online(replica, replica_flags, live, start, replica_count[row], k, isr[k]):
                    dead[i] = 0
                    break
            found += dead[i]
    return found


def plan_elections(
    int kind,                            # IN   ElectionKind
    bint recovery_supported,             # IN   whether the inter-broker protocol has the recovery state
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] leader,           # IN   (k,) leader chosen for each row, never NO_LEADER
    const int32_t[::1] old_epoch,        # IN   (n,) leader_epoch column
    const uint8_t[::1] old_recovery,     # IN   (n,) recovery column
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] shutting_down,    # IN   (b,)
    int32_t[::1] leader_epoch,           # OUT  (k,)
    uint8_t[::1] recovery,               # OUT  (k,)
    int32_t[::1] isr_offsets,            # OUT  (k + 1,)
    int32_t[::1] isr_values,             # OUT  (sum of max(replica_count, isr_count) of rows,)
):
    """Work out the state that follows from each row's chosen leader; return how many elections are unclean.

    New ISR: OFFLINE keeps the online members, or only the leader if that was no member (RECOVERING where supported);
    CONTROLLED_SHUTDOWN drops members that are shutting down; REASSIGN and PREFERRED keep it; INITIAL takes all online
    replicas at leader epoch 0. ISR order is kept (Kafka 3.9 ``Election``). Cost O(k * r^2).
    """
    cdef Py_ssize_t i, k, start, count, members, row, filled = 0, unclean = 0
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        isr_offsets[0] = 0
        for i in range(rows.shape[0]):
            if far:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
            row = rows[i]
            start, count, members = slot_start[row], replica_count[row], isr_count[row]
            leader_epoch[i], recovery[i] = old_epoch[row] + 1, old_recovery[row]
            if kind == INITIAL:
                leader_epoch[i], recovery[i] = 0, 0
                for k in range(start, start + count):
                    if live[replica[k]] and (replica_flags[k] & OFFLINE_DIR) == 0:
                        isr_values[filled] = replica[k]
                        filled += 1
            elif kind == OFFLINE and not contains(isr, start, members, leader[i]):
                isr_values[filled] = leader[i]
                filled += 1
                unclean += 1
                recovery[i] = 1 if recovery_supported else old_recovery[row]
            elif kind == OFFLINE:
                for k in range(start, start + members):
                    if member_online(replica, replica_flags, live, start, count, k, isr[k]):
                        isr_values[filled] = isr[k]
                        filled += 1
            else:
                for k in range(start, start + members):
                    if kind != CONTROLLED_SHUTDOWN or shutting_down[isr[k]] == 0:
                        isr_values[filled] = isr[k]
                        filled += 1
            isr_offsets[i + 1] = <int32_t>filled
    return unclean


def plan_removals(
    int32_t broker,                      # IN   broker index that leaves the ISRs
    const int32_t[::1] rows,             # IN   (k,)
    const broker_t[::1] old_leader,      # IN   (n,) leader column
    const int32_t[::1] old_epoch,        # IN   (n,) leader_epoch column
    const uint8_t[::1] old_recovery,     # IN   (n,) recovery column
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] isr,             # IN   (s,)
    int32_t[::1] changed,                # OUT  (k,) rows whose ISR holds the broker; the first `returned` are set
    int32_t[::1] leader,                 # OUT  (k,) beside changed, as all that follows
    int32_t[::1] leader_epoch,           # OUT  (k,)
    uint8_t[::1] recovery,               # OUT  (k,)
    int32_t[::1] expected,               # OUT  (k,) the partition epoch that stands
    int32_t[::1] isr_offsets,            # OUT  (k + 1,) beside changed
    int32_t[::1] isr_values,             # OUT  (sum of isr_count of rows,)
):
    """Take one broker out of the ISRs of ``rows``; return in how many it was.

    The leader epoch goes up by one. The leader becomes NO_LEADER where it was that broker; the last member of an ISR
    stays in it (Kafka 3.9 ``ReplicaStateMachine.removeReplicasFromIsr``). Rows whose ISR lacks the broker are left out.
    Cost O(k * r).
    """
    cdef Py_ssize_t i, k, start, row, filled = 0, found = 0
    cdef bint far = far_apart(rows, slot_start)
    with nogil:
        isr_offsets[0] = 0
        for i in range(rows.shape[0]):
            if far:
                ask_for_isr(rows, i, slot_start, isr_count, isr, old_leader)
                ask_for_epochs(rows, i, old_epoch, old_recovery, partition_epoch)
            row = rows[i]
            start = slot_start[row]
            if not contains(isr, start, isr_count[row], broker):
                continue
            for k in range(start, start + isr_count[row]):
                if isr[k] != broker or isr_count[row] == 1:
                    isr_values[filled] = isr[k]
                    filled += 1
            changed[found] = <int32_t>row
            leader[found] = NO_LEADER if old_leader[row] == broker else old_leader[row]
            leader_epoch[found] = old_epoch[row] + 1
            recovery[found], expected[found] = old_recovery[row], partition_epoch[row]
            found += 1
            isr_offsets[found] = <int32_t>filled
    return found


def check_moves(
    const int32_t[::1] positions,        # IN   (k,) rows or slots that are to move
    const uint8_t[::1] states,           # IN   (n,) or (s,) their state column
    int allowed,                         # IN   bit `1 << state` for every state that may be left
    uint8_t[::1] valid,                  # OUT  (k,) 1 where the move is legal
):
    """Tell legal state moves from illegal ones; return how many are legal. Cost O(k).

    Positions that follow on one another are mostly in one state: then one look is enough for all of a block.
    """
    cdef Py_ssize_t i = 0, k, at, stop, found = 0
    cdef uint8_t legal
    with nogil:
        while i < positions.shape[0]:
            stop = min(i + BLOCK, positions.shape[0])
            at = positions[i]
            if (stop == i + BLOCK and 0 <= at <= states.shape[0] - BLOCK
                    and follow(&positions[i], BLOCK) and alike(&states[at], BLOCK)):
                legal = (allowed >> states[at]) & 1
                for k in range(i, stop):
                    valid[k] = legal
                found += legal * BLOCK
            else:
                for k in range(i, stop):
                    legal = (allowed >> states[positions[k]]) & 1
                    valid[k] = legal
                    found += legal
            i = stop
    return found


def list_leaderless(
    const int32_t[::1] topic,            # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics queued for deletion
    int32_t[::1] rows,                   # OUT  (n,)
):
    """List the rows that have a state but no online leader, topics queued for deletion left out; return how many.

    Kafka 3.9 ``ControllerContext.partitionsWithOfflineLeader``. Cost O(n + s), with one column read for healthy rows
    unless some log directory is offline.
    """
    cdef Py_ssize_t row, k, found = 0
    cdef uint8_t flags = 0
    cdef broker_t[FEW] away
    cdef int count
    with nogil:
        count = list_away(live, away)
        for k in range(replica_flags.shape[0]):
            flags |= replica_flags[k]
        row = 0 if flags & OFFLINE_DIR else skip_led(0, leader, live, away, count)
        while row < topic.shape[0]:
            if topic[row] < 0 or partition_epoch[row] == NO_STATE or deleting[topic[row]]:
                pass
            elif not led(row, leader, slot_start, replica_count, replica, replica_flags, live):
                rows[found] = <int32_t>row
                found += 1
            row = row + 1 if flags & OFFLINE_DIR else skip_led(row + 1, leader, live, away, count)
    return found


def list_in_states(
    const int32_t[::1] topic,            # IN   (n,)
    const uint8_t[::1] state,            # IN   (n,)
    int wanted,                          # IN   bit `1 << state` for every state asked for
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics to leave out
    int32_t[::1] rows,                   # OUT  (n,)
):
    """List the rows that are in one of the wanted states; return how many. Cost O(n)."""
    cdef Py_ssize_t row = 0, found = 0
    with nogil:
        while row < topic.shape[0]:
            if ((wanted >> state[row]) & 1) == 0:
                row = skip_alike(row, state)
                continue
            if topic[row] >= 0 and deleting[topic[row]] == 0:
                rows[found] = <int32_t>row
                found += 1
            row += 1
    return found


def start_partitions(
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] state,                  # OUT  (n,)
):
    """Give every partition its first state: New without leadership, Online with an online leader, else Offline.

    Returns how many are not Online (Kafka 3.9 ``PartitionStateMachine.initializePartitionState``). Cost O(n).
    """
    cdef Py_ssize_t row, found = 0
    with nogil:
        for row in range(leader.shape[0]):
            if partition_epoch[row] == NO_STATE:
                state[row] = PARTITION_NEW
            elif led(row, leader, slot_start, replica_count, replica, replica_flags, live):
                state[row] = PARTITION_ONLINE
                continue
            else:
                state[row] = PARTITION_OFFLINE
            found += 1
    return found
