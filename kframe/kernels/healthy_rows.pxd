"""Healthy rows, counted by the brokers that they name.

A row is *healthy* if all its replicas are registered, the ISR is exactly its replicas, a replica leads, and at least
one replica must be in sync. Its outcome depends only on its *kind*, its leader and the successors of the leader: no
replica outside the ISR is left for an unclean election. So healthy rows are counted by these, with one or two
increments a row, and ``whatif/sweep_healthy.py`` derives the outcomes once. The tables are small enough for the cache.
Rows of one topic are mostly uniform and are processed a block at a time.

Recurring argument: ``rack_bit`` (b,) one bit for the rack of a broker, 0 without a rack, and UNREGISTERED_BIT where
the broker is not registered. Racks may share a bit.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

from kframe.kernels.blocks cimport isrs_equal_replicas, uniform_width
from kframe.kernels.constants cimport NO_LEADER, NO_STATE
from kframe.kernels.prefetch cimport KFRAME_PREFETCH
from kframe.kernels.scan cimport contains
from kframe.kernels.types cimport broker_t

cdef enum:
    HEALTHY_BLOCK = 32     # rows in a block
    PREFETCH_BLOCKS = 16   # blocks to prefetch ahead
    SPARE_MAX = 3          # with this many spare ISR members, two failures affect only the leader
    UNREGISTERED_BIT = 62  # bit number

cdef enum RackLayout:
    DISTINCT_RACKS  # no two replicas of a healthy row share a rack
    SHARED_RACK     # some may share a rack
    IRREGULAR       # the row is not healthy


cdef inline Py_ssize_t row_kind(Py_ssize_t replicas, int32_t min_isr) noexcept nogil:
    """0: RF 1; 1, 2: RF 2 with none or one spare; 3 to 6: RF 3 and more with none, one, two or more spare."""
    cdef Py_ssize_t size = min(replicas, 3)
    return size * (size - 1) // 2 + min(replicas - min_isr, SPARE_MAX)


cdef inline Py_ssize_t topic_end(Py_ssize_t row, Py_ssize_t last, const int32_t[::1] topic) noexcept nogil:
    """The end of the rows from ``row`` on that share its topic."""
    cdef Py_ssize_t stop = row + 1
    while stop < last and topic[stop] == topic[row]:
        stop += 1
    return stop


cdef inline void prefetch_block(
    Py_ssize_t row, Py_ssize_t start, Py_ssize_t slots, const int32_t[::1] topic, const int32_t[::1] partition_epoch,
    const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const broker_t[::1] replica, const broker_t[::1] isr,
) noexcept nogil:
    """Prefetch the block PREFETCH_BLOCKS ahead, assuming that it looks like this one: the hardware prefetcher stops at
    a page boundary, and with this many columns one of them crosses a page every few blocks."""
    cdef Py_ssize_t k
    row += PREFETCH_BLOCKS * HEALTHY_BLOCK
    start += PREFETCH_BLOCKS * slots
    if row + HEALTHY_BLOCK > topic.shape[0] or start + slots > replica.shape[0]:
        return
    for k in range(0, HEALTHY_BLOCK, 16):  # a cache line is 64 bytes
        KFRAME_PREFETCH(&topic[row + k])
        KFRAME_PREFETCH(&partition_epoch[row + k])
        KFRAME_PREFETCH(&slot_start[row + k])
    KFRAME_PREFETCH(&replica_count[row])
    KFRAME_PREFETCH(&isr_count[row])
    for k in range(start, start + slots, 32):
        KFRAME_PREFETCH(&replica[k])
        KFRAME_PREFETCH(&isr[k])


cdef inline bint is_uniform_block(
    Py_ssize_t row, const int32_t[::1] topic, const int32_t[::1] partition_epoch, const int32_t[::1] slot_start,
    const int16_t[::1] replica_count, const int16_t[::1] isr_count, const broker_t[::1] replica,
    const broker_t[::1] isr,
) noexcept nogil:
    """Whether a block of rows has one topic, consecutive slots, a state each, the same number of replicas, and ISRs
    equal to the replica lists."""
    cdef Py_ssize_t last = row + HEALTHY_BLOCK - 1, width
    cdef int32_t mismatch = 0
    cdef int k
    if topic[last] != topic[row]:
        return False
    width = uniform_width(row, HEALTHY_BLOCK, slot_start, replica_count)
    if width == 0:
        return False
    prefetch_block(
        row, slot_start[row], HEALTHY_BLOCK * width, topic, partition_epoch, slot_start, replica_count, isr_count,
        replica, isr
    )
    cdef const int32_t *topics = &topic[last] - HEALTHY_BLOCK + 1
    cdef const int32_t *epochs = &partition_epoch[last] - HEALTHY_BLOCK + 1
    for k in range(HEALTHY_BLOCK):
        mismatch |= (topics[k] ^ topics[0]) | -<int32_t>(epochs[k] == NO_STATE)
    return mismatch == 0 and isrs_equal_replicas(row, HEALTHY_BLOCK, width, slot_start, isr_count, replica, isr)


cdef inline bint isr_equals_replicas(
    Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica, const broker_t[::1] isr
) noexcept nogil:
    """Whether an ISR as long as the replica list has the same members. RF 3 takes no branches: the order of an ISR is
    hard to predict."""
    cdef Py_ssize_t j, k
    cdef bint is_replica, all_replicas = True
    if replicas == 3:
        for k in range(start, start + 3):
            is_replica = False
            for j in range(start, start + 3):
                is_replica |= replica[j] == isr[k]
            all_replicas &= is_replica
        return all_replicas
    for k in range(start, start + replicas):
        if isr[k] != replica[k] and not contains(replica, start, replicas, isr[k]):
            return False
    return True


cdef inline int32_t successor(
    int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica
) noexcept nogil:
    """The leader of a healthy row once its leader fails, or the leader itself at RF 1. Without branches, like the
    functions below: the leader is hard to predict."""
    return replica[start + (replicas > 1) * (replica[start] == leader)]


cdef inline int32_t second_successor(int32_t leader, Py_ssize_t start, const broker_t[::1] replica) noexcept nogil:
    """The leader of a healthy row of three replicas or more once its leader and the successor fail."""
    return replica[start + 1 + ((replica[start] == leader) | (replica[start + 1] == leader))]


cdef inline RackLayout rack_layout(
    int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica, const int64_t[::1] rack_bit
) noexcept nogil:
    """Check the leader and the registrations of a row with a full ISR, and whether its replicas share racks."""
    cdef int64_t bits, rack_bits = 0, shared_bits = 0, leader_bit = 0
    cdef Py_ssize_t k
    for k in range(start, start + replicas):
        bits = rack_bit[replica[k]]
        shared_bits |= rack_bits & bits
        rack_bits |= bits
        leader_bit |= <int64_t>(replica[k] == leader) << UNREGISTERED_BIT
    if (leader_bit & ~rack_bits) == 0:
        return IRREGULAR
    return SHARED_RACK if shared_bits else DISTINCT_RACKS


cdef inline RackLayout count_healthy(
    Py_ssize_t kind, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica,
    const int64_t[::1] rack_bit, int32_t[:, :, ::1] successors, int32_t[:, ::1] further_replicas,
) noexcept nogil:
    """Count a row with a full ISR by leader and successor, and by each further replica, unless it is IRREGULAR."""
    cdef Py_ssize_t k
    cdef RackLayout outcome = rack_layout(leader, start, replicas, replica, rack_bit)
    if outcome != IRREGULAR:
        successors[kind, leader, successor(leader, start, replicas, replica)] += 1
        # A leader at position 2 or later leaves the replica at position 1 as a further replica.
        for k in range(2, replicas):
            further_replicas[kind, replica[start + k - (k - 1) * (replica[start + k] == leader)]] += 1
    return outcome


cdef inline RackLayout rack_layout_rf3(
    Py_ssize_t row, Py_ssize_t start, const broker_t[::1] leader, const broker_t[::1] replica,
    const int64_t[::1] rack_bit
) noexcept nogil:
    """``rack_layout`` of a block of RF 3 rows; IRREGULAR also if the first replica of one does not lead."""
    cdef int64_t first, second, third, rack_bits = 0, shared_bits = 0
    cdef int32_t mismatch = 0
    cdef Py_ssize_t k, slot
    for k in range(HEALTHY_BLOCK):
        slot = start + 3 * k
        mismatch |= leader[row + k] ^ replica[slot]
        first, second, third = rack_bit[replica[slot]], rack_bit[replica[slot + 1]], rack_bit[replica[slot + 2]]
        shared_bits |= (first & second) | ((first | second) & third)
        rack_bits |= first | second | third
    if mismatch or rack_bits >> UNREGISTERED_BIT:
        return IRREGULAR
    return SHARED_RACK if shared_bits else DISTINCT_RACKS


cdef inline void count_rf3_rows(
    Py_ssize_t kind, Py_ssize_t start, const broker_t[::1] replica, int32_t[:, :, ::1] successors,
    int32_t[:, ::1] further_replicas,
) noexcept nogil:
    """Count a block of healthy RF 3 rows led by their first replicas."""
    cdef Py_ssize_t slot
    for slot in range(start, start + 3 * HEALTHY_BLOCK, 3):
        successors[kind, replica[slot], replica[slot + 1]] += 1
        further_replicas[kind, replica[slot + 2]] += 1


cdef inline uint32_t count_uniform_rows(
    Py_ssize_t kind, Py_ssize_t row, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] leader,
    const broker_t[::1] replica, const int64_t[::1] rack_bit, int32_t[:, :, ::1] successors,
    int32_t[:, ::1] further_replicas,
    int *shared, int *shared_count,
) noexcept nogil:
    """Count the healthy rows of a block; return a bit for each irregular row, and list the SHARED_RACK rows: branching
    on them here is hard to predict."""
    cdef uint32_t irregular = 0
    cdef int k, outcome, count = 0
    for k in range(HEALTHY_BLOCK):
        outcome = count_healthy(
            kind, leader[row + k], start + replicas * k, replicas, replica, rack_bit, successors, further_replicas
        )
        irregular |= <uint32_t>(outcome == IRREGULAR) << k
        shared[count] = k
        count += outcome == SHARED_RACK
    shared_count[0] = count
    return irregular


cdef inline uint32_t count_uniform_block(
    Py_ssize_t row, Py_ssize_t start, Py_ssize_t replicas, int32_t min_isr, const broker_t[::1] leader,
    const broker_t[::1] replica, const int32_t[::1] rack, const int64_t[::1] rack_bit, int32_t[:, ::1] racks,
    int32_t[:, ::1] rack_leads, int32_t[:, :, ::1] successors, int32_t[:, ::1] further_replicas,
    int32_t[:, ::1] shared_racks,
) noexcept nogil:
    """Count the healthy rows of a block; return a bit for each irregular row."""
    cdef Py_ssize_t kind
    cdef uint32_t irregular = 0
    cdef int k, shared_count = 0
    cdef int[HEALTHY_BLOCK] shared
    cdef RackLayout outcome = rack_layout_rf3(row, start, leader, replica, rack_bit) if replicas == 3 else IRREGULAR
    min_isr = min(min_isr, <int32_t>replicas)
    kind = row_kind(replicas, min_isr)
    if outcome == IRREGULAR:
        if replicas == 3:  # a constant, so that the compiler can unroll
            irregular = count_uniform_rows(
                kind, row, start, 3, leader, replica, rack_bit, successors, further_replicas, shared, &shared_count
            )
        else:
            irregular = count_uniform_rows(
                kind, row, start, replicas, leader, replica, rack_bit, successors, further_replicas, shared,
                &shared_count
            )
        for k in range(shared_count):
            count_shared_rack(
                kind, leader[row + shared[k]], start + replicas * shared[k], replicas, min_isr, replica, rack, racks,
                rack_leads, shared_racks
            )
        return irregular
    count_rf3_rows(kind, start, replica, successors, further_replicas)
    if outcome == SHARED_RACK:
        for k in range(HEALTHY_BLOCK):
            count_shared_rack(
                kind, replica[start + 3 * k], start + 3 * k, 3, min_isr, replica, rack, racks, rack_leads, shared_racks
            )
    return 0


cdef inline uint32_t count_each_row(
    Py_ssize_t row, Py_ssize_t stop, int32_t min_insync, const broker_t[::1] leader,
    const int32_t[::1] partition_epoch, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, const int32_t[::1] rack,
    const int64_t[::1] rack_bit, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads, int32_t[:, :, ::1] successors,
    int32_t[:, ::1] further_replicas, int32_t[:, ::1] shared_racks,
) noexcept nogil:
    """Count the healthy rows of one topic; return a bit for each irregular row."""
    cdef Py_ssize_t k, start, replicas, kind
    cdef int32_t min_isr
    cdef uint32_t irregular = 0
    cdef bint has_full_isr
    cdef RackLayout outcome
    for k in range(stop - row):
        start, replicas, outcome = slot_start[row + k], replica_count[row + k], IRREGULAR
        min_isr = min(min_insync, <int32_t>replicas)
        has_full_isr = isr_count[row + k] == replicas and partition_epoch[row + k] != NO_STATE and min_isr > 0
        if has_full_isr and isr_equals_replicas(start, replicas, replica, isr):
            kind = row_kind(replicas, min_isr)
            outcome = count_healthy(
                kind, leader[row + k], start, replicas, replica, rack_bit, successors, further_replicas
            )
            if outcome == SHARED_RACK:
                count_shared_rack(
                    kind, leader[row + k], start, replicas, min_isr, replica, rack, racks, rack_leads, shared_racks
                )
        irregular |= <uint32_t>(outcome == IRREGULAR) << k
    return irregular


cdef inline void count_shared_rack(
    Py_ssize_t kind, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, int32_t min_isr,
    const broker_t[::1] replica, const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
    int32_t[:, ::1] shared_racks,
) noexcept nogil:
    """Count a healthy row by the racks with two of its replicas, and by the leader after the failure of the leader's
    rack if the successor is in it. RF 3 takes no branches: whether two replicas share a rack is hard to predict."""
    cdef int32_t second = successor(leader, start, replicas, replica), third
    cdef int32_t leader_rack, second_rack, third_rack, followers_share
    if replicas == 3:
        third = second_successor(leader, start, replica)
        leader_rack, second_rack, third_rack = rack[leader], rack[second], rack[third]
        if (leader_rack | second_rack | third_rack) >= 0 and (leader_rack ^ second_rack) | (leader_rack ^ third_rack):
            followers_share = second_rack == third_rack
            shared_racks[kind, leader + followers_share * (second - leader)] += (
                followers_share | (leader_rack == second_rack) | (leader_rack == third_rack))
            rack_leads[leader_rack, third] += leader_rack == second_rack
            return
    count_rack_losses(kind, leader, start, replicas, min_isr, replica, rack, racks, rack_leads, shared_racks)


cdef inline void count_rack_losses(
    Py_ssize_t kind, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, int32_t min_isr,
    const broker_t[::1] replica, const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
    int32_t[:, ::1] shared_racks,
) noexcept nogil:
    """``count_shared_rack`` for any replication factor. For racks with three replicas or more, count the difference to
    the sum of the failures of their brokers."""
    cdef Py_ssize_t j, k, remaining
    cdef int32_t rack_number, new_leader, failed, has_leader, at_min_isr = replicas == min_isr
    cdef int32_t second = successor(leader, start, replicas, replica)
    for k in range(start, start + replicas):
        rack_number = rack[replica[k]]
        if rack_number < 0 or in_rack(rack_number, start, k, replica, rack) < k:
            continue
        failed, has_leader, new_leader = 0, 0, NO_LEADER
        for j in range(start + replicas - 1, start - 1, -1):
            if rack[replica[j]] == rack_number:
                failed += 1
                has_leader |= replica[j] == leader
            else:
                new_leader = replica[j]
        if has_leader and rack[second] == rack_number and new_leader >= 0 and replicas > 1:
            rack_leads[rack_number, new_leader] += 1
        if failed == 2:
            shared_racks[kind, leader if has_leader else replica[k]] += 1
        elif failed > 2:
            remaining = replicas - failed
            racks[rack_number, 0] += remaining == 0
            racks[rack_number, 1] += remaining == 0
            racks[rack_number, 2] += (remaining < min_isr) - failed * at_min_isr
            racks[rack_number, 3] += (remaining < min_isr) - failed * at_min_isr
            racks[rack_number, 4] += (
                (remaining == min_isr) - at_min_isr - failed * ((replicas - 1 == min_isr) - at_min_isr))
            racks[rack_number, 7] -= has_leader and remaining == 0


cdef inline Py_ssize_t in_rack(
    int32_t rack_number, Py_ssize_t start, Py_ssize_t stop, const broker_t[::1] replica, const int32_t[::1] rack
) noexcept nogil:
    """The first slot from ``start`` on with a replica in the rack, or ``stop``."""
    while start < stop and rack[replica[start]] != rack_number:
        start += 1
    return start
