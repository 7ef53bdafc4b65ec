"""Kernels of the sweep: what the failure of any broker, any two brokers or any rack would come to, in one pass.

The house rules are those of ``_core.pyx``; the twins stand in ``_naive_sweep.py``. What becomes of a row when the set F
of registered brokers fails is its *fate*. It depends only on the members of F that the row names, so that over any rows

    total(F) = sum of fate({})                                       "nothing more fails"
             + sum over a in F of fate({a}) - fate({})               "broker a fails"
             + sum over pairs of F of fate({a, b}) - fate({a}) - fate({b}) + fate({})

holds exactly for one broker and for two. The three sums are what is counted here; they add up over parts of a cluster.

Arguments that recur: the columns of ``model/columns.py``; ``registered`` (b,); ``rack`` (b,) a number, -1 for none;
``deleting``, ``min_insync``, ``unclean`` (t,) settings of topics with defaults filled in. Counts have 8 columns, in the
order of the bits in ``fate.pxd``. INOUT arrays are added to.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t
from libc.string cimport memset

from kframe.column cimport broker_t
from kframe.fate cimport (
    COUNTS, NO_LEADER, NOBODY, PLACES, Fate, Likeness, Row, add, bits_before, broker_in, fate_of, healthy, learn,
    learn_pairs, remember, row_of,
)
from kframe.scan cimport contains


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
    cdef Py_ssize_t row, place, counted = 0
    cdef Row one
    cdef Likeness[PLACES] known
    memset(known, 0, sizeof(known))
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
            place = healthy(one, replica, isr, registered)
            if place < 0:
                tally_other(one, replica, isr, registered, rack, totals, brokers, racks, leads, broker_leads,
                            rack_leads)
                continue
            if known[place].replicas != one.replicas or known[place].least != one.least:
                settle(&known[place], totals)
                learn(&known[place], one, replica, isr, registered, rack)
            known[place].rows += 1
            tally_known(&known[place], one, place, replica, brokers, leads, broker_leads)
            if in_racks_apart(one, replica, rack):
                tally_racks_apart(&known[place], one, place, replica, rack, racks, rack_leads)
            else:
                tally_known_racks(&known[place], one, place, replica, isr, registered, rack, racks, rack_leads)
        for place in range(PLACES):
            settle(&known[place], totals)
    return counted


cdef inline void settle(const Likeness *like, int32_t[:, ::1] totals) noexcept nogil:
    """Count the rows that were like this, before and when nobody fails."""
    cdef Py_ssize_t column
    for column in range(COUNTS):
        totals[0, column] += like.rows * like.before[column]
        totals[1, column] += like.rows * like.after[column]


cdef inline void tally_known(
    const Likeness *like, Row one, Py_ssize_t place, const broker_t[::1] replica, int32_t[:, ::1] brokers,
    int32_t[:, ::1] leads, int32_t[:, ::1] broker_leads,
) noexcept nogil:
    """Count who leads, and the failure of each broker, for a healthy row."""
    cdef Py_ssize_t k
    leads[1, one.leader] += 1
    for k in range(one.replicas):
        add(&brokers[replica[one.start + k], 0], like.change[1 << k])
    count_lead(broker_leads, one.leader, broker_in(one, replica, like.leads[1 << place]), one.leader)


cdef inline bint in_racks_apart(Row one, const broker_t[::1] replica, const int32_t[::1] rack) noexcept nogil:
    """Whether no two replicas of a healthy row are in one rack, so that racks fail as brokers do."""
    cdef Py_ssize_t j, k
    cdef int32_t here
    cdef bint shared = False
    for k in range(1, one.replicas):
        here = rack[replica[one.start + k]]
        for j in range(k):
            shared |= rack[replica[one.start + j]] == here
    return not shared


cdef inline void tally_racks_apart(
    const Likeness *like, Row one, Py_ssize_t place, const broker_t[::1] replica, const int32_t[::1] rack,
    int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count the failure of each rack for a healthy row that has no two replicas in one."""
    cdef Py_ssize_t k
    cdef int32_t here
    for k in range(one.replicas):
        here = rack[replica[one.start + k]]
        if here >= 0:
            add(&racks[here, 0], like.change[1 << k])
    here = rack[one.leader]
    if here >= 0:
        count_lead(rack_leads, here, broker_in(one, replica, like.leads[1 << place]), one.leader)


