"""What becomes of a row when brokers fail, by the rules; ``healthy.pxd`` has what is usual.

``_sweep.pyx`` says what a fate is. Its bits are the columns in which a row counts.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.column cimport broker_t
from kframe.scan cimport contains

cdef enum:
    NO_LEADER = -1
    NO_STATE = -1

cdef enum:
    NOBODY = -2

cdef enum:
    COUNTS = 8

cdef enum:
    OFFLINE = 1
    NEWLY_OFFLINE = 2
    UNDER_MIN_ISR = 4
    NEWLY_UNDER_MIN_ISR = 8
    AT_MIN_ISR = 16
    UNCLEAN_ELECTION = 32
    UNCLEAN_NEEDED = 64
    LEADER_MOVED = 128

cdef struct Row:
    Py_ssize_t start
    Py_ssize_t replicas
    Py_ssize_t members
    int32_t leader
    int32_t least
    bint stated
    bint unclean
    bint was_offline
    bint was_under

cdef struct Fate:
    int32_t leader
    Py_ssize_t alive
    int bits


cdef inline Row row_of(
    Py_ssize_t row, const int32_t[::1] topic, const broker_t[::1] leader, const int32_t[::1] partition_epoch,
    const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const uint8_t[::1] registered, const int32_t[::1] min_insync, const uint8_t[::1] unclean,
) noexcept nogil:
    """What of a row does not hang on who fails; a row without state has no leader and no ISR."""
    cdef Row one
    one.stated = partition_epoch[row] != NO_STATE
    one.start = slot_start[row]
    one.replicas = replica_count[row]
    one.members = isr_count[row] if one.stated else 0
    one.leader = leader[row] if one.stated else NO_LEADER
    one.least = min(min_insync[topic[row]], <int32_t>one.replicas)
    one.unclean = unclean[topic[row]]
    one.was_offline = one.leader < 0 or not registered[one.leader]
    one.was_under = one.was_offline or one.members < one.least
    return one


cdef inline bint lives(
    int32_t broker, int32_t a, int32_t b, int32_t failed_rack, const uint8_t[::1] registered, const int32_t[::1] rack
) noexcept nogil:
    return registered[broker] and broker != a and broker != b and rack[broker] != failed_rack


cdef inline Fate fate_of(
    Row one, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t a, int32_t b, int32_t failed_rack,
) noexcept nogil:
    """What becomes of a row when brokers ``a`` and ``b`` (or NOBODY) and one rack (or NOBODY) fail together.

    A leader that lives stays, and those that failed leave the ISR, the last member left out (Kafka 3.9
    ``removeReplicasFromIsr``). Else a leader is elected, also where there was none before
    (``triggerOnlinePartitionStateChange``): the first live replica in the ISR; if no member lives and the topic allows
    it, the first live replica.
    """
    cdef Fate found
    cdef Py_ssize_t k, in_sync = 0, living = 0, gone = 0
    cdef int32_t first = NO_LEADER
    found.leader, found.alive, found.bits = NO_LEADER, 0, 0
    for k in range(one.start, one.start + one.members):
        if lives(isr[k], a, b, failed_rack, registered, rack):
            found.alive += 1
        elif registered[isr[k]] and contains(replica, one.start, one.replicas, isr[k]):
            gone += 1
    if one.leader >= 0 and lives(one.leader, a, b, failed_rack, registered, rack):
        found.leader = one.leader
        in_sync = max(one.members - gone, min(one.members, 1))
    else:
        for k in range(one.start, one.start + one.replicas):
            if lives(replica[k], a, b, failed_rack, registered, rack):
                living += 1
                first = replica[k] if first == NO_LEADER else first
                if found.leader == NO_LEADER and contains(isr, one.start, one.members, replica[k]):
                    found.leader = replica[k]
        in_sync = found.alive
        if not one.stated:
            found.leader, found.alive, in_sync = first, living, living
        elif found.alive == 0 and first != NO_LEADER:
            found.bits = UNCLEAN_ELECTION if one.unclean else UNCLEAN_NEEDED
            if one.unclean:
                found.leader, in_sync = first, 1
    if found.leader == NO_LEADER:
        found.bits |= OFFLINE | UNDER_MIN_ISR | (0 if one.was_offline else NEWLY_OFFLINE)
    elif in_sync < one.least:
        found.bits |= UNDER_MIN_ISR
    elif in_sync == one.least:
        found.bits |= AT_MIN_ISR
    if found.bits & UNDER_MIN_ISR and not one.was_under:
        found.bits |= NEWLY_UNDER_MIN_ISR
    if one.leader >= 0 and found.leader >= 0 and found.leader != one.leader:
        found.bits |= LEADER_MOVED
    return found


cdef inline int bits_before(
    Row one, Fate untouched, const broker_t[::1] isr, const uint8_t[::1] registered
) noexcept nogil:
    """How the row stands before anything is tried. Without a leader and a live ISR, ``untouched`` found it as it is."""
    if one.was_offline:
        return OFFLINE | UNDER_MIN_ISR | (
            UNCLEAN_NEEDED if untouched.bits & (UNCLEAN_NEEDED | UNCLEAN_ELECTION) else 0
        )
    if one.was_under:
        return UNDER_MIN_ISR
    return AT_MIN_ISR if one.members == one.least else 0


cdef inline void count_lead(int32_t[:, ::1] leads, Py_ssize_t line, int32_t plus, int32_t minus) noexcept nogil:
    if plus == minus:
        return
    if plus >= 0:
        leads[line, plus] += 1
    if minus >= 0:
        leads[line, minus] -= 1
