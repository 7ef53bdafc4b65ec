"""Kernels of the failure sweep: the outcome of every failure of one broker, two brokers or one rack, in one pass.

The *outcome* of a row is its state after a set F of registered brokers fails. It depends only on the members of F that
the row names. Over any rows, and for F of one or two brokers:

    total(F) = sum of outcome({})                                            "no further failure"
             + sum over a in F of outcome({a}) - outcome({})                 "broker a fails"
             + sum over pairs of F of outcome({a, b}) - outcome({a}) - outcome({b}) + outcome({})

These kernels count the three sums. Sums over parts of a cluster add up.

Recurring arguments: the columns of ``model/columns.py``; ``registered`` (b,); ``rack`` (b,) rack number, -1 for none;
``rack_bit`` (b,) as in ``healthy_rows.pxd``; ``deleting``, ``min_insync``, ``unclean`` (t,) topic settings with
defaults filled in. Counts have 9 columns, in the order of the bits in ``failure_outcome.pxd``. INOUT arrays are added
to. Conventions: ``kframe/_core.pyx``. Reference: ``reference/sweep.py``.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint32_t

from kframe.kernels.constants cimport NO_LEADER
from kframe.kernels.failure_outcome cimport (
    COUNTS, NO_BROKER, FailureOutcome, PartitionRow, count_leader_change, current_bits, failure_outcome, partition_row,
)
from kframe.kernels.healthy_pairs cimport record_each_row, record_uniform_block
from kframe.kernels.healthy_rows cimport (
    HEALTHY_BLOCK, count_each_row, count_uniform_block, is_uniform_block, topic_end,
)
from kframe.kernels.scan cimport contains
from kframe.kernels.types cimport broker_t


cdef inline int32_t named_broker(
    PartitionRow partition, Py_ssize_t k, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1]
    registered,
) noexcept nogil:
    """The registered broker at position ``k`` of replicas, then ISR, then leader, each broker once; else -1."""
    cdef int32_t broker
    if k < partition.replicas:
        broker = replica[partition.start + k]
    elif k < partition.replicas + partition.members:
        broker = isr[partition.start + k - partition.replicas]
        if contains(replica, partition.start, partition.replicas, broker):
            return -1
    else:
        broker = partition.leader
        if broker < 0 or contains(replica, partition.start, partition.replicas, broker):
            return -1
        if contains(isr, partition.start, partition.members, broker):
            return -1
    return broker if registered[broker] else -1


cdef inline void count_bits(int32_t[:, ::1] counts, Py_ssize_t line, int plus, int minus) noexcept nogil:
    cdef int column
    if plus == minus:
        return
    for column in range(COUNTS):
        counts[line, column] += ((plus >> column) & 1) - ((minus >> column) & 1)


def count_failures(
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
    const int64_t[::1] rack_bit,         # IN   (b,)
    const uint8_t[::1] deleting,         # IN   (t,)
    const int32_t[::1] min_insync,       # IN   (t,)
    const uint8_t[::1] unclean,          # IN   (t,)
    int32_t[:, ::1] totals,              # INOUT (2, 9) current counts, and counts without a further failure
    int32_t[:, ::1] brokers,             # INOUT (b, 9) added by the failure of a broker
    int32_t[:, ::1] racks,               # INOUT (g, 9) added by the failure of a rack
    int32_t[:, ::1] leads,               # INOUT (2, b) current leaders, and leaders without a further failure
    int32_t[:, ::1] broker_leads,        # INOUT (b, b) leaders added by the failure of a broker
    int32_t[:, ::1] rack_leads,          # INOUT (g, b) leaders added by the failure of a rack
    int32_t[:, :, ::1] successors,       # INOUT (7, b, b) healthy rows by kind, leader and successor, or leader if none
    int32_t[:, ::1] further_replicas,    # INOUT (7, b) further replicas of healthy rows, by kind and broker
    int32_t[:, ::1] shared_racks,        # INOUT (7, b) racks with two replicas of a row, by leader or first replica
):
    """Count the failures of no broker, one broker and one rack; return how many rows are counted. Cost O(n * r^3).

    Healthy rows go to the last three tables; to ``racks`` and ``rack_leads`` only what the failure of a rack has beyond
    the failures of its brokers. Rows of topics under deletion add to ``leads`` only.
    """
    cdef Py_ssize_t row = first, stop, counted = 0
    cdef int32_t min_isr
    cdef uint32_t irregular
    with nogil:
        while row < last:
            min_isr, stop = required_isr(topic[row], deleting, min_insync), row + HEALTHY_BLOCK
            if min_isr > 0 and stop <= last and is_uniform_block(
                    row, topic, partition_epoch, slot_start, replica_count, isr_count, replica, isr):
                irregular = count_uniform_block(
                    row, slot_start[row], replica_count[row], min_isr, leader, replica, rack, rack_bit, racks,
                    rack_leads, successors, further_replicas, shared_racks)
            else:
                stop = topic_end(row, min(stop, last), topic)
                irregular = count_each_row(
                    row, stop, min_isr, leader, partition_epoch, slot_start, replica_count, isr_count, replica, isr,
                    rack, rack_bit, racks, rack_leads, successors, further_replicas, shared_racks)
            if is_counted(topic[row], deleting):
                counted += stop - row
            while irregular:
                if irregular & 1:
                    count_irregular_row(
                        row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, replica, isr,
                        registered, rack, deleting, min_insync, unclean, totals, brokers, racks, leads, broker_leads,
                        rack_leads)
                irregular >>= 1
                row += 1
            row = stop
    return counted


cdef inline bint is_counted(int32_t topic, const uint8_t[::1] deleting) noexcept nogil:
    """Whether the rows of a topic are counted beyond ``leads``."""
    return topic >= 0 and not deleting[topic]


cdef inline int32_t required_isr(
    int32_t topic, const uint8_t[::1] deleting, const int32_t[::1] min_insync
) noexcept nogil:
    """The required ISR size, 0 for a topic whose rows are not counted: no row of it is healthy."""
    return min_insync[topic] if is_counted(topic, deleting) else 0


cdef inline void count_irregular_row(
    Py_ssize_t row, const int32_t[::1] topic, const broker_t[::1] leader, const int32_t[::1] partition_epoch,
    const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered, const int32_t[::1] rack,
    const uint8_t[::1] deleting, const int32_t[::1] min_insync, const uint8_t[::1] unclean, int32_t[:, ::1] totals,
    int32_t[:, ::1] brokers, int32_t[:, ::1] racks, int32_t[:, ::1] leads, int32_t[:, ::1] broker_leads,
    int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count a row that is not healthy."""
    cdef PartitionRow partition
    if topic[row] < 0:
        return
    partition = partition_row(
        row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered, min_insync, unclean
    )
    if not partition.was_offline:
        leads[0, partition.leader] += 1
    if is_counted(topic[row], deleting):
        count_row_failures(
            partition, replica, isr, registered, rack, totals, brokers, racks, leads, broker_leads, rack_leads)
    elif not partition.was_offline:
        leads[1, partition.leader] += 1


