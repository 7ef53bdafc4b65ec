"""Leader selectors: what they see, read out of the columns; the loop that calls a native one; the rules they may break.

See ``selector.h`` for what a native selector is and sees. Twins: ``tests/plug/native_twin.py`` of the loop,
``tests/core/selection_twin.py`` of the others.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport INT32_MIN, int16_t, int32_t, uint8_t, uint32_t

from kframe.asking cimport ask_block, judge, judge_block, show_made
from kframe.column cimport broker_t
from kframe.gathering cimport gather_block, gather_row
from kframe.lawful cimport candidate, eligible_slot, in_isr, lawful, unclean_here
from kframe.plain_rows cimport plain_width
from kframe.prefetch cimport ask_for_slots, far_apart
from kframe.scan cimport BLOCK, FEW, list_away
from kframe.selector cimport (
    KFRAME_CONTROLLED_SHUTDOWN, KFRAME_INITIAL, KFRAME_NO_LEADER, KFRAME_OFFLINE, KFRAME_OFFLINE_DIR, KFRAME_REASSIGN,
    KFRAME_SELECT_SIGNATURE, kframe_election, kframe_eligible, kframe_in_sync, kframe_select,
)

#: The seed of a batch is made of so many of its partitions, at most: reading all of a large one takes longer than
#: electing its leaders.
cdef enum:
    SEED_ROWS = 8

#: What is written where a selector answered with neither a position nor KFRAME_NO_LEADER. No broker has this index, so
#: the safety rules refuse it.
INVALID_POSITION = INT32_MIN
#: Bytes of ``struct kframe_election``.
ELECTION_SIZE = sizeof(kframe_election)


cdef int32_t first_in_sync(const kframe_election *election, void *user_data) noexcept nogil:
    """The first candidate that is eligible and in sync; where that is allowed and there is none, the first eligible."""
    cdef int32_t at
    for at in range(election.candidate_count):
        if kframe_eligible(election, at) and (election.unclean_allowed or kframe_in_sync(election, at)):
            return at
    return KFRAME_NO_LEADER


#: ``kframe.core.selectors.FirstInSync`` as a native selector, for those who compare tiers.
FIRST_IN_SYNC = PyCapsule_New(<void *>first_in_sync, KFRAME_SELECT_SIGNATURE, NULL)


def capsule_parts(object capsule):
    """The (name or None, pointer, context) of a PyCapsule, pointers as ints. Raises ValueError for anything else."""
    cdef const char *name = PyCapsule_GetName(capsule)
    cdef size_t pointer = <size_t>PyCapsule_GetPointer(capsule, name)
    return None if name == NULL else name.decode("utf-8", "replace"), pointer, <size_t>PyCapsule_GetContext(capsule)


cdef const int32_t *int32_of(object array) except? NULL:
    """Where an array begins that whoever calls keeps alive."""
    cdef const int32_t[::1] values = array
    return &values[0] if values.shape[0] else NULL


cdef const broker_t *brokers_of(object array) except? NULL:
    cdef const broker_t[::1] values = array
    return &values[0] if values.shape[0] else NULL


cdef const uint8_t *bytes_of(object array) except? NULL:
    cdef const uint8_t[::1] values = array
    return &values[0] if values.shape[0] else NULL


cdef int begin(kframe_election *election, int kind, object shown, object columns) except -1:
    """Set what is the same for every partition of a batch, but for the seed: of the brokers (ids, rack, live,
    shutting_down), and the columns (topic, partition, leader, leader_epoch)."""
    election.size = sizeof(kframe_election)
    election.kind = kind
    election.broker_count = <int32_t>len(shown[0])
    election.broker_ids, election.broker_rack = int32_of(shown[0]), int32_of(shown[1])
    election.broker_live, election.broker_shutting_down = bytes_of(shown[2]), bytes_of(shown[3])
    election.topics, election.partitions = int32_of(columns[0]), int32_of(columns[1])
    election.leaders, election.leader_epochs = brokers_of(columns[2]), int32_of(columns[3])
    return 0


def elect(
    size_t function,             # IN   address of a kframe_select
    size_t user_data,            # IN   handed to it as it is
    object batch,                # IN   ElectionBatch of k partitions
    int32_t[::1] leader,         # OUT  (k,) broker index, NO_LEADER or INVALID_POSITION
):
    """Ask ``function`` for the leader of every partition of ``batch``; return how many have one.

    Trusts its caller: that the arrays of the batch fit together is checked by ``kframe.plug.native``. A wrong address
    ends the process.
    """
    cdef object values = batch.candidates.values.astype("i2"), isr_values = batch.isr.values.astype("i2")
    cdef object flags = (batch.eligible == 0).astype("u1") * KFRAME_OFFLINE_DIR, leaders = batch.leader.astype("i2")
    cdef const int32_t[::1] offsets = batch.candidates.offsets, isr_offsets = batch.isr.offsets
    cdef const broker_t[::1] candidates = values
    cdef const broker_t *isr = brokers_of(isr_values)
    cdef const uint8_t *dirs = bytes_of(flags)
    cdef const uint8_t[::1] unclean_allowed = batch.unclean_allowed
    cdef Py_ssize_t i, start, found = 0
    cdef int32_t position, count
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election e
    shown = batch.broker_ids, batch.broker_rack, batch.broker_live, batch.broker_shutting_down
    begin(&e, batch.kind, shown, (batch.topic, batch.partition, leaders, batch.leader_epoch))
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
                found += 1
            else:
                leader[i] = KFRAME_NO_LEADER if position == KFRAME_NO_LEADER else INT32_MIN
    return found


def gather(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] allowed,          # IN   (k,) 1 where an out-of-sync leader is permitted
    int32_t[::1] offsets,                # OUT  (k + 1,) of the candidates
    int32_t[::1] candidates,             # OUT  (room,) the first offsets[k] of them
    uint8_t[::1] may_lead,               # OUT  (room,) beside candidates, as in ElectionBatch
    broker_t[::1] first,                 # OUT  (k,) the first that may lead, or NO_LEADER
):
    """Read out of the columns who may lead each row; return how many candidates there are, or -1 if there is no room
    for them. Cost O(k * r^2)."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_flags
    cdef Py_ssize_t i = 0, put = 0, stop, row, start, count, members
    cdef int32_t width
    # Then all replicas are candidates, and who is eligible and in sync may lead, unless an unclean leader is allowed.
    cdef bint simple = kind == KFRAME_OFFLINE or kind == KFRAME_CONTROLLED_SHUTDOWN
    cdef bint unclean, far = far_apart(rows, slot_start)
    cdef broker_t[FEW] away
    cdef int away_count = list_away(live, away)
    offsets[0] = 0
    with nogil:
        while i < rows.shape[0]:
            stop = min(i + BLOCK, rows.shape[0])
            width = plain_width(rows, i, slot_start, replica_count, allowed) if simple else 0
            if width and put + width * BLOCK <= candidates.shape[0]:
                gather_block(rows[i], width, slot_start[rows[i]], isr_count, replica, isr, flags, live, away,
                             away_count, i, put, offsets, candidates, may_lead, first)
                put += width * BLOCK
                i = stop
            while i < stop:
                if far:
                    ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
                row = rows[i]
                start, count, members = slot_start[row], replica_count[row], isr_count[row]
                if put + count > candidates.shape[0]:
                    with gil:
                        return -1
                unclean = unclean_here(kind, allowed[i], start, count, members, replica, isr, flags, live)
                put = gather_row(kind, start, count, members, replica, isr, flags, live, unclean, put, candidates,
                                 may_lead, &first[i])
                i += 1
                offsets[i] = <int32_t>put
    return put


