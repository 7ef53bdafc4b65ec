"""Kernels of the sweep: what the failure of any broker, any two brokers or any rack would come to, in one pass.

The house rules are those of ``_core.pyx``; the twins stand in ``_naive_sweep.py``. What becomes of a row when the set F
of registered brokers fails is its *fate*. It depends only on the members of F that the row names, so that over any rows

    total(F) = sum of fate({})                                       "nothing more fails"
             + sum over a in F of fate({a}) - fate({})               "broker a fails"
             + sum over pairs of F of fate({a, b}) - fate({a}) - fate({b}) + fate({})

holds exactly for one broker and for two. The three sums are what is counted here; they add up over parts of a cluster.

Arguments that recur: the columns of ``model/columns.py``; ``registered`` (b,); ``rack`` (b,) a number, -1 for none;
``deleting``, ``min_insync``, ``unclean`` (t,) settings of topics with defaults filled in. Counts have 8 columns, in the
order of the bits below. INOUT arrays are added to.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t

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


cdef inline int32_t named(
    Row one, Py_ssize_t k, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered
) noexcept nogil:
    """The registered broker that a row names in place ``k``, each once: its replicas, its ISR, its leader; or -1."""
    cdef int32_t broker
    if k < one.replicas:
        broker = replica[one.start + k]
    elif k < one.replicas + one.members:
        broker = isr[one.start + k - one.replicas]
        if contains(replica, one.start, one.replicas, broker):
            return -1
    else:
        broker = one.leader
        if broker < 0 or contains(replica, one.start, one.replicas, broker):
            return -1
        if contains(isr, one.start, one.members, broker):
            return -1
    return broker if registered[broker] else -1


cdef inline void count_bits(int32_t[:, ::1] counts, Py_ssize_t line, int plus, int minus) noexcept nogil:
    cdef int column
    if plus == minus:
        return
    for column in range(COUNTS):
        counts[line, column] += ((plus >> column) & 1) - ((minus >> column) & 1)


cdef inline void count_lead(int32_t[:, ::1] leads, Py_ssize_t line, int32_t plus, int32_t minus) noexcept nogil:
    if plus == minus:
        return
    if plus >= 0:
        leads[line, plus] += 1
    if minus >= 0:
        leads[line, minus] -= 1


def tally_failures(
    Py_ssize_t first,                    # IN   rows first .. last - 1 are counted
    Py_ssize_t last,                     # IN
    const int32_t[::1] topic,            # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] registered,       # IN   (b,)
    const int32_t[::1] rack,             # IN   (b,)
    const uint8_t[::1] deleting,         # IN   (t,)
    const int32_t[::1] min_insync,       # IN   (t,)
    const uint8_t[::1] unclean,          # IN   (t,)
    int32_t[:, ::1] totals,              # INOUT (2, 8) before, and when nothing more fails
    int32_t[:, ::1] brokers,             # INOUT (b, 8) what a broker's failure adds
    int32_t[:, ::1] racks,               # INOUT (g, 8) what a rack's failure adds
    int32_t[:, ::1] leads,               # INOUT (2, b) partitions led before, and when nothing more fails
    int32_t[:, ::1] broker_leads,        # INOUT (b, b) what a broker's failure adds to what each leads
    int32_t[:, ::1] rack_leads,          # INOUT (g, b) what a rack's failure adds
):
    """Count the failures of no broker, of one, and of one rack; return how many rows count.

    Rows of topics under deletion count for what their leader leads, and for nothing else. Cost O(n * r^3).
    """
    cdef Py_ssize_t row, k, counted = 0
    cdef int32_t broker
    cdef Row one
    cdef Fate none, found
    with nogil:
        for row in range(first, last):
            if topic[row] < 0:
                continue
            one = row_of(row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered,
                         min_insync, unclean)
            if not one.was_offline:
                leads[0, one.leader] += 1
            if deleting[topic[row]]:
                count_lead(leads, 1, NO_LEADER if one.was_offline else one.leader, NO_LEADER)
                continue
            counted += 1
            none = fate_of(one, replica, isr, registered, rack, NOBODY, NOBODY, NOBODY)
            count_bits(totals, 0, bits_before(one, none, isr, registered), 0)
            count_bits(totals, 1, none.bits, 0)
            count_lead(leads, 1, none.leader, NO_LEADER)
            for k in range(one.replicas + one.members + 1):
                broker = named(one, k, replica, isr, registered)
                if broker < 0:
                    continue
                found = fate_of(one, replica, isr, registered, rack, broker, NOBODY, NOBODY)
                count_bits(brokers, broker, found.bits, none.bits)
                count_lead(broker_leads, broker, found.leader, none.leader)
            tally_racks(one, none, replica, isr, registered, rack, racks, rack_leads)
    return counted


cdef inline void tally_racks(
    Row one, Fate none, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count the failure of each rack that a row names, once."""
    cdef Py_ssize_t j, k
    cdef int32_t broker, other
    cdef Fate found
    for k in range(one.replicas + one.members + 1):
        broker = named(one, k, replica, isr, registered)
        if broker < 0 or rack[broker] < 0:
            continue
        for j in range(k):
            other = named(one, j, replica, isr, registered)
            if other >= 0 and rack[other] == rack[broker]:
                break
        else:
            found = fate_of(one, replica, isr, registered, rack, NOBODY, NOBODY, rack[broker])
            count_bits(racks, rack[broker], found.bits, none.bits)
            count_lead(rack_leads, rack[broker], found.leader, none.leader)


