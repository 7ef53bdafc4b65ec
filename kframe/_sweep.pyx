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

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint32_t

from kframe.column cimport broker_t
from kframe.fate cimport COUNTS, NO_LEADER, NOBODY, Fate, Row, bits_before, count_lead, fate_of, row_of
from kframe.healthy cimport TOGETHER, end_of, tally_alike, tally_each, uniform
from kframe.healthy_pairs cimport note_alike, note_each
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
    const int64_t[::1] rack_bit,        # IN   (b,) as in ``healthy.pxd``
    const uint8_t[::1] deleting,         # IN   (t,)
    const int32_t[::1] min_insync,       # IN   (t,)
    const uint8_t[::1] unclean,          # IN   (t,)
    int32_t[:, ::1] totals,              # INOUT (2, 8) before, and when nothing more fails
    int32_t[:, ::1] brokers,             # INOUT (b, 8) what a broker's failure adds
    int32_t[:, ::1] racks,               # INOUT (g, 8) what a rack's failure adds
    int32_t[:, ::1] leads,               # INOUT (2, b) partitions led before, and when nothing more fails
    int32_t[:, ::1] broker_leads,        # INOUT (b, b) what a broker's failure adds to what each leads
    int32_t[:, ::1] rack_leads,          # INOUT (g, b) what a rack's failure adds
    int32_t[:, :, ::1] follows,          # INOUT (7, b, b) healthy rows by kind, leader, and who follows; itself if none
    int32_t[:, ::1] further,             # INOUT (7, b) replicas of healthy rows beyond these two, by kind and broker
    int32_t[:, ::1] doubled,             # INOUT (7, b) racks with two replicas of such a row, by who leads, or is first
):
    """Count the failures of no broker, of one, and of one rack; return how many rows count.

    Healthy rows stand in the last two, and in ``racks`` and ``rack_leads`` only with what a rack's failure adds to the
    sum of those of its brokers. Rows of topics under deletion count for what their leader leads, and for nothing else.
    Cost O(n * r^3).
    """
    cdef Py_ssize_t row = first, stop, counted = 0
    cdef int32_t least
    cdef uint32_t odd
    with nogil:
        while row < last:
            least, stop = least_of(topic[row], deleting, min_insync), row + TOGETHER
            if least > 0 and stop <= last and uniform(row, topic, partition_epoch, slot_start, replica_count,
                                                      isr_count, replica, isr):
                odd = tally_alike(row, slot_start[row], replica_count[row], least, leader, replica, rack, rack_bit,
                                  racks, rack_leads, follows, further, doubled)
            else:
                stop = end_of(row, min(stop, last), topic)
                odd = tally_each(row, stop, least, leader, partition_epoch, slot_start, replica_count, isr_count,
                                 replica, isr, rack, rack_bit, racks, rack_leads, follows, further, doubled)
            if counts(topic[row], deleting):
                counted += stop - row
            while odd:
                if odd & 1:
                    tally_odd(row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, replica, isr,
                              registered, rack, deleting, min_insync, unclean, totals, brokers, racks, leads,
                              broker_leads, rack_leads)
                odd >>= 1
                row += 1
            row = stop
    return counted


cdef inline bint counts(int32_t topic, const uint8_t[::1] deleting) noexcept nogil:
    """Whether the rows of a topic count for more than their leaders."""
    return topic >= 0 and not deleting[topic]


cdef inline int32_t least_of(
    int32_t topic, const uint8_t[::1] deleting, const int32_t[::1] min_insync
) noexcept nogil:
    """How many must be in sync at least; 0 for a topic whose rows do not count, so that none is healthy."""
    return min_insync[topic] if counts(topic, deleting) else 0


cdef inline void tally_odd(
    Py_ssize_t row, const int32_t[::1] topic, const broker_t[::1] leader, const int32_t[::1] partition_epoch,
    const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered, const int32_t[::1] rack,
    const uint8_t[::1] deleting, const int32_t[::1] min_insync, const uint8_t[::1] unclean, int32_t[:, ::1] totals,
    int32_t[:, ::1] brokers, int32_t[:, ::1] racks, int32_t[:, ::1] leads, int32_t[:, ::1] broker_leads,
    int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count a row that is not healthy."""
    cdef Row one
    if topic[row] < 0:
        return
    one = row_of(row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered, min_insync,
                 unclean)
    if not one.was_offline:
        leads[0, one.leader] += 1
    if counts(topic[row], deleting):
        tally_other(one, replica, isr, registered, rack, totals, brokers, racks, leads, broker_leads, rack_leads)
    elif not one.was_offline:
        leads[1, one.leader] += 1


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
    const int64_t[::1] rack_bit,        # IN   (b,) as in ``healthy.pxd``
    const uint8_t[::1] deleting,         # IN   (t,)
    const int32_t[::1] min_insync,       # IN   (t,)
    const uint8_t[::1] unclean,          # IN   (t,)
    int32_t[:, ::1] room,                # OUT  (3, w) scratch; w is at least what a row names, itself and its ISR
    int32_t[:, ::1] pairs,               # INOUT (b * (b - 1) / 2, 8) (0, 1), (0, 2)...: what both add to their sum
    int64_t[::1] lead_key,               # OUT  (4 * (last - first),) pair * b + broker that leads
    int8_t[::1] lead_change,             # OUT  (4 * (last - first),) what the pair adds to what it leads, beyond both
    int64_t[::1] third_key,              # OUT  (last - first,) ((spare * b + leader) * b + next) * b + third, or -1
    int32_t[:, :, ::1] beside,           # INOUT (3, b, b) further pairs of healthy rows, by what is to spare
):
    """Count the failures of two brokers; return how many of ``lead_key`` and ``lead_change`` are set.

    Only one pair of a row moves its leader in another way than its two brokers do apart: who leads, and who would
    follow. A row with three in sync more than it needs has no other pair to look at. Of a healthy row that has a third
    replica the key stands in ``third_key``, and for other rows -1; its pairs are those of these three, and where it has
    more replicas those in ``beside``. Cost O(n * r^4), or O(n * r^3).
    """
    cdef Py_ssize_t row = first, stop, filled = 0
    cdef int32_t least
    cdef uint32_t odd
    with nogil:
        while row < last:
            least, stop = least_of(topic[row], deleting, min_insync), row + TOGETHER
            if least > 0 and stop <= last and uniform(row, topic, partition_epoch, slot_start, replica_count,
                                                      isr_count, replica, isr):
                odd = note_alike(row, row - first, slot_start[row], replica_count[row], least, leader, replica,
                                 rack_bit, third_key, beside)
            else:
                stop = end_of(row, min(stop, last), topic)
                odd = note_each(row, row - first, stop, least, leader, partition_epoch, slot_start, replica_count,
                                isr_count, replica, isr, rack_bit, third_key, beside)
            while odd:
                if odd & 1 and counts(topic[row], deleting):
                    filled = tally_named_pairs(
                        row_of(row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered,
                               min_insync, unclean),
                        replica, isr, registered, rack, room, pairs, filled, lead_key, lead_change)
                odd >>= 1
                row += 1
            row = stop
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
