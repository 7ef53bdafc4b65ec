"""One partition of a plan: its slots, their racks, and the best broker for a replica. A vacant slot holds -1."""

from libc.stdint cimport int32_t, int64_t
from libc.math cimport INFINITY

from kframe.kernels.types cimport broker_t


cdef inline bint holds(const broker_t[::1] replica, Py_ssize_t start, Py_ssize_t end, int32_t broker) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, end):
        if replica[k] == broker:
            return True
    return False


cdef inline int32_t rack_need(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    Py_ssize_t start, Py_ssize_t end, Py_ssize_t skipped, int32_t target_rack,
) noexcept nogil:
    """What a replica in rack ``target_rack`` adds to the spread of those in other slots than ``skipped``.

    2 where the rack has fewer than its rule demands, 1 where it may have more, 0 where it has the most.
    """
    cdef Py_ssize_t k
    cdef int32_t count = 0
    for k in range(start, end):
        count += k != skipped and replica[k] >= 0 and rack[replica[k]] == target_rack
    return (count < bounds[rule, target_rack, 0]) + (count < bounds[rule, target_rack, 1])


cdef inline int32_t need_of_empty(const int32_t[:, :, ::1] bounds, int32_t rule, int32_t target_rack) noexcept nogil:
    """What a replica in rack ``target_rack`` adds to the spread where it is alone there."""
    return (bounds[rule, target_rack, 0] > 0) + (bounds[rule, target_rack, 1] > 0)


cdef inline bint keeps_spread(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    Py_ssize_t start, Py_ssize_t end, Py_ssize_t slot, int32_t broker,
) noexcept nogil:
    """Whether the replicas are spread over racks as before, or better, once ``slot`` has ``broker``."""
    cdef int32_t need
    if rack[broker] == rack[replica[slot]]:
        return True
    need = rack_need(replica, rack, bounds, rule, start, end, slot, rack[broker])
    if need >= need_of_empty(bounds, rule, rack[replica[slot]]):
        return True
    return need >= rack_need(replica, rack, bounds, rule, start, end, slot, rack[replica[slot]])


cdef inline double fullness(
    const int64_t[::1] load, const double[::1] share, int32_t broker, int64_t added,
) noexcept nogil:
    """Load by share; infinite for a broker that receives nothing."""
    return (load[broker] + added) / share[broker] if share[broker] > 0 else INFINITY


cdef inline int32_t spread_of(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    Py_ssize_t start, Py_ssize_t end, int column,
) noexcept nogil:
    """The sum over racks of the replicas, of those of a rack at most its bound ``column``: 0 the fewest, 1 the most."""
    cdef Py_ssize_t k, g
    cdef int32_t count, spread = 0
    for k in range(start, end):
        if replica[k] < 0:
            continue
        count = 0
        for g in range(start, k):
            count += replica[g] >= 0 and rack[replica[g]] == rack[replica[k]]
        spread += count < bounds[rule, rack[replica[k]], column]
    return spread


cdef inline Py_ssize_t worst_slot(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    const unsigned char[::1] in_sync, const double[::1] share, const int64_t[::1] load, Py_ssize_t start,
    Py_ssize_t end, int32_t need_max,
) noexcept nogil:
    """The slot whose replica should leave first, of those that add at most ``need_max`` to the spread; -1 if none is.

    Replicas that are not in sync come first, then those that add least to the spread, then those on the fullest broker;
    of equals the last. The first slot leaves only if it is not in sync or is the only choice.
    """
    cdef Py_ssize_t k, worst = -1
    cdef int32_t need, tier, worst_tier = -1
    cdef double fill, worst_fill = -1
    for k in range(end - 1, start - 1, -1):
        if replica[k] < 0:
            continue
        need = rack_need(replica, rack, bounds, rule, start, end, k, rack[replica[k]])
        if need > need_max:
            continue
        tier = 8 * (not in_sync[k]) + 2 * (2 - need) + (k > start)
        if k == start and in_sync[k]:
            tier = 0
        fill = fullness(load, share, replica[k], 0)
        if tier > worst_tier or (tier == worst_tier and fill > worst_fill):
            worst, worst_tier, worst_fill = k, tier, fill
    return worst


cdef inline int32_t emptiest_target(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    const double[::1] share, const int64_t[::1] load, const int64_t[::1] count, const int64_t[::1] cap, int64_t weight,
    Py_ssize_t start, Py_ssize_t end,
) noexcept nogil:
    """The broker for a new replica: of a rack where it adds most to the spread, then the emptiest; -1 if none is."""
    cdef int32_t broker, need, best = -1, best_need = -1
    cdef double fill, best_fill = INFINITY
    for broker in range(<int32_t>share.shape[0]):
        if share[broker] <= 0 or count[broker] >= cap[broker]:
            continue
        fill = fullness(load, share, broker, weight)
        if fill >= best_fill and best_need >= need_of_empty(bounds, rule, rack[broker]):
            continue
        if holds(replica, start, end, broker):
            continue
        need = rack_need(replica, rack, bounds, rule, start, end, -1, rack[broker])
        if need > best_need or (need == best_need and fill < best_fill):
            best, best_fill, best_need = broker, fill, need
    return best


cdef inline bint may_move(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    Py_ssize_t start, Py_ssize_t end, Py_ssize_t slot, int32_t broker,
) noexcept nogil:
    """Whether the replica in ``slot`` can go to ``broker``: it holds none yet, and the spread is kept."""
    return not holds(replica, start, end, broker) and keeps_spread(
        replica, rack, bounds, rule, start, end, slot, broker
    )
