"""Kernels that choose leaders by Kafka's built-in rule, and that find the rows in need of a leader.

Conventions, recurring arguments and the meaning of *online*: ``kframe/_core.pyx``. Reference:
``reference/elections.py``.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.constants cimport (
    ELECT_INITIAL, ELECT_OFFLINE, ELECT_PREFERRED, ELECT_REASSIGN, NO_LEADER, NO_STATE, OFFLINE_DIR, REMOVING,
)
from kframe.kernels.online cimport has_online_leader, member_online
from kframe.kernels.prefetch cimport is_sparse, prefetch_slots
from kframe.kernels.scan cimport MAX_LISTED, contains, list_offline_brokers, skip_led_rows
from kframe.kernels.types cimport broker_t


def choose_leaders(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] unclean_allowed,  # IN   (k,) 1 where an out-of-sync leader is permitted
    int32_t[::1] leader,                 # OUT  (k,) broker index, or NO_LEADER
):
    """Choose leaders by Kafka's built-in rule (3.9 ``PartitionLeaderElectionAlgorithms``); return how many there are.

    Candidates are in assignment order; the first online one in the ISR wins. REASSIGN leaves out replicas that are
    being removed, PREFERRED considers the first replica only, INITIAL ignores the ISR, and OFFLINE falls back to the
    first online replica where ``unclean_allowed``. Cost O(k * r^2).
    """
    cdef Py_ssize_t i, k, start, last, row, matches = 0
    cdef int32_t chosen, fallback, broker
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
            row = rows[i]
            start = slot_start[row]
            last = start + replica_count[row]
            if kind == ELECT_PREFERRED and last > start:
                last = start + 1
            chosen = NO_LEADER
            fallback = NO_LEADER
            for k in range(start, last):
                broker = replica[k]
                if live[broker] == 0 or replica_status[k] & OFFLINE_DIR:
                    continue
                if kind == ELECT_REASSIGN and replica_status[k] & REMOVING:
                    continue
                if kind == ELECT_INITIAL or contains(isr, start, isr_count[row], broker):
                    chosen = broker
                    break
                if fallback == NO_LEADER:
                    fallback = broker
            if chosen == NO_LEADER and kind == ELECT_OFFLINE and unclean_allowed[i]:
                chosen = fallback
            leader[i] = chosen
            matches += chosen != NO_LEADER
    return matches


def mark_offline_isrs(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] offline_isr,            # OUT  (k,) 1 where no ISR member is online
):
    """Mark the rows for which only an unclean election can find a leader; return how many. Cost O(k * r^2)."""
    cdef Py_ssize_t i, k, start, row, matches = 0
    cdef bint sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_status)
            row = rows[i]
            start = slot_start[row]
            offline_isr[i] = 1
            for k in range(start, start + isr_count[row]):
                if member_online(replica, replica_status, live, start, replica_count[row], k, isr[k]):
                    offline_isr[i] = 0
                    break
            matches += offline_isr[i]
    return matches


def list_leaderless(
    const int32_t[::1] topic,            # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const uint8_t[::1] replica_status,   # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] deleting,         # IN   (t,) 1 for topics queued for deletion
    int32_t[::1] rows,                   # OUT  (n,)
):
    """List the rows with a state but without an online leader, except for topics queued for deletion; return how many.

    Kafka 3.9 ``ControllerContext.partitionsWithOfflineLeader``. Cost O(n + s), with one column read for healthy rows
    unless some log directory is offline.
    """
    cdef Py_ssize_t row, k, matches = 0
    cdef uint8_t flags = 0
    cdef broker_t[MAX_LISTED] offline
    cdef int count
    with nogil:
        count = list_offline_brokers(live, offline)
        for k in range(replica_status.shape[0]):
            flags |= replica_status[k]
        row = 0 if flags & OFFLINE_DIR else skip_led_rows(0, leader, live, offline, count)
        while row < topic.shape[0]:
            if topic[row] < 0 or partition_epoch[row] == NO_STATE or deleting[topic[row]]:
                pass
            elif not has_online_leader(row, leader, slot_start, replica_count, replica, replica_status, live):
                rows[matches] = <int32_t>row
                matches += 1
            row = row + 1 if flags & OFFLINE_DIR else skip_led_rows(row + 1, leader, live, offline, count)
    return matches
