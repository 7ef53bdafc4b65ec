"""Kernels of leader selectors: the batch they see, the loop that calls native selectors, and the safety rules.

``kframe/plugin/selector.h`` documents native selectors. Reference: ``reference/selectors.py``.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport INT32_MIN, int16_t, int32_t, uint8_t, uint32_t

from kframe.kernels.candidates cimport gather_block, gather_row, uniform_candidates
from kframe.kernels.constants cimport (
    ELECT_CONTROLLED_SHUTDOWN, ELECT_INITIAL, ELECT_OFFLINE, ELECT_REASSIGN, NO_LEADER, OFFLINE_DIR,
)
from kframe.kernels.eligibility cimport in_isr, is_candidate, is_eligible, is_unclean_election, may_lead_row
from kframe.kernels.native_calls cimport call_block, check_choice, check_choices, set_derived_lists
from kframe.kernels.prefetch cimport is_sparse, prefetch_slots
from kframe.kernels.scan cimport BLOCK, MAX_LISTED, list_offline_brokers
from kframe.kernels.selector cimport (
    KFRAME_SELECT_SIGNATURE, kframe_election, kframe_eligible, kframe_in_sync, kframe_select,
)
from kframe.kernels.types cimport broker_t

#: Partitions that the seed of a batch is derived from, at most: reading all of a large batch takes longer than electing
#: its leaders.
cdef enum:
    SEED_ROWS = 8

#: Written where a selector returned neither a valid position nor NO_LEADER. No broker has this index, so the safety
#: rules reject it.
INVALID_POSITION = INT32_MIN
#: Bytes of ``struct kframe_election``.
ELECTION_SIZE = sizeof(kframe_election)


cdef int32_t first_in_sync(const kframe_election *election, void *user_data) noexcept nogil:
    """The first candidate that is eligible and in sync; the first eligible one if an unclean election is allowed."""
    cdef int32_t slot
    for slot in range(election.candidate_count):
        if kframe_eligible(election, slot) and (election.unclean_allowed or kframe_in_sync(election, slot)):
            return slot
    return NO_LEADER


#: ``kframe.core.selectors.kafka_selectors.FirstInSync`` as a native selector, to compare tiers.
FIRST_IN_SYNC = PyCapsule_New(<void *>first_in_sync, KFRAME_SELECT_SIGNATURE, NULL)


def capsule_parts(object capsule):
    """The (name or None, pointer, context) of a PyCapsule, pointers as ints. Raises ValueError for anything else."""
    cdef const char *name = PyCapsule_GetName(capsule)
    cdef size_t pointer = <size_t>PyCapsule_GetPointer(capsule, name)
    return None if name == NULL else name.decode("utf-8", "replace"), pointer, <size_t>PyCapsule_GetContext(capsule)


cdef const int32_t *int32_of(object array) except? NULL:
    """The address of an array, which the caller keeps alive."""
    cdef const int32_t[::1] values = array
    return &values[0] if values.shape[0] else NULL


cdef const broker_t *brokers_of(object array) except? NULL:
    cdef const broker_t[::1] values = array
    return &values[0] if values.shape[0] else NULL


cdef const uint8_t *bytes_of(object array) except? NULL:
    cdef const uint8_t[::1] values = array
    return &values[0] if values.shape[0] else NULL


cdef int set_batch_fields(kframe_election *election, int kind, object broker_columns, object columns) except -1:
    """Set the fields that are the same for every partition of a batch, except for the seed: brokers (ids, rack, live,
    shutting_down) and columns (topic, partition, leader, leader_epoch)."""
    election.size = sizeof(kframe_election)
    election.kind = kind
    election.broker_count = <int32_t>len(broker_columns[0])
    election.broker_ids, election.broker_rack = int32_of(broker_columns[0]), int32_of(broker_columns[1])
    election.broker_live, election.broker_shutting_down = bytes_of(broker_columns[2]), bytes_of(broker_columns[3])
    election.topics, election.partitions = int32_of(columns[0]), int32_of(columns[1])
    election.leaders, election.leader_epochs = brokers_of(columns[2]), int32_of(columns[3])
    return 0


def elect(
    size_t function,             # IN   address of a kframe_select
    size_t user_data,            # IN   passed to it unchanged
    object batch,                # IN   ElectionBatch of k partitions
    int32_t[::1] leader,         # OUT  (k,) broker index, NO_LEADER or INVALID_POSITION
):
    """Ask ``function`` for the leader of every partition of ``batch``; return how many have one.

    Trusts its caller: ``kframe.registry.native`` checks that the arrays of the batch have consistent lengths. A wrong
    address crashes the process.
    """
    cdef object values = batch.candidates.values.astype("i2"), isr_values = batch.isr.values.astype("i2")
    cdef object flags = (batch.eligible == 0).astype("u1") * OFFLINE_DIR, leaders = batch.leader.astype("i2")
    cdef const int32_t[::1] offsets = batch.candidates.offsets, isr_offsets = batch.isr.offsets
    cdef const broker_t[::1] candidates = values
    cdef const broker_t *isr = brokers_of(isr_values)
    cdef const uint8_t *dirs = bytes_of(flags)
    cdef const uint8_t[::1] unclean_allowed = batch.unclean_allowed
    cdef Py_ssize_t i, start, matches = 0
    cdef int32_t position, count
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election e
    broker_columns = batch.broker_ids, batch.broker_rack, batch.broker_live, batch.broker_shutting_down
    set_batch_fields(&e, batch.kind, broker_columns, (batch.topic, batch.partition, leaders, batch.leader_epoch))
    e.seed = batch.seed
    with nogil:
        for i in range(leader.shape[0]):
            start, count = offsets[i], offsets[i + 1] - offsets[i]
            e.row, e.candidate_count, e.isr_count = <int32_t>i, count, isr_offsets[i + 1] - isr_offsets[i]
            e.candidates, e.candidate_flags = &candidates[start] if count else NULL, dirs + start
            e.isr, e.unclean_allowed = isr + isr_offsets[i], unclean_allowed[i]
            position = select(&e, <void *>user_data)
            if 0 <= position < count:
                leader[i] = candidates[start + position]
                matches += 1
            else:
                leader[i] = NO_LEADER if position == NO_LEADER else INT32_MIN
    return matches


def gather_candidates(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] allowed,          # IN   (k,) 1 where an out-of-sync leader is permitted
    int32_t[::1] offsets,                # OUT  (k + 1,) of the candidates
    int32_t[::1] candidates,             # OUT  (capacity,) the first offsets[k] are set
    uint8_t[::1] may_lead,               # OUT  (capacity,) of each candidate, as in ElectionBatch
    broker_t[::1] first,                 # OUT  (k,) the first candidate that may lead, or NO_LEADER
):
    """Read the candidates of each row, and whether they may lead; return how many there are, or -1 if the capacity is
    too small. Cost O(k * r^2)."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_status
    cdef Py_ssize_t i = 0, filled = 0, stop, row, start, count, members
    cdef int32_t width
    # All replicas are candidates, and those eligible and in sync may lead, unless an unclean election is allowed.
    cdef bint simple = kind == ELECT_OFFLINE or kind == ELECT_CONTROLLED_SHUTDOWN
    cdef bint unclean, sparse = is_sparse(rows, slot_start)
    cdef broker_t[MAX_LISTED] offline
    cdef int offline_count = list_offline_brokers(live, offline)
    offsets[0] = 0
    with nogil:
        while i < rows.shape[0]:
            stop = min(i + BLOCK, rows.shape[0])
            width = uniform_candidates(rows, i, slot_start, replica_count, allowed) if simple else 0
            if width and filled + width * BLOCK <= candidates.shape[0]:
                gather_block(rows[i], width, slot_start[rows[i]], isr_count, replica, isr, flags, live, offline,
                             offline_count, i, filled, offsets, candidates, may_lead, first)
                filled += width * BLOCK
                i = stop
            while i < stop:
                if sparse:
                    prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
                row = rows[i]
                start, count, members = slot_start[row], replica_count[row], isr_count[row]
                if filled + count > candidates.shape[0]:
                    with gil:
                        return -1
                unclean = is_unclean_election(kind, allowed[i], start, count, members, replica, isr, flags, live)
                filled = gather_row(
                    kind, start, count, members, replica, isr, flags, live, unclean, filled, candidates, may_lead,
                    &first[i])
                i += 1
                offsets[i] = <int32_t>filled
    return filled


