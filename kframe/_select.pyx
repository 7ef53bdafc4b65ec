"""Leader selectors: what they see, read out of the columns; the loop that calls a native one; the rules they may break.

See ``selector.h`` for what a native selector is and sees. Twins: ``tests/plug/native_twin.py`` of the loop,
``tests/core/selection_twin.py`` of the others.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport INT32_MIN, int16_t, int32_t, uint8_t, uint32_t

from kframe.column cimport broker_t
from kframe.prefetch cimport ask_for_row, ask_for_slots, far_apart
from kframe.selector cimport (
    KFRAME_INITIAL, KFRAME_NO_LEADER, KFRAME_PREFERRED, KFRAME_REASSIGN, KFRAME_SELECT_SIGNATURE, kframe_election,
    kframe_select,
)

#: Candidates are written for a batch, or for a native selector as columns have them.
ctypedef fused index_t:
    broker_t
    int32_t

cdef enum:
    REMOVING = 2
    OFFLINE_DIR = 4

#: What is written where a selector answered with neither a position nor KFRAME_NO_LEADER. No broker has this index, so
#: the safety rules refuse it.
INVALID_POSITION = INT32_MIN
#: Bytes of ``struct kframe_election``.
ELECTION_SIZE = sizeof(kframe_election)


cdef int32_t first_in_sync(const kframe_election *election, void *user_data) noexcept nogil:
    """The first candidate that is eligible and in sync; where that is allowed and there is none, the first eligible."""
    cdef int32_t at
    for at in range(election.candidate_count):
        if election.eligible[at] and (election.in_sync[at] or election.unclean_allowed):
            return at
    return KFRAME_NO_LEADER


#: ``kframe.core.selectors.FirstInSync`` as a native selector, for those who compare tiers.
FIRST_IN_SYNC = PyCapsule_New(<void *>first_in_sync, KFRAME_SELECT_SIGNATURE, NULL)


def capsule_parts(object capsule):
    """The (name or None, pointer, context) of a PyCapsule, pointers as ints. Raises ValueError for anything else."""
    cdef const char *name = PyCapsule_GetName(capsule)
    cdef size_t pointer = <size_t>PyCapsule_GetPointer(capsule, name)
    return None if name == NULL else name.decode("utf-8", "replace"), pointer, <size_t>PyCapsule_GetContext(capsule)


cdef void begin(
    kframe_election *election, int kind, uint32_t seed, const int32_t[::1] broker_ids, const int32_t[::1] broker_rack,
    const uint8_t[::1] live, const uint8_t[::1] shutting_down,
) noexcept:
    """Set what is the same for every partition of a batch."""
    election.size = sizeof(kframe_election)
    election.kind = kind
    election.seed = seed
    election.broker_count = <int32_t>broker_ids.shape[0]
    election.broker_ids = &broker_ids[0] if broker_ids.shape[0] else NULL
    election.broker_rack = &broker_rack[0] if broker_ids.shape[0] else NULL
    election.broker_live = &live[0] if broker_ids.shape[0] else NULL
    election.broker_shutting_down = &shutting_down[0] if broker_ids.shape[0] else NULL


cdef inline void show_lists(
    kframe_election *election, const broker_t[::1] candidates, const uint8_t[::1] eligible, const uint8_t[::1] in_sync,
    const broker_t[::1] isr, Py_ssize_t start, Py_ssize_t isr_start, int32_t isr_count,
) noexcept nogil:
    """Let the election, whose ``candidate_count`` is set, point at a row's lists."""
    cdef bint some = election.candidate_count > 0
    election.candidates = &candidates[start] if some else NULL
    election.eligible = &eligible[start] if some else NULL
    election.in_sync = &in_sync[start] if some else NULL
    election.isr_count = isr_count
    election.isr = &isr[isr_start] if isr_count else NULL


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
    cdef const int32_t[::1] offsets = batch.candidates.offsets
    cdef const broker_t[::1] candidates = batch.candidates.values.astype("i2")
    cdef const uint8_t[::1] eligible = batch.eligible
    cdef const uint8_t[::1] in_sync = batch.in_sync
    cdef const int32_t[::1] isr_offsets = batch.isr.offsets
    cdef const broker_t[::1] isr = batch.isr.values.astype("i2")
    cdef const int32_t[::1] topic = batch.topic
    cdef const int32_t[::1] partition = batch.partition
    cdef const broker_t[::1] old_leader = batch.leader.astype("i2")
    cdef const int32_t[::1] leader_epoch = batch.leader_epoch
    cdef const uint8_t[::1] unclean_allowed = batch.unclean_allowed
    cdef const int32_t[::1] broker_ids = batch.broker_ids
    cdef const int32_t[::1] broker_rack = batch.broker_rack
    cdef const uint8_t[::1] broker_live = batch.broker_live
    cdef const uint8_t[::1] broker_shutting_down = batch.broker_shutting_down
    cdef Py_ssize_t i, start, k = leader.shape[0], found = 0
    cdef int32_t position
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election election
    begin(&election, batch.kind, batch.seed, broker_ids, broker_rack, broker_live, broker_shutting_down)

    with nogil:
        for i in range(k):
            start = offsets[i]
            election.candidate_count = offsets[i + 1] - offsets[i]
            show_lists(
                &election, candidates, eligible, in_sync, isr, start, isr_offsets[i],
                isr_offsets[i + 1] - isr_offsets[i],
            )
            election.topic, election.partition = &topic[i], &partition[i]
            election.leader, election.leader_epoch = &old_leader[i], &leader_epoch[i]
            election.unclean_allowed = unclean_allowed[i]
            position = select(&election, <void *>user_data)
            if 0 <= position < election.candidate_count:
                leader[i] = candidates[start + position]
                found += 1
            else:
                leader[i] = KFRAME_NO_LEADER if position == KFRAME_NO_LEADER else INT32_MIN
    return found