cdef inline void tally_known_racks(
    Likeness *like, Row one, Py_ssize_t place, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] registered, const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count the failure of each rack for a healthy row. Nothing is added for a rack that was counted with an earlier
    replica: whether it was is hard to guess, and no branch hangs on it."""
    cdef Py_ssize_t j, k
    cdef int32_t here
    cdef int failed
    for k in range(one.replicas):
        here = rack[replica[one.start + k]]
        if here < 0:
            continue
        failed = 0
        for j in range(one.replicas):
            failed |= (rack[replica[one.start + j]] == here) << j
        if not (like.known >> failed) & 1:
            remember(like, failed, one, fate_of(
                one, replica, isr, registered, rack, NOBODY, NOBODY, here), replica)
        add(&racks[here, 0], like.change[failed * ((failed & -failed) >> k)])
        if k == place:
            count_lead(rack_leads, here, broker_in(one, replica, like.leads[failed]), one.leader)


cdef inline void tally_other(
    Row one, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t[:, ::1] totals, int32_t[:, ::1] brokers, int32_t[:, ::1] racks,
    int32_t[:, ::1] leads, int32_t[:, ::1] broker_leads, int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count the failure of nobody, of each broker and of each rack that a row names."""
    cdef Py_ssize_t k
    cdef int32_t broker
    cdef Fate found, none = fate_of(one, replica, isr, registered, rack, NOBODY, NOBODY, NOBODY)
    count_bits(totals, 0, bits_before(one, none, isr, registered), 0)
    count_bits(totals, 1, none.bits, 0)
    count_lead(leads, 1, none.leader, NO_LEADER)
    for k in range(one.replicas + one.members + 1):
        broker = named(one, k, replica, isr, registered)
        if broker >= 0:
            found = fate_of(one, replica, isr, registered, rack, broker, NOBODY, NOBODY)
            count_bits(brokers, broker, found.bits, none.bits)
            count_lead(broker_leads, broker, found.leader, none.leader)
    tally_racks(one, none, replica, isr, registered, rack, racks, rack_leads)


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
    cdef Py_ssize_t row, place, filled = 0
    cdef Row one
    cdef Likeness[PLACES] known
    memset(known, 0, sizeof(known))
    with nogil:
        for row in range(first, last):
            if topic[row] < 0 or deleting[topic[row]]:
                continue
            one = row_of(row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered,
                         min_insync, unclean)
            place = healthy(one, replica, isr, registered)
            if place < 0:
                filled = tally_named_pairs(one, replica, isr, registered, rack, room, pairs, filled, lead_key,
                                           lead_change)
                continue
            if known[place].replicas != one.replicas or known[place].least != one.least:
                learn_pairs(&known[place], one, replica, isr, registered, rack)
            filled = tally_known_pairs(&known[place], one, replica, registered.shape[0], pairs, filled, lead_key,
                                       lead_change)
    return filled


cdef inline Py_ssize_t tally_known_pairs(
    const Likeness *like, Row one, const broker_t[::1] replica, Py_ssize_t b, int32_t[:, ::1] pairs,
    Py_ssize_t filled, int64_t[::1] lead_key, int8_t[::1] lead_change,
) noexcept nogil:
    """Count the failures of two brokers for a healthy row."""
    cdef Py_ssize_t j, k, pair, n = 0
    cdef int32_t both, left, right
    for j in range(one.replicas):
        for k in range(j + 1, one.replicas):
            if like.differs[n] or like.moves[n]:
                pair = number_of(replica[one.start + j], replica[one.start + k], b)
                add(&pairs[pair, 0], like.both[n])
                if like.moves[n]:
                    both = broker_in(one, replica, like.leads[1 << j | 1 << k])
                    left = broker_in(one, replica, like.leads[1 << j])
                    right = broker_in(one, replica, like.leads[1 << k])
                    filled = note_leads(both, left, right, one.leader, pair * b, filled, lead_key, lead_change)
            n += 1
    return filled


cdef inline Py_ssize_t tally_named_pairs(
    Row one, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t[:, ::1] room, int32_t[:, ::1] pairs, Py_ssize_t filled, int64_t[::1] lead_key,
    int8_t[::1] lead_change,
) noexcept nogil:
    """Count the failures of any two brokers that a row names."""
    cdef Py_ssize_t j, k, pair, count = 0, b = registered.shape[0]
    cdef int32_t broker
    cdef Fate none, found
    none = fate_of(one, replica, isr, registered, rack, NOBODY, NOBODY, NOBODY)
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
