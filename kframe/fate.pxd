"""What becomes of a row when brokers fail: by the rules, and as it is remembered of rows that are alike.

``_sweep.pyx`` says what a fate is. Its bits are the columns in which a row counts.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

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


# Most rows are healthy: all replicas are registered, all are in the ISR and nobody else is, and one of them leads. Then
# only their number, the least that must be in sync and the leader's place decide what becomes of a row; nobody outside
# the ISR is left who might be elected uncleanly. It is worked out once, by the rules, and looked up for later rows.
# Sets of replicas are numbers, with a bit for each place.
cdef enum:
    PLACES = 5  # rows of more replicas are worked out one by one
    SETS = 32
    PAIRS = 10

# What becomes of such rows: ``change`` is what the failure of a set adds to that of nobody, ``both`` what that of two
# adds to the sum of the two; ``rows`` are those not counted before and after yet.
cdef struct Likeness:
    Py_ssize_t replicas
    int32_t least
    Fate none
    int32_t rows
    int32_t before[COUNTS]
    int32_t after[COUNTS]
    uint32_t known
    int leads[SETS]
    int bits[SETS]
    int32_t change[SETS][COUNTS]
    bint moves[PAIRS]
    bint differs[PAIRS]
    int32_t both[PAIRS][COUNTS]


cdef inline Py_ssize_t healthy(
    Row one, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered
) noexcept nogil:
    """The leader's place among the replicas of a healthy row; -1 for another row, or one of more than PLACES."""
    cdef Py_ssize_t k, place = -1
    cdef broker_t broker
    if one.members != one.replicas or one.replicas > PLACES:
        return -1
    for k in range(one.replicas):
        broker = replica[one.start + k]
        if not registered[broker]:
            return -1
        if isr[one.start + k] != broker and not contains(replica, one.start, one.replicas, isr[one.start + k]):
            return -1
        if broker == one.leader:
            place = k
    return place


cdef inline int place_of(Row one, const broker_t[::1] replica, int32_t broker) noexcept nogil:
    """The place of a broker among the replicas of a row, or -1 for NO_LEADER."""
    cdef int k
    for k in range(<int>one.replicas):
        if replica[one.start + k] == broker:
            return k
    return -1


cdef inline int32_t broker_in(Row one, const broker_t[::1] replica, int place) noexcept nogil:
    return replica[one.start + place] if place >= 0 else NO_LEADER


cdef inline void spread(int32_t *counts, int plus, int minus) noexcept nogil:
    cdef int column
    for column in range(COUNTS):
        counts[column] += ((plus >> column) & 1) - ((minus >> column) & 1)


cdef inline void add(int32_t *counts, const int32_t *change) noexcept nogil:
    """Through a copy, that the compiler may take all columns together."""
    cdef int column
    cdef int32_t[COUNTS] made
    for column in range(COUNTS):
        made[column] = counts[column] + change[column]
    memcpy(counts, made, sizeof(made))


cdef inline void remember(Likeness *like, int failed, Row one, Fate found, const broker_t[::1] replica) noexcept nogil:
    """Remember what becomes of a row when a set of its replicas fails."""
    like.known |= <uint32_t>1 << failed
    like.leads[failed], like.bits[failed] = place_of(one, replica, found.leader), found.bits
    spread(like.change[failed], found.bits, like.none.bits)


cdef inline void learn(
    Likeness *like, Row one, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack,
) noexcept nogil:
    """Remember what becomes of a healthy row when nobody or one broker fails."""
    cdef Py_ssize_t k
    memset(like, 0, sizeof(Likeness))
    like.replicas, like.least = one.replicas, one.least
    like.none = fate_of(one, replica, isr, registered, rack, NOBODY, NOBODY, NOBODY)
    spread(like.before, bits_before(one, like.none, isr, registered), 0)
    spread(like.after, like.none.bits, 0)
    for k in range(one.replicas):
        remember(like, 1 << k, one, fate_of(
            one, replica, isr, registered, rack, replica[one.start + k], NOBODY, NOBODY), replica)


cdef inline void learn_pairs(
    Likeness *like, Row one, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack,
) noexcept nogil:
    """Remember as well what becomes of it when two brokers fail, and what that adds to the sum of the two."""
    cdef Py_ssize_t j, k, n = 0
    cdef int a, b, leader = place_of(one, replica, one.leader)
    learn(like, one, replica, isr, registered, rack)
    for j in range(one.replicas):
        for k in range(j + 1, one.replicas):
            a, b = 1 << j, 1 << k
            remember(like, a | b, one, fate_of(
                one, replica, isr, registered, rack, replica[one.start + j], replica[one.start + k], NOBODY), replica)
            like.moves[n] = like.leads[a | b] != like.leads[a] or like.leads[b] != leader
            like.differs[n] = ((like.bits[a | b] ^ like.bits[a]) | (like.bits[b] ^ like.none.bits)) != 0
            spread(like.both[n], like.bits[a | b], like.bits[a])
            spread(like.both[n], like.none.bits, like.bits[b])
            n += 1