cdef inline bint contains(const broker_t[::1] values, Py_ssize_t start, Py_ssize_t stop, int32_t wanted) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(start, stop):
        if values[at] == wanted:
            return True
    return False


cdef inline Py_ssize_t read_row(
    int kind, Py_ssize_t row, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] replica_flags, const uint8_t[::1] live, Py_ssize_t put, index_t[::1] candidates,
    uint8_t[::1] eligible, uint8_t[::1] in_sync, bint *clean,
) noexcept nogil:
    """Write the row's candidates from ``put`` on; return where they end."""
    cdef Py_ssize_t at, start = slot_start[row], stop = start + replica_count[row], isr_stop = start + isr_count[row]
    cdef uint8_t may, member
    cdef bint found = False
    for at in range(start, stop):
        if kind == KFRAME_REASSIGN and replica_flags[at] & REMOVING:
            continue
        may = live[replica[at]] != 0 and (replica_flags[at] & OFFLINE_DIR) == 0
        # In most rows the ISR is the list of replicas, in its order; of a new one it is who may lead.
        member = may if kind == KFRAME_INITIAL else (
            (at < isr_stop and isr[at] == replica[at]) or contains(isr, start, isr_stop, replica[at])
        )
        found |= may & member
        candidates[put], eligible[put], in_sync[put] = replica[at], may, member
        put += 1
    clean[0] = found
    return put


cdef inline Py_ssize_t first_isr(
    Py_ssize_t start, Py_ssize_t stop, const index_t[::1] candidates, const uint8_t[::1] eligible, Py_ssize_t kept,
    index_t[::1] isr_values,
) noexcept nogil:
    """Write the ISR that a new partition will get from ``kept`` on; return where it ends."""
    cdef Py_ssize_t at
    for at in range(start, stop):
        if eligible[at]:
            isr_values[kept] = candidates[at]
            kept += 1
    return kept


