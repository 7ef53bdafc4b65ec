"""The outcome of one row when brokers fail, by Kafka's rules; ``healthy_rows.pxd`` has the fast path.

The bits of an outcome are the columns that the row adds to.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.constants cimport NO_LEADER, NO_STATE
from kframe.kernels.scan cimport contains
from kframe.kernels.types cimport broker_t

cdef enum:
    NO_BROKER = -2

cdef enum:
    COUNTS = 9

cdef enum:
    OFFLINE = 1
    NEWLY_OFFLINE = 2
    UNDER_MIN_ISR = 4
    NEWLY_UNDER_MIN_ISR = 8
    AT_MIN_ISR = 16
    UNCLEAN_ELECTION = 32
    UNCLEAN_NEEDED = 64
    LEADER_MOVED = 128
    NEWLY_MAY_LOSE_DATA = 256

cdef struct PartitionRow:
    Py_ssize_t start
    Py_ssize_t replicas
    Py_ssize_t members
    int32_t leader
    int32_t min_isr
    bint has_state
    bint unclean
    bint was_offline
    bint was_under_min_isr

cdef struct FailureOutcome:
    int32_t leader
    Py_ssize_t live_members
    int bits


cdef inline PartitionRow partition_row(
    Py_ssize_t row, const int32_t[::1] topic, const broker_t[::1] leader, const int32_t[::1] partition_epoch,
    const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const uint8_t[::1] registered, const int32_t[::1] min_insync, const uint8_t[::1] unclean,
) noexcept nogil:
    """The part of a row that is independent of failures; a row without state has no leader and no ISR."""
    cdef PartitionRow partition
    partition.has_state = partition_epoch[row] != NO_STATE
    partition.start = slot_start[row]
    partition.replicas = replica_count[row]
    partition.members = isr_count[row] if partition.has_state else 0
    partition.leader = leader[row] if partition.has_state else NO_LEADER
    partition.min_isr = min(min_insync[topic[row]], <int32_t>partition.replicas)
    partition.unclean = unclean[topic[row]]
    partition.was_offline = partition.leader < 0 or not registered[partition.leader]
    partition.was_under_min_isr = partition.was_offline or partition.members < partition.min_isr
    return partition


cdef inline bint survives(
    int32_t broker, int32_t a, int32_t b, int32_t failed_rack, const uint8_t[::1] registered, const int32_t[::1] rack
) noexcept nogil:
    return registered[broker] and broker != a and broker != b and rack[broker] != failed_rack


cdef inline FailureOutcome failure_outcome(
    PartitionRow partition, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t a, int32_t b, int32_t failed_rack,
) noexcept nogil:
    """The outcome when brokers ``a`` and ``b`` (or NO_BROKER) and one rack (or NO_BROKER) fail together.

    A live leader stays. Failed replicas leave the ISR, except for its last member (Kafka 3.9
    ``removeReplicasFromIsr``). Without a live leader, an election takes place, also where the row had no leader
    (``triggerOnlinePartitionStateChange``): the first live replica in the ISR wins; if no ISR member is live and the
    topic allows unclean elections, the first live replica.
    """
    cdef FailureOutcome outcome
    cdef Py_ssize_t k, in_sync = 0, live_replicas = 0, removed = 0, live_before = 0
    cdef int32_t first = NO_LEADER
    outcome.leader, outcome.live_members, outcome.bits = NO_LEADER, 0, 0
    for k in range(partition.start, partition.start + partition.members):
        live_before += registered[isr[k]] != 0
        if survives(isr[k], a, b, failed_rack, registered, rack):
            outcome.live_members += 1
        elif registered[isr[k]] and contains(replica, partition.start, partition.replicas, isr[k]):
            removed += 1
    if partition.leader >= 0 and survives(partition.leader, a, b, failed_rack, registered, rack):
        outcome.leader = partition.leader
        in_sync = max(partition.members - removed, min(partition.members, 1))
    else:
        for k in range(partition.start, partition.start + partition.replicas):
            if survives(replica[k], a, b, failed_rack, registered, rack):
                live_replicas += 1
                first = replica[k] if first == NO_LEADER else first
                if outcome.leader == NO_LEADER and contains(isr, partition.start, partition.members, replica[k]):
                    outcome.leader = replica[k]
        in_sync = outcome.live_members
        if not partition.has_state:
            outcome.leader, outcome.live_members, in_sync = first, live_replicas, live_replicas
        elif outcome.live_members == 0 and first != NO_LEADER:
            outcome.bits = UNCLEAN_ELECTION if partition.unclean else UNCLEAN_NEEDED
            if partition.unclean:
                outcome.leader, in_sync = first, 1
    if outcome.leader == NO_LEADER:
        outcome.bits |= OFFLINE | UNDER_MIN_ISR | (0 if partition.was_offline else NEWLY_OFFLINE)
    elif in_sync < partition.min_isr:
        outcome.bits |= UNDER_MIN_ISR
    elif in_sync == partition.min_isr:
        outcome.bits |= AT_MIN_ISR
    if outcome.bits & UNCLEAN_ELECTION or (
            outcome.bits & UNCLEAN_NEEDED and not (partition.was_offline and live_before == 0)):
        outcome.bits |= NEWLY_MAY_LOSE_DATA
    if outcome.bits & UNDER_MIN_ISR and not partition.was_under_min_isr:
        outcome.bits |= NEWLY_UNDER_MIN_ISR
    if partition.leader >= 0 and outcome.leader >= 0 and outcome.leader != partition.leader:
        outcome.bits |= LEADER_MOVED
    return outcome


cdef inline int current_bits(
    PartitionRow partition, FailureOutcome without_failure, const broker_t[::1] isr, const uint8_t[::1] registered
) noexcept nogil:
    """The bits of the row before any failure; ``without_failure`` is its outcome when no broker fails."""
    if partition.was_offline:
        return OFFLINE | UNDER_MIN_ISR | (
            UNCLEAN_NEEDED if without_failure.bits & (UNCLEAN_NEEDED | UNCLEAN_ELECTION) else 0
        )
    if partition.was_under_min_isr:
        return UNDER_MIN_ISR
    return AT_MIN_ISR if partition.members == partition.min_isr else 0


cdef inline void count_leader_change(
    int32_t[:, ::1] leads, Py_ssize_t line, int32_t plus, int32_t minus,
) noexcept nogil:
    if plus == minus:
        return
    if plus >= 0:
        leads[line, plus] += 1
    if minus >= 0:
        leads[line, minus] -= 1