def tally_pairs(
    Py_ssize_t first,                    # IN   rows first .. last - 1 are counted
    Py_ssize_t last,                     # IN
    const int32_t[::1] topic,            # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] partition_epoch,  # IN   (n,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] registered,       # IN   (b,)
    const int32_t[::1] rack,             # IN   (b,)
    const uint8_t[::1] deleting,         # IN   (t,)
    const int32_t[::1] min_insync,       # IN   (t,)
    const uint8_t[::1] unclean,          # IN   (t,)
    int32_t[:, ::1] room,                # OUT  (3, w) scratch; w is at least what a row names, itself and its ISR
    int32_t[:, ::1] pairs,               # INOUT (b * (b - 1) / 2, 8) (0, 1), (0, 2)...: what both add to their sum
    int64_t[::1] lead_key,               # OUT  (4 * (last - first),) pair * b + broker that leads
    int8_t[::1] lead_change,             # OUT  (4 * (last - first),) what the pair adds to what it leads, beyond both
):
    """Count the failures of two brokers; return how many of the last two arrays are set.

    Only one pair of a row moves its leader in another way than its two brokers do apart: who leads, and who would
    follow. A row with three in sync more than it needs has no other pair to look at. Cost O(n * r^4), or O(n * r^3).
    """
    cdef Py_ssize_t row, j, k, pair, count, filled = 0, b = registered.shape[0]
    cdef int32_t broker
    cdef Row one
    cdef Fate none, found
    with nogil:
        for row in range(first, last):
            if topic[row] < 0 or deleting[topic[row]]:
                continue
            one = row_of(row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered,
                         min_insync, unclean)
            none, count = fate_of(one, replica, isr, registered, rack, NOBODY, NOBODY, NOBODY), 0
            for k in range(one.replicas + one.members + 1):
                broker = named(one, k, replica, isr, registered)
                if broker >= 0:
                    found = fate_of(one, replica, isr, registered, rack, broker, NOBODY, NOBODY)
                    room[0, count], room[1, count], room[2, count] = broker, found.leader, found.bits
                    count += 1
            for j in range(count):
                for k in range(j + 1, count):
                    if apart(one, none, room, j, k):
                        continue
                    found = fate_of(one, replica, isr, registered, rack, room[0, j], room[0, k], NOBODY)
                    pair = number_of(room[0, j], room[0, k], b)
                    if (found.bits ^ room[2, j]) | (room[2, k] ^ none.bits):
                        count_bits(pairs, pair, found.bits, room[2, j])
                        count_bits(pairs, pair, none.bits, room[2, k])
                    if found.leader != room[1, j] or room[1, k] != none.leader:
                        filled = note_leads(found.leader, room[1, j], room[1, k], none.leader, pair * b, filled,
                                            lead_key, lead_change)
    return filled


cdef inline bint apart(Row one, Fate none, const int32_t[:, ::1] room, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
    """Whether two failures surely add up: enough are in sync, and neither broker would follow the other."""
    if none.alive <= 2 or none.alive - 2 <= one.least:
        return False
    if room[1, j] != none.leader and room[1, j] == room[0, k]:
        return False
    return room[1, k] == none.leader or room[1, k] != room[0, j]


cdef inline Py_ssize_t number_of(int32_t one, int32_t other, Py_ssize_t b) noexcept nogil:
    """The number of a pair of brokers among all, the lower index first."""
    cdef Py_ssize_t low = min(one, other), high = max(one, other)
    return low * (2 * b - low - 1) // 2 + high - low - 1


cdef inline Py_ssize_t note_leads(
    int32_t both, int32_t left, int32_t right, int32_t none, Py_ssize_t key, Py_ssize_t filled,
    int64_t[::1] lead_key, int8_t[::1] lead_change,
) noexcept nogil:
    """Note +1 for who leads when both fail or none does, -1 for who leads when one does; nothing if that adds up."""
    if both == right and left == none:
        return filled
    if both >= 0:
        lead_key[filled], lead_change[filled] = key + both, 1
        filled += 1
    if none >= 0:
        lead_key[filled], lead_change[filled] = key + none, 1
        filled += 1
    if left >= 0:
        lead_key[filled], lead_change[filled] = key + left, -1
        filled += 1
    if right >= 0:
        lead_key[filled], lead_change[filled] = key + right, -1
        filled += 1
    return filled