def gather(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] slot_start,       # IN   (n,)
    const int16_t[::1] replica_count,    # IN   (n,)
    const int16_t[::1] isr_count,        # IN   (n,)
    const broker_t[::1] replica,         # IN   (s,)
    const broker_t[::1] isr,             # IN   (s,)
    const uint8_t[::1] replica_flags,    # IN   (s,)
    const uint8_t[::1] live,             # IN   (b,)
    int32_t[::1] offsets,                # OUT  (k + 1,) of the candidates
    int32_t[::1] candidates,             # OUT  (sum of replica_count of rows,) the first offsets[k] of them
    uint8_t[::1] eligible,               # OUT  beside candidates
    uint8_t[::1] in_sync,                # OUT  beside candidates
    int32_t[::1] isr_offsets,            # OUT  (k + 1,)
    int32_t[::1] isr_values,             # OUT  (sum of max(replica_count, isr_count) of rows,) the first isr_offsets[k]
    uint8_t[::1] clean,                  # OUT  (k,) 1 where a candidate is eligible and in sync
):
    """Read out of the columns who may lead each row (see ElectionBatch); return how many candidates there are.
    Cost O(k * r^2)."""
    cdef Py_ssize_t i, at, row, put = 0, kept = 0
    cdef bint row_clean = False, far = far_apart(rows, slot_start)
    offsets[0] = isr_offsets[0] = 0
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, replica_flags)
            row = rows[i]
            put = read_row(
                kind, row, slot_start, replica_count, isr_count, replica, isr, replica_flags, live, put, candidates,
                eligible, in_sync, &row_clean,
            )
            clean[i] = row_clean
            offsets[i + 1] = <int32_t>put
            if kind == KFRAME_INITIAL:
                kept = first_isr(offsets[i], put, candidates, eligible, kept, isr_values)
            else:
                for at in range(slot_start[row], slot_start[row] + isr_count[row]):
                    isr_values[kept] = isr[at]
                    kept += 1
            isr_offsets[i + 1] = <int32_t>kept
    return put


cdef inline bint lawful_position(
    int kind, Py_ssize_t row, int32_t position, bint unclean, const int32_t[::1] slot_start,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr,
    const uint8_t[::1] replica_flags, const uint8_t[::1] live, int32_t *broker,
) noexcept nogil:
    """Whether the candidate at ``position``, which exists, may lead; and who it is. Read from the columns, whatever has
    become of what the selector was shown."""
    cdef Py_ssize_t at = slot_start[row], start = at
    while True:
        if not (kind == KFRAME_REASSIGN and replica_flags[at] & REMOVING):
            if position == 0:
                break
            position -= 1
        at += 1
    broker[0] = replica[at]
    if live[replica[at]] == 0 or replica_flags[at] & OFFLINE_DIR or (kind == KFRAME_PREFERRED and at != start):
        return False
    return kind == KFRAME_INITIAL or unclean or contains(isr, start, start + isr_count[row], replica[at])


def copy_rows(
    const int32_t[::1] rows,             # IN   (k,)
    const int32_t[::1] topic,            # IN   (n,)
    const int32_t[::1] partition,        # IN   (n,)
    const broker_t[::1] leader,          # IN   (n,)
    const int32_t[::1] leader_epoch,     # IN   (n,)
    int32_t[:, ::1] values,              # OUT  (4, k) topic, partition, leader, leader_epoch of each row
):
    """Copy what a row has one of. Cost O(k)."""
    cdef Py_ssize_t i, row
    cdef bint far = far_apart(rows, topic)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_row(rows, i, topic, partition, leader, leader_epoch)
            row = rows[i]
            values[0, i], values[1, i] = topic[row], partition[row]
            values[2, i], values[3, i] = leader[row], leader_epoch[row]