def mark(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    uint8_t[::1] eligible,               # OUT  beside the candidates, as in ElectionBatch
    uint8_t[::1] in_sync,                # OUT  beside the candidates
):
    """Read out of the columns what may keep each candidate from leading. Cost O(k * r^2)."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_flags
    cdef Py_ssize_t i, at, row, start, put = 0
    cdef bint may, far = far_apart(rows, slot_start)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
            row = rows[i]
            start = slot_start[row]
            for at in range(start, start + replica_count[row]):
                if not candidate(kind, flags, at):
                    continue
                may = eligible_slot(replica, flags, live, at)
                # The ISR of a new partition will be who may lead.
                eligible[put] = may
                in_sync[put] = may if kind == KFRAME_INITIAL else in_isr(isr, start, isr_count[row], at, replica[at])
                put += 1


def count_unlawful(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    const uint8_t[::1] allowed,          # IN   (k,) 1 where an out-of-sync leader is permitted
    const broker_t[::1] first,           # IN   (k,) as from ``gather``
    const int32_t[::1] leader,           # IN   (k,) as a selector has chosen, anything at all
):
    """Count the choices that break a safety rule (``kframe.core.selection.find_faults`` says which and where). Most
    rules mostly choose the first that may lead; only others are looked up."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_flags
    cdef Py_ssize_t i, row, start, found = 0
    cdef bint unclean
    with nogil:
        for i in range(rows.shape[0]):
            if leader[i] == first[i] or leader[i] == KFRAME_NO_LEADER:
                continue
            row = rows[i]
            start = slot_start[row]
            unclean = unclean_here(
                kind, allowed[i], start, replica_count[row], isr_count[row], replica, isr, flags, live)
            found += not lawful(
                kind, start, replica_count[row], isr_count[row], replica, isr, flags, live, unclean, leader[i])
    return found


