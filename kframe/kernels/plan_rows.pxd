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


cdef inline bint spans_rack(
    const broker_t[::1] replica, const int32_t[::1] rack, Py_ssize_t start, Py_ssize_t end, Py_ssize_t skipped,
    int32_t target_rack,
) noexcept nogil:
    """Whether a replica in another slot than ``skipped`` is in rack ``target_rack``."""
    cdef Py_ssize_t k
    for k in range(start, end):
        if k != skipped and replica[k] >= 0 and rack[replica[k]] == target_rack:
            return True
    return False


cdef inline bint keeps_spread(
    const broker_t[::1] replica, const int32_t[::1] rack, Py_ssize_t start, Py_ssize_t end, Py_ssize_t slot,
    int32_t broker,
) noexcept nogil:
    """Whether the replicas span as many racks as before once ``slot`` has ``broker``."""
    if rack[broker] == rack[replica[slot]]:
        return True
    return (
        not spans_rack(replica, rack, start, end, slot, rack[broker])
        or spans_rack(replica, rack, start, end, slot, rack[replica[slot]])
    )


cdef inline double fullness(
    const int64_t[::1] load, const double[::1] share, int32_t broker, int64_t added,
) noexcept nogil:
    """Load by share; infinite for a broker that receives nothing."""
    return (load[broker] + added) / share[broker] if share[broker] > 0 else INFINITY


cdef inline int32_t count_racks(
    const broker_t[::1] replica, const int32_t[::1] rack, Py_ssize_t start, Py_ssize_t end,
) noexcept nogil:
    """Distinct racks of the replicas."""
    cdef Py_ssize_t k
    cdef int32_t count = 0
    for k in range(start, end):
        if replica[k] >= 0 and not spans_rack(replica, rack, start, k, -1, rack[replica[k]]):
            count += 1
    return count


cdef inline int32_t reachable_racks(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[::1] rack_targets, int32_t open_racks,
    Py_ssize_t start, Py_ssize_t end,
) noexcept nogil:
    """Racks that the replicas can span: those with targets, and those of the partition that have none."""
    cdef Py_ssize_t k
    cdef int32_t count = open_racks
    for k in range(start, end):
        if replica[k] >= 0 and rack_targets[rack[replica[k]]] == 0:
            if not spans_rack(replica, rack, start, k, -1, rack[replica[k]]):
                count += 1
    return count


cdef inline Py_ssize_t worst_slot(
    const broker_t[::1] replica, const int32_t[::1] rack, const unsigned char[::1] in_sync, const double[::1] share,
    const int64_t[::1] load, Py_ssize_t start, Py_ssize_t end, bint shared_only,
) noexcept nogil:
    """The slot whose replica should leave first; -1 if there is none.

    Replicas that are not in sync come first, then those that share a rack, then those on the fullest broker; of equals
    the last. The first slot leaves only if it is not in sync or is the only choice.
    """
    cdef Py_ssize_t k, worst = -1
    cdef int tier, worst_tier = -1
    cdef double fill, worst_fill = -1
    cdef bint shares_rack
    for k in range(end - 1, start - 1, -1):
        if replica[k] < 0:
            continue
        shares_rack = spans_rack(replica, rack, start, end, k, rack[replica[k]])
        if shared_only and not shares_rack:
            continue
        tier = 4 * (not in_sync[k]) + 2 * shares_rack + (k > start)
        if k == start and in_sync[k]:
            tier = 0
        fill = fullness(load, share, replica[k], 0)
        if tier > worst_tier or (tier == worst_tier and fill > worst_fill):
            worst, worst_tier, worst_fill = k, tier, fill
    return worst


cdef inline int32_t emptiest_target(
    const broker_t[::1] replica, const int32_t[::1] rack, const double[::1] share, const int64_t[::1] load,
    const int64_t[::1] count, const int64_t[::1] cap, int64_t weight, Py_ssize_t start, Py_ssize_t end,
) noexcept nogil:
    """The broker for a new replica: of another rack if there is any, then the emptiest; -1 if there is none."""
    cdef int32_t broker, best = -1
    cdef double fill, best_fill = INFINITY
    cdef bint new_rack, best_new_rack = False
    for broker in range(<int32_t>share.shape[0]):
        if share[broker] <= 0 or count[broker] >= cap[broker]:
            continue
        fill = fullness(load, share, broker, weight)
        if best_new_rack and fill >= best_fill:
            continue
        if holds(replica, start, end, broker):
            continue
        new_rack = not spans_rack(replica, rack, start, end, -1, rack[broker])
        if new_rack > best_new_rack or (new_rack == best_new_rack and (best < 0 or fill < best_fill)):
            best, best_fill, best_new_rack = broker, fill, new_rack
    return best


cdef inline bint may_move(
    const broker_t[::1] replica, const int32_t[::1] rack, Py_ssize_t start, Py_ssize_t end, Py_ssize_t slot,
    int32_t broker,
) noexcept nogil:
    """Whether the replica in ``slot`` can go to ``broker``: it holds none yet, and no rack is lost."""
    return not holds(replica, start, end, broker) and keeps_spread(replica, rack, start, end, slot, broker)
