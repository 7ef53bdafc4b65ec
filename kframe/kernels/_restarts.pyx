"""Assign the units of a rolling restart to batches.

A *unit* restarts as a whole: a node, or all brokers of a rack. A *limit* names units: of their members that it counts,
at most ``capacity`` may be down at once. Limit ``l`` has the units ``unit[limit_start[l] .. limit_start[l + 1]]``,
each beside the members that it counts; unit ``u`` has the limits ``limit[unit_start[u] .. unit_start[u + 1]]``.
Reference: ``reference/restarts.py``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef inline int64_t examine_limits(
    int32_t unit_number, const int32_t[::1] unit_start, const int32_t[::1] limit, const int32_t[::1] limit_start,
    const int32_t[::1] unit, const int32_t[::1] members, const int32_t[::1] capacity, const int64_t[::1] exhausted,
    const int32_t[::1] batch, int32_t[::1] down, uint8_t[::1] forbidden, int64_t[::1] added,
) noexcept nogil:
    """Mark the batches that a limit keeps a unit from, and count the partitions whose capacity it exhausts in each.

    Return how many it exhausts in a batch without other units. ``down`` is zero before and after.
    """
    cdef Py_ssize_t i, k
    cdef int32_t number, other, own = 0
    cdef int64_t alone = 0
    for i in range(unit_start[unit_number], unit_start[unit_number + 1]):
        number = limit[i]
        for k in range(limit_start[number], limit_start[number + 1]):
            if unit[k] == unit_number:
                own = members[k]
            elif batch[unit[k]] >= 0:
                down[batch[unit[k]]] += members[k]
        if own == capacity[number]:
            alone += exhausted[number]
        for k in range(limit_start[number], limit_start[number + 1]):
            other = batch[unit[k]]
            if unit[k] == unit_number or other < 0 or down[other] == 0:
                continue
            if down[other] + own > capacity[number]:
                forbidden[other] = 1
            elif down[other] + own == capacity[number]:
                added[other] += exhausted[number]
            down[other] = 0
    return alone


def assign_batches(
    const int32_t[::1] order,            # IN    (k,) units in the order in which they are assigned
    const int32_t[::1] unit_start,       # IN    (u + 1,)
    const int32_t[::1] limit,            # IN    (m,)
    const int32_t[::1] limit_start,      # IN    (l + 1,)
    const int32_t[::1] unit,             # IN    (m,)
    const int32_t[::1] members,          # IN    (m,)
    const int32_t[::1] capacity,         # IN    (l,)
    const int64_t[::1] exhausted,        # IN    (l,) partitions at min ISR once the capacity is exhausted
    const int32_t[::1] group,            # IN    (u,) units of different groups share no batch
    const int32_t[::1] size,             # IN    (u,) nodes of each unit
    int64_t exhausted_max,               # IN    partitions at min ISR in a batch, at most
    int64_t size_max,                    # IN    nodes in a batch, at most
    int32_t[::1] down,                   # INOUT (u,) scratch: zero
    uint8_t[::1] forbidden,              # OUT   (u,) scratch
    int64_t[:, ::1] used,                # OUT   (3, u) scratch: partitions added, partitions and nodes of a batch
    int32_t[::1] batch_group,            # OUT   (u,) scratch
    int32_t[::1] batch,                  # INOUT (u,) -1; the batch from 0
):
    """Put each unit into the first batch that no limit keeps it from; return how many batches.

    A unit that fits no batch begins another, also where it alone exceeds a limit. Cost O(m * r + k * batches).
    """
    cdef Py_ssize_t i
    cdef int32_t number, chosen, count = 0
    cdef int64_t alone
    with nogil:
        for i in range(order.shape[0]):
            number = order[i]
            forbidden[:count], used[0, :count] = 0, 0
            alone = examine_limits(number, unit_start, limit, limit_start, unit, members, capacity, exhausted,
                                   batch, down, forbidden, used[0])
            chosen = 0
            while chosen < count and (
                forbidden[chosen] or batch_group[chosen] != group[number]
                or used[1, chosen] + used[0, chosen] + alone > exhausted_max
                or used[2, chosen] + size[number] > size_max
            ):
                chosen += 1
            if chosen == count:
                used[0, count] = used[1, count] = used[2, count] = 0
                batch_group[count] = group[number]
                count += 1
            batch[number] = chosen
            used[1, chosen] += used[0, chosen] + alone
            used[2, chosen] += size[number]
    return count