cdef inline void count_row_failures(
    PartitionRow partition, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t[:, ::1] totals, int32_t[:, ::1] brokers, int32_t[:, ::1] racks,
    int32_t[:, ::1] leads, int32_t[:, ::1] broker_leads, int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count no failure, the failure of each broker that a row names, and of each rack."""
    cdef Py_ssize_t k
    cdef int32_t broker
    cdef FailureOutcome outcome, none = failure_outcome(
        partition, replica, isr, registered, rack, NO_BROKER, NO_BROKER, NO_BROKER
    )
    count_bits(totals, 0, current_bits(partition, none, isr, registered), 0)
    count_bits(totals, 1, none.bits, 0)
    count_leader_change(leads, 1, none.leader, NO_LEADER)
    for k in range(partition.replicas + partition.members + 1):
        broker = named_broker(partition, k, replica, isr, registered)
        if broker >= 0:
            outcome = failure_outcome(partition, replica, isr, registered, rack, broker, NO_BROKER, NO_BROKER)
            count_bits(brokers, broker, outcome.bits, none.bits)
            count_leader_change(broker_leads, broker, outcome.leader, none.leader)
    count_row_racks(partition, none, replica, isr, registered, rack, racks, rack_leads)


cdef inline void count_row_racks(
    PartitionRow partition, FailureOutcome none, const broker_t[::1] replica, const broker_t[::1] isr, const
    uint8_t[::1] registered, const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
) noexcept nogil:
    """Count the failure of each rack that a row names, once."""
    cdef Py_ssize_t j, k
    cdef int32_t broker, other
    cdef FailureOutcome outcome
    for k in range(partition.replicas + partition.members + 1):
        broker = named_broker(partition, k, replica, isr, registered)
        if broker < 0 or rack[broker] < 0:
            continue
        for j in range(k):
            other = named_broker(partition, j, replica, isr, registered)
            if other >= 0 and rack[other] == rack[broker]:
                break
        else:
            outcome = failure_outcome(partition, replica, isr, registered, rack, NO_BROKER, NO_BROKER, rack[broker])
            count_bits(racks, rack[broker], outcome.bits, none.bits)
            count_leader_change(rack_leads, rack[broker], outcome.leader, none.leader)


def count_pair_failures(
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
    const int64_t[::1] rack_bit,         # IN   (b,)
    const uint8_t[::1] deleting,         # IN   (t,)
    const int32_t[::1] min_insync,       # IN   (t,)
    const uint8_t[::1] unclean,          # IN   (t,)
    int32_t[:, ::1] scratch,             # OUT  (3, w) scratch; w is at least replicas + ISR + 1 of any row
    int32_t[:, ::1] pairs,               # INOUT (b * (b - 1) / 2, 9) (0, 1), (0, 2)...: both beyond the sum of each
    int64_t[::1] lead_key,               # OUT  (4 * (last - first),) pair * b + leader
    int8_t[::1] lead_change,             # OUT  (4 * (last - first),) leaders that the pair adds beyond the sum of each
    int64_t[::1] third_key,              # OUT  (last - first,) ((s * b + leader) * b + successor) * b + next, or -1; s:
                                         #      spare ISR members
    int32_t[:, :, ::1] further_pairs,    # INOUT (3, b, b) further pairs of healthy rows, by spare ISR members
):
    """Count the failures of two brokers; return how many of ``lead_key`` and ``lead_change`` are set.

    The leader moves differently from the two single failures for one pair of a row only: the leader and its successor.
    A row with three spare ISR members has no other pair to count. A healthy row with three replicas or more has its key
    in ``third_key``, -1 for other rows: the pairs of the leader and its two successors. Its other pairs are in
    ``further_pairs``. Cost O(n * r^4), or O(n * r^3) for healthy rows.
    """
    cdef Py_ssize_t row = first, stop, filled = 0
    cdef int32_t min_isr
    cdef uint32_t irregular
    with nogil:
        while row < last:
            min_isr, stop = required_isr(topic[row], deleting, min_insync), row + HEALTHY_BLOCK
            if min_isr > 0 and stop <= last and is_uniform_block(
                    row, topic, partition_epoch, slot_start, replica_count, isr_count, replica, isr):
                irregular = record_uniform_block(
                    row, row - first, slot_start[row], replica_count[row], min_isr, leader, replica, rack_bit,
                    third_key, further_pairs)
            else:
                stop = topic_end(row, min(stop, last), topic)
                irregular = record_each_row(
                    row, row - first, stop, min_isr, leader, partition_epoch, slot_start, replica_count, isr_count,
                    replica, isr, rack_bit, third_key, further_pairs)
            while irregular:
                if irregular & 1 and is_counted(topic[row], deleting):
                    filled = count_row_pairs(
                        partition_row(
                            row, topic, leader, partition_epoch, slot_start, replica_count, isr_count, registered,
                            min_insync, unclean,
                        ),
                        replica, isr, registered, rack, scratch, pairs, filled, lead_key, lead_change)
                irregular >>= 1
                row += 1
            row = stop
    return filled


cdef inline Py_ssize_t count_row_pairs(
    PartitionRow partition, const broker_t[::1] replica, const broker_t[::1] isr, const uint8_t[::1] registered,
    const int32_t[::1] rack, int32_t[:, ::1] scratch, int32_t[:, ::1] pairs, Py_ssize_t filled, int64_t[::1] lead_key,
    int8_t[::1] lead_change,
) noexcept nogil:
    """Count the failures of any two brokers that a row names."""
    cdef Py_ssize_t j, k, pair, count = 0, b = registered.shape[0]
    cdef int32_t broker
    cdef FailureOutcome none, outcome
    none = failure_outcome(partition, replica, isr, registered, rack, NO_BROKER, NO_BROKER, NO_BROKER)
    for k in range(partition.replicas + partition.members + 1):
        broker = named_broker(partition, k, replica, isr, registered)
        if broker >= 0:
            outcome = failure_outcome(partition, replica, isr, registered, rack, broker, NO_BROKER, NO_BROKER)
            scratch[0, count], scratch[1, count], scratch[2, count] = broker, outcome.leader, outcome.bits
            count += 1
    for j in range(count):
        for k in range(j + 1, count):
            if is_independent(partition, none, scratch, j, k):
                continue
            outcome = failure_outcome(
                partition, replica, isr, registered, rack, scratch[0, j], scratch[0, k], NO_BROKER)
            pair = pair_index(scratch[0, j], scratch[0, k], b)
            if (outcome.bits ^ scratch[2, j]) | (scratch[2, k] ^ none.bits):
                count_bits(pairs, pair, outcome.bits, scratch[2, j])
                count_bits(pairs, pair, none.bits, scratch[2, k])
            if outcome.leader != scratch[1, j] or scratch[1, k] != none.leader:
                filled = record_leader_changes(
                    outcome.leader, scratch[1, j], scratch[1, k], none.leader, pair * b, filled, lead_key, lead_change)
    return filled


cdef inline bint is_independent(
    PartitionRow partition, FailureOutcome none, const int32_t[:, ::1] scratch, Py_ssize_t j, Py_ssize_t k,
) noexcept nogil:
    """Whether two failures add up: enough replicas stay in sync, and neither broker succeeds the other."""
    if none.live_members <= 2 or none.live_members - 2 <= partition.min_isr:
        return False
    if scratch[1, j] != none.leader and scratch[1, j] == scratch[0, k]:
        return False
    return scratch[1, k] == none.leader or scratch[1, k] != scratch[0, j]


cdef inline Py_ssize_t pair_index(int32_t first, int32_t second, Py_ssize_t b) noexcept nogil:
    """The index of a pair of brokers, ordered by the lower broker index first."""
    cdef Py_ssize_t low = min(first, second), high = max(first, second)
    return low * (2 * b - low - 1) // 2 + high - low - 1


cdef inline Py_ssize_t record_leader_changes(
    int32_t both, int32_t left, int32_t right, int32_t none, Py_ssize_t key, Py_ssize_t filled,
    int64_t[::1] lead_key, int8_t[::1] lead_change,
) noexcept nogil:
    """Record +1 for the leaders after both failures or none, -1 for those after one; nothing if these cancel out."""
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