def take_first(
    const int32_t[::1] offsets,          # IN   (k + 1,)
    const int32_t[::1] values,           # IN   (v,) lists, as in Ragged
    const uint8_t[::1] mask,             # IN   (v,)
    int32_t[:] out,                      # OUT  (k,) the first value of each list that the mask hits; others untouched
):
    """Return whether the lists keep to their values; where they do not, those from there on are left alone."""
    cdef Py_ssize_t i, at
    with nogil:
        for i in range(out.shape[0]):
            if offsets[i] < 0 or offsets[i + 1] > mask.shape[0]:
                with gil:
                    return False
            for at in range(offsets[i], offsets[i + 1]):
                if mask[at]:
                    out[i] = values[at]
                    break
    return True


cdef inline uint32_t mixed(uint32_t seed, uint32_t value) noexcept nogil:
    seed = (seed ^ value) * <uint32_t>0x9E3779B1
    return seed ^ (seed >> 15)


cdef uint32_t seed_from(
    int kind, const int32_t[::1] rows, const int32_t *topic, const int32_t *partition, const int32_t *leader_epoch,
) noexcept nogil:
    """The seed of a batch: of its kind, its size and some partitions all through it."""
    cdef Py_ssize_t i = 0, row, k = rows.shape[0], step = (k + SEED_ROWS - 1) // SEED_ROWS
    cdef uint32_t seed = mixed(mixed(0, <uint32_t>kind), <uint32_t>k)
    while i < k:
        row = rows[i]
        seed = mixed(mixed(seed, <uint32_t>topic[row]), <uint32_t>partition[row])
        seed = mixed(seed, <uint32_t>leader_epoch[row])
        i += step
    return seed


def seed_of(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    object topic,                        # IN   (n,)
    object partition,                    # IN   (n,)
    object leader_epoch,                 # IN   (n,)
):
    """See ``seed_from``."""
    return seed_from(kind, rows, int32_of(topic), int32_of(partition), int32_of(leader_epoch))


def choose(
    size_t function,                     # IN   address of a kframe_select
    size_t user_data,                    # IN   handed to it as it is
    int kind,                            # IN   ElectionKind
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    object shown,                        # IN   (broker_ids, _rack, _live, _shutting_down) for the selector
    const int32_t[::1] rows,             # IN   (k,)
    const uint8_t[::1] allowed,          # IN   (k,) 1 where an out-of-sync leader is permitted
    object scratch,                      # SCRATCH (most replicas,) of brokers and of flags, in REASSIGN and INITIAL
    int32_t[::1] leader,                 # OUT  (k,) broker index or NO_LEADER
):
    """Ask ``function`` for each row's leader, with no batch in between; return how many choices break a safety rule: if
    any does, ``leader`` is not to be used. Trusts its caller as ``elect`` does."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const broker_t[::1] replica = p.replica, isr = p.isr
    cdef const uint8_t[::1] flags = p.replica_flags
    cdef const broker_t *replicas = &replica[0] if replica.shape[0] else NULL
    cdef const broker_t *isrs = &isr[0] if isr.shape[0] else NULL
    cdef const uint8_t *all_flags = &flags[0] if flags.shape[0] else NULL
    cdef Py_ssize_t i = 0, stop, row, start, unlawful = 0
    cdef int32_t count, members, width
    cdef int32_t[BLOCK] positions
    cdef broker_t[::1] brokers
    cdef uint8_t[::1] marks
    cdef bint unclean, far = far_apart(rows, slot_start), made = kind == KFRAME_REASSIGN or kind == KFRAME_INITIAL
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election e
    if made:
        brokers, marks = scratch
    begin(&e, kind, shown, (p.topic, p.partition, p.leader, p.leader_epoch))
    e.seed = seed_from(kind, rows, e.topics, e.partitions, e.leader_epochs)
    with nogil:
        while i < rows.shape[0]:
            stop = min(i + BLOCK, rows.shape[0])
            width = 0 if made else plain_width(rows, i, slot_start, replica_count, allowed)
            if width:
                row, start = rows[i], slot_start[rows[i]]
                ask_block(select, <void *>user_data, &e, row, width, isr_count, replicas + start, all_flags + start,
                          isrs + start, &positions[0])
                unlawful += judge_block(kind, &positions[0], row, width, start, isr_count, replica, isr, flags, live,
                                        leader, i)
                i = stop
            while i < stop:
                if far:
                    ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
                row = rows[i]
                start, count, members = slot_start[row], replica_count[row], isr_count[row]
                unclean = unclean_here(kind, allowed[i], start, count, members, replica, isr, flags, live)
                e.row, e.isr_count, e.unclean_allowed = <int32_t>row, members, unclean
                e.candidates, e.candidate_flags, e.isr = replicas + start, all_flags + start, isrs + start
                if made:
                    count = show_made(&e, kind, start, count, replica, flags, live, brokers, marks)
                e.candidate_count = count
                unlawful += judge(kind, select(&e, <void *>user_data), count, start, members, replica, isr, flags, live,
                                  unclean, &leader[i])
                i += 1
    return unlawful