def mark_candidates(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] eligible,               # OUT  of each candidate, as in ElectionBatch
    uint8_t[::1] in_sync,                # OUT  of each candidate
):
    """Read whether each candidate is eligible and in sync. Cost O(k * r^2)."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_status
    cdef Py_ssize_t i, slot, row, start, filled = 0
    cdef bint is_ready, sparse = is_sparse(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if sparse:
                prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
            row = rows[i]
            start = slot_start[row]
            for slot in range(start, start + replica_count[row]):
                if not is_candidate(kind, flags, slot):
                    continue
                is_ready = is_eligible(replica, flags, live, slot)
                # The ISR of a new partition will be its eligible replicas.
                eligible[filled] = is_ready
                in_sync[filled] = is_ready if kind == ELECT_INITIAL else in_isr(
                    isr, start, isr_count[row], slot, replica[slot])
                filled += 1


def count_violations(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] allowed,          # IN   (k,) 1 where an out-of-sync leader is permitted
    const broker_t[::1] first,           # IN   (k,) as from ``gather_candidates``
    const int32_t[::1] leader,           # IN   (k,) choices of a selector, unchecked
):
    """Count the choices that violate a safety rule; ``leader_selection.find_faults`` names the rule and the row.

    Most choices are the first eligible candidate; only others are checked.
    """
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_status
    cdef Py_ssize_t i, row, start, matches = 0
    cdef bint unclean
    with nogil:
        for i in range(rows.shape[0]):
            if leader[i] == first[i] or leader[i] == NO_LEADER:
                continue
            row = rows[i]
            start = slot_start[row]
            unclean = is_unclean_election(
                kind, allowed[i], start, replica_count[row], isr_count[row], replica, isr, flags, live)
            matches += not may_lead_row(
                kind, start, replica_count[row], isr_count[row], replica, isr, flags, live, unclean, leader[i])
    return matches


def take_first(
    const int32_t[::1] offsets,          # IN   (k + 1,)
    const int32_t[::1] values,           # IN   (v,) lists, as in Ragged
    const uint8_t[::1] mask,             # IN   (v,)
    int32_t[:] out,                      # OUT  (k,) the first value of each list with a set mask; others unchanged
):
    """Return whether the offsets stay within the values; lists from the first invalid one on are skipped."""
    cdef Py_ssize_t i, slot
    with nogil:
        for i in range(out.shape[0]):
            if offsets[i] < 0 or offsets[i + 1] > mask.shape[0]:
                with gil:
                    return False
            for slot in range(offsets[i], offsets[i + 1]):
                if mask[slot]:
                    out[i] = values[slot]
                    break
    return True


cdef inline uint32_t mix(uint32_t seed, uint32_t value) noexcept nogil:
    seed = (seed ^ value) * <uint32_t>0x9E3779B1
    return seed ^ (seed >> 15)


cdef uint32_t compute_seed(
    int kind, const int32_t[::1] rows, const int32_t *topic, const int32_t *partition, const int32_t *leader_epoch,
) noexcept nogil:
    """The seed of a batch, derived from its kind, its size and a sample of its partitions."""
    cdef Py_ssize_t i = 0, row, k = rows.shape[0], step = (k + SEED_ROWS - 1) // SEED_ROWS
    cdef uint32_t seed = mix(mix(0, <uint32_t>kind), <uint32_t>k)
    while i < k:
        row = rows[i]
        seed = mix(mix(seed, <uint32_t>topic[row]), <uint32_t>partition[row])
        seed = mix(seed, <uint32_t>leader_epoch[row])
        i += step
    return seed


def batch_seed(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object topic,                        # IN   (n,)
    object partition,                    # IN   (n,)
    object leader_epoch,                 # IN   (n,)
):
    """See ``compute_seed``."""
    return compute_seed(kind, rows, int32_of(topic), int32_of(partition), int32_of(leader_epoch))


def choose_leaders_native(
    size_t function,                     # IN   address of a kframe_select
    size_t user_data,                    # IN   passed to it unchanged
    int kind,                            # IN   ElectionKind
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    object broker_columns,                # IN   (broker_ids, _rack, _live, _shutting_down) for the selector
    const int32_t[::1] rows,             # IN   (k,)
    const uint8_t[::1] allowed,          # IN   (k,) 1 where an out-of-sync leader is permitted
    object scratch,                      # SCRATCH (largest replica count,) brokers and flags, for REASSIGN and INITIAL
    int32_t[::1] leader,                 # OUT  (k,) broker index or NO_LEADER; invalid if any choice violates a rule
):
    """Call ``function`` for each row; return how many choices violate a safety rule. Trusts its caller as ``elect``."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_status
    cdef const broker_t *replicas = &replica[0] if replica.shape[0] else NULL
    cdef const broker_t *isrs = &isr[0] if isr.shape[0] else NULL
    cdef const uint8_t *all_flags = &flags[0] if flags.shape[0] else NULL
    cdef Py_ssize_t i = 0, stop, row, start, violations = 0
    cdef int32_t count, members, width
    cdef int32_t[BLOCK] positions
    cdef broker_t[::1] brokers
    cdef uint8_t[::1] flags_copy
    cdef bint unclean, sparse = is_sparse(rows, slot_start), derived = kind == ELECT_REASSIGN or kind == ELECT_INITIAL
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election e
    if derived:
        brokers, flags_copy = scratch
    set_batch_fields(&e, kind, broker_columns, (p.topic, p.partition, p.leader, p.leader_epoch))
    e.seed = compute_seed(kind, rows, e.topics, e.partitions, e.leader_epochs)
    with nogil:
        while i < rows.shape[0]:
            stop = min(i + BLOCK, rows.shape[0])
            width = 0 if derived else uniform_candidates(rows, i, slot_start, replica_count, allowed)
            if width:
                row, start = rows[i], slot_start[rows[i]]
                call_block(
                    select, <void *>user_data, &e, row, width, isr_count, replicas + start, all_flags + start,
                    isrs + start, positions)
                violations += check_choices(
                    kind, positions, row, width, start, isr_count, replica, isr, flags, live, leader, i)
                i = stop
            while i < stop:
                if sparse:
                    prefetch_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
                row = rows[i]
                start, count, members = slot_start[row], replica_count[row], isr_count[row]
                unclean = is_unclean_election(kind, allowed[i], start, count, members, replica, isr, flags, live)
                e.row, e.isr_count, e.unclean_allowed = <int32_t>row, members, unclean
                e.candidates, e.candidate_flags, e.isr = replicas + start, all_flags + start, isrs + start
                if derived:
                    count = set_derived_lists(&e, kind, start, count, replica, flags, live, brokers, flags_copy)
                e.candidate_count = count
                violations += check_choice(
                    kind, select(&e, <void *>user_data), count, start, members, replica, isr, flags, live, unclean,
                    &leader[i])
                i += 1
    return violations