def choose(
    size_t function,                     # IN   address of a kframe_select
    size_t user_data,                    # IN   handed to it as it is
    int kind,                            # IN   ElectionKind
    uint32_t seed,                       # IN   of the batch
    object p,                            # IN   Partitions
    const uint8_t[::1] live,             # IN   (b,)
    object shown,                        # IN   (broker_ids, _rack, _live, _shutting_down), copies for the selector
    const int32_t[::1] rows,             # IN   (k,)
    const uint8_t[::1] unclean_allowed,  # IN   (k,) 1 where an out-of-sync leader is permitted; OFFLINE only
    broker_t[:, ::1] numbers,            # SCRATCH (2, most replicas) candidates and ISR of a row
    uint8_t[:, ::1] marks,               # SCRATCH (2, most replicas) eligible, in_sync
    int32_t[::1] leader,                 # OUT  (k,) broker index or NO_LEADER
):
    """``gather``, ``elect`` and ``count_unlawful`` row by row, with no batch in between; return how many choices break
    a safety rule: if any does, ``leader`` is not to be used. Trusts its caller as ``elect`` does."""
    cdef const int32_t[::1] slot_start = p.slot_start
    cdef const broker_t[::1] replica = p.replica, isr = p.isr, old_leader = p.leader
    cdef const int32_t[::1] ids = shown[0], broker_rack = shown[1]
    cdef const int32_t[::1] topic = p.topic, partition = p.partition, epoch = p.leader_epoch
    cdef const int16_t[::1] replica_count = p.replica_count, isr_count = p.isr_count
    cdef const uint8_t[::1] flags = p.replica_flags, shown_live = shown[2], leaving = shown[3]
    cdef broker_t[::1] candidates = numbers[0], members = numbers[1]
    cdef uint8_t[::1] eligible = marks[0], in_sync = marks[1]
    cdef Py_ssize_t i, row, kept, unlawful = 0
    cdef int32_t position
    cdef bint clean = False, far = far_apart(rows, slot_start)
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election e
    begin(&e, kind, seed, ids, broker_rack, shown_live, leaving)
    with nogil:
        for i in range(rows.shape[0]):
            if far:
                ask_for_slots(rows, i, slot_start, replica_count, isr_count, replica, isr, flags)
            row = rows[i]
            e.candidate_count = <int32_t>read_row(
                kind, row, slot_start, replica_count, isr_count, replica, isr, flags, live, 0, candidates, eligible,
                in_sync, &clean,
            )
            if kind == KFRAME_INITIAL:
                kept = first_isr(0, e.candidate_count, candidates, eligible, 0, members)
                show_lists(&e, candidates, eligible, in_sync, members, 0, 0, <int32_t>kept)
            else:
                show_lists(&e, candidates, eligible, in_sync, isr, 0, slot_start[row], isr_count[row])
            e.topic, e.partition, e.leader, e.leader_epoch = &topic[row], &partition[row], &old_leader[row], &epoch[row]
            e.unclean_allowed = unclean_allowed[i] and not clean
            leader[i] = KFRAME_NO_LEADER
            position = select(&e, <void *>user_data)
            if position == KFRAME_NO_LEADER:
                continue
            unlawful += not (0 <= position < e.candidate_count and lawful_position(
                kind, row, position, unclean_allowed[i] and not clean, slot_start, isr_count, replica, isr, flags, live,
                &leader[i],
            ))
    return unlawful


def count_unlawful(
    int kind,                            # IN   ElectionKind
    const int32_t[::1] offsets,          # IN   (k + 1,) of the candidates
    const int32_t[::1] candidates,       # IN   (offsets[k],)
    const uint8_t[::1] eligible,         # IN   beside candidates
    const uint8_t[::1] in_sync,          # IN   beside candidates
    const uint8_t[::1] unclean_allowed,  # IN   (k,)
    const int32_t[::1] leader,           # IN   (k,) as a selector has chosen, anything at all
):
    """Count the choices that break a safety rule (``kframe.core.selection.find_faults`` says which and where)."""
    cdef Py_ssize_t i, at, last, found = 0
    cdef bint lawful
    with nogil:
        for i in range(leader.shape[0]):
            if leader[i] == KFRAME_NO_LEADER:
                continue
            last = offsets[i + 1]
            if kind == KFRAME_PREFERRED and last > offsets[i]:
                last = offsets[i] + 1
            lawful = False
            for at in range(offsets[i], last):
                if candidates[at] == leader[i] and eligible[at] and (in_sync[at] or unclean_allowed[i]):
                    lawful = True
                    break
            found += not lawful
    return found
