"""The loop that calls a native leader selector, one C call for each partition, without the GIL.

See ``selector.h`` for what the selector is and sees. Twin: ``tests/plug/native_twin.py``.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport INT32_MIN, int32_t, uint8_t, uint32_t

from kframe.selector cimport KFRAME_NO_LEADER, KFRAME_SELECT_SIGNATURE, kframe_election, kframe_select

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


def elect(
    size_t function,             # IN   address of a kframe_select
    size_t user_data,            # IN   handed to it as it is
    object batch,                # IN   ElectionBatch of k partitions
    const int32_t[::1] rack,     # IN   (len(batch.candidates.values),) rack number beside each candidate
    int32_t[::1] leader,         # OUT  (k,) broker index, NO_LEADER or INVALID_POSITION
):
    """Ask ``function`` for the leader of every partition of ``batch``; return how many have one.

    Trusts its caller: that the arrays of the batch fit together is checked by ``kframe.plug.native``. A wrong address
    ends the process.
    """
    cdef const int32_t[::1] offsets = batch.candidates.offsets
    cdef const int32_t[::1] candidates = batch.candidates.values
    cdef const uint8_t[::1] eligible = batch.eligible
    cdef const uint8_t[::1] in_sync = batch.in_sync
    cdef const int32_t[::1] isr_offsets = batch.isr.offsets
    cdef const int32_t[::1] isr = batch.isr.values
    cdef const int32_t[::1] topic = batch.topic
    cdef const int32_t[::1] partition = batch.partition
    cdef const int32_t[::1] old_leader = batch.leader
    cdef const int32_t[::1] leader_epoch = batch.leader_epoch
    cdef const uint8_t[::1] unclean_allowed = batch.unclean_allowed
    cdef const int32_t[::1] broker_ids = batch.broker_ids
    cdef const uint8_t[::1] broker_live = batch.broker_live
    cdef const uint8_t[::1] broker_shutting_down = batch.broker_shutting_down
    cdef Py_ssize_t i, start, k = leader.shape[0], found = 0
    cdef int32_t position
    cdef kframe_select select = <kframe_select>function
    cdef kframe_election election

    election.size = sizeof(kframe_election)
    election.kind = batch.kind
    election.seed = <uint32_t>batch.seed
    election.broker_count = <int32_t>broker_ids.shape[0]
    election.broker_ids = &broker_ids[0] if broker_ids.shape[0] else NULL
    election.broker_live = &broker_live[0] if broker_ids.shape[0] else NULL
    election.broker_shutting_down = &broker_shutting_down[0] if broker_ids.shape[0] else NULL
    with nogil:
        for i in range(k):
            start = offsets[i]
            election.candidate_count = offsets[i + 1] - offsets[i]
            election.candidates = &candidates[start] if election.candidate_count else NULL
            election.eligible = &eligible[start] if election.candidate_count else NULL
            election.in_sync = &in_sync[start] if election.candidate_count else NULL
            election.rack = &rack[start] if election.candidate_count else NULL
            election.isr_count = isr_offsets[i + 1] - isr_offsets[i]
            election.isr = &isr[isr_offsets[i]] if election.isr_count else NULL
            election.topic = topic[i]
            election.partition = partition[i]
            election.leader = old_leader[i]
            election.leader_epoch = leader_epoch[i]
            election.unclean_allowed = unclean_allowed[i]
            position = select(&election, <void *>user_data)
            if 0 <= position < election.candidate_count:
                leader[i] = candidates[start + position]
                found += 1
            else:
                leader[i] = KFRAME_NO_LEADER if position == KFRAME_NO_LEADER else INT32_MIN
    return found
