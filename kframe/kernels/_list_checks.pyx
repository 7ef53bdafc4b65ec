"""Kernels that check the lists of broker ids of a snapshot before anything else reads them.

Conventions and recurring arguments: ``kframe/_core.pyx``. Reference: ``reference/list_checks.py``.
"""

from libc.stdint cimport int32_t

from kframe.kernels.row_deltas cimport COMMON_REPLICAS

cdef enum:
    LONGEST = 64


def count_wrong_lists(
    const int32_t[::1] offsets,          # IN   (n + 1,)
    const int32_t[::1] values,           # IN   (s,) broker ids
    const int32_t[::1] allowed_offsets,  # IN   (n + 1,)
    const int32_t[::1] allowed,          # IN   (m,) broker ids, for each list those that it may have
):
    """Count lists with a negative id, with an id twice, or with one that is not allowed.

    Lists of more than LONGEST ids, and those that may have as many, count as wrong: comparing all pairs of their ids
    takes too long. Cost O(n * r^2).
    """
    cdef Py_ssize_t i, k, j, start, count, first, width, wrong = 0
    cdef const int32_t *ids
    cdef const int32_t *known
    cdef bint is_wrong, is_allowed
    with nogil:
        for i in range(offsets.shape[0] - 1):
            start, count = offsets[i], offsets[i + 1] - offsets[i]
            first, width = allowed_offsets[i], allowed_offsets[i + 1] - allowed_offsets[i]
            if count == 0:
                continue
            if width == 0 or count > LONGEST or width > LONGEST:
                wrong += 1
                continue
            ids, known = &values[start], &allowed[first]
            if count == COMMON_REPLICAS and width == COMMON_REPLICAS:  # unrolled, it takes less time than loops
                wrong += (
                    ((ids[0] | ids[1] | ids[2]) < 0)
                    | (ids[0] == ids[1]) | (ids[0] == ids[2]) | (ids[1] == ids[2])
                    | (is_of_three(ids[0], known) & is_of_three(ids[1], known) & is_of_three(ids[2], known) ^ 1)
                )
                continue
            is_wrong = False
            for k in range(count):
                is_allowed = False
                for j in range(width):
                    is_allowed |= known[j] == ids[k]
                for j in range(k):
                    is_wrong |= ids[j] == ids[k]
                is_wrong |= not is_allowed or ids[k] < 0
            wrong += is_wrong
    return wrong


def count_wrong_leaders(
    const int32_t[::1] leader,           # IN   (n,) broker ids; below 0 for none
    const int32_t[::1] offsets,          # IN   (n + 1,)
    const int32_t[::1] replicas,         # IN   (s,) broker ids
):
    """Count leaders that are not among the replicas of their partition. Cost O(n * r)."""
    cdef Py_ssize_t i, k, wrong = 0
    cdef bint is_replica
    with nogil:
        for i in range(leader.shape[0]):
            is_replica = leader[i] < 0
            for k in range(offsets[i], offsets[i + 1]):
                is_replica |= replicas[k] == leader[i]
            wrong += not is_replica
    return wrong


cdef inline int is_of_three(int32_t broker, const int32_t *known) noexcept nogil:
    return (broker == known[0]) | (broker == known[1]) | (broker == known[2])
