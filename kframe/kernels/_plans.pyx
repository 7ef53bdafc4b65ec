"""Kernels that make reassignment plans: which replicas leave, and where they go.

Recurring arguments: partition ``p`` has the slots ``offsets[p] .. offsets[p + 1]``; a slot holds a broker index, or -1
while it is vacant. ``order`` lists the partitions that may change. ``share`` is each broker's share of the load, 0 for
brokers that receive nothing. ``load`` is in units of ``weight``, ``count`` and ``cap`` in replicas. ``rack`` numbers
the racks from 0. ``rule`` numbers the rack rule of each partition, and ``bounds`` has the fewest and the most replicas
that a rule demands of each rack. The spread of a partition is the sum of its replicas, of a rack at most these; it has
two columns, one for each bound. Reference: ``reference/plans.py``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe.kernels.plan_rows cimport (
    emptiest_target, may_move, spread_of, worst_slot,
)
from kframe.kernels.types cimport broker_t


def vacate_replicas(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const int32_t[::1] replication_factor,           # IN    (n,) replication factor after the plan
    const uint8_t[::1] in_sync,          # IN    (s,)
    const uint8_t[::1] leaving,          # IN    (b,) 1 for brokers that every replica leaves
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const int32_t[:, ::1] demanded,      # IN    (n, 2) spread for which replicas are vacated; 0 for none
    const double[::1] share,             # IN    (b,)
    const int64_t[::1] weight,           # IN    (n,)
    broker_t[::1] replica,               # INOUT (s,)
    int64_t[::1] load,                   # INOUT (b,)
    int64_t[::1] count,                  # INOUT (b,)
):
    """Vacate the slots of replicas that must leave; return how many. Cost O(s * r^2).

    A replica must leave a leaving broker, and a list longer than the replication factor. It must leave its rack while
    new replicas cannot bring the list to the demanded spread otherwise. The fewest possible replicas leave.
    """
    cdef Py_ssize_t i, k, start, end, p, vacated = 0
    cdef int32_t lacking, broker, need_max
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            start, end, lacking = offsets[p], offsets[p + 1], replication_factor[p]
            for k in range(start, end):
                lacking -= replica[k] >= 0
            for k in range(start, end):
                if replica[k] >= 0 and leaving[replica[k]]:
                    broker = replica[k]
                    replica[k] = -1
                    load[broker] -= weight[p]
                    count[broker] -= 1
                    lacking += 1
                    vacated += 1
            while True:
                if lacking < 0:
                    need_max = 2
                elif lacking + spread_of(replica, rack, bounds, rule[p], start, end, 1) < demanded[p, 1]:
                    need_max = 0
                elif lacking + spread_of(replica, rack, bounds, rule[p], start, end, 0) < demanded[p, 0]:
                    need_max = 1
                else:
                    break
                k = worst_slot(replica, rack, bounds, rule[p], in_sync, share, load, start, end, need_max)
                if k < 0:
                    break
                broker = replica[k]
                replica[k] = -1
                load[broker] -= weight[p]
                count[broker] -= 1
                lacking += 1
                vacated += 1
    return vacated


def fill_vacancies(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const int32_t[::1] replication_factor,           # IN    (n,)
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const double[::1] share,             # IN    (b,)
    const int64_t[::1] cap,              # IN    (b,)
    const int64_t[::1] weight,           # IN    (n,)
    broker_t[::1] replica,               # INOUT (s,)
    int64_t[::1] load,                   # INOUT (b,)
    int64_t[::1] count,                  # INOUT (b,)
):
    """Give partitions with too few replicas the emptiest brokers; return how many replicas are still missing.

    A broker of the rack where it adds most to the spread comes first. Cost O(b * r) for each new replica.
    """
    cdef Py_ssize_t i, k, start, end, p, missing = 0
    cdef int32_t lacking, broker
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            start, end, lacking = offsets[p], offsets[p + 1], replication_factor[p]
            for k in range(start, end):
                lacking -= replica[k] >= 0
            for k in range(start, end):
                if lacking <= 0:
                    break
                if replica[k] >= 0:
                    continue
                broker = emptiest_target(
                    replica, rack, bounds, rule[p], share, load, count, cap, weight[p], start, end
                )
                if broker < 0:
                    break
                replica[k] = <broker_t>broker
                load[broker] += weight[p]
                count[broker] += 1
                lacking -= 1
            missing += max(lacking, 0)
    return missing


cdef inline int32_t best_target(
    const broker_t[::1] replica, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    const double[::1] share, const int64_t[::1] lower, const int64_t[::1] upper, const int64_t[::1] load,
    const int64_t[::1] count, const int64_t[::1] cap, int64_t weight, Py_ssize_t start, Py_ssize_t end,
    Py_ssize_t slot, bint under_only, bint within_limits,
) noexcept nogil:
    """The broker with most room that can take the replica in ``slot``; -1 if there is none."""
    cdef int32_t broker, best = -1
    cdef int64_t room, best_room = 0
    for broker in range(<int32_t>share.shape[0]):
        if share[broker] <= 0 or count[broker] >= cap[broker] or load[broker] + weight > upper[broker]:
            continue
        if under_only and (load[broker] >= lower[broker] or (within_limits and load[broker] + weight > lower[broker])):
            continue
        room = lower[broker] + upper[broker] - 2 * load[broker]
        if (best < 0 or room > best_room) and may_move(replica, rack, bounds, rule, start, end, slot, broker):
            best, best_room = broker, room
    return best


def transfer_replicas(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const double[::1] share,             # IN    (b,)
    const int64_t[::1] cap,              # IN    (b,)
    const int64_t[::1] weight,           # IN    (n,)
    const int64_t[::1] lower,            # IN    (b,) least load of a broker
    const int64_t[::1] upper,            # IN    (b,) greatest load of a broker
    bint over_only,                      # IN    only from brokers above ``upper``
    bint under_only,                     # IN    only to brokers below ``lower``
    bint within_limits,                        # IN    only replicas that neither limit is crossed with
    bint first_slots,                    # IN    first slots too, which are of preferred leaders
    broker_t[::1] replica,               # INOUT (s,)
    int64_t[::1] load,                   # INOUT (b,)
    int64_t[::1] count,                  # INOUT (b,)
):
    """Move replicas between brokers to bring their loads within the limits; return how many.

    No move takes a broker from within its limits to beyond them, or reduces the spread of a partition.
    Each partition moves at most one replica. Cost O(s), and O(b * r) for each candidate.
    """
    cdef Py_ssize_t i, k, p, start, end, moves = 0, over = 0, under = 0
    cdef int32_t source, target
    with nogil:
        for k in range(load.shape[0]):
            over += load[k] > upper[k]
            under += load[k] < lower[k]
        for i in range(order.shape[0]):
            if (over_only and over == 0) or (under_only and under == 0):
                break
            p = order[i]
            start, end = offsets[p], offsets[p + 1]
            for k in range(end - 1, start - first_slots, -1):
                source = replica[k]
                if source < 0 or share[source] <= 0 or load[source] - weight[p] < lower[source]:
                    continue
                if over_only and (load[source] <= upper[source] or (
                    within_limits and load[source] - weight[p] < upper[source]
                )):
                    continue
                target = best_target(
                    replica, rack, bounds, rule[p], share, lower, upper, load, count, cap, weight[p], start, end, k,
                    under_only, within_limits,
                )
                if target < 0:
                    continue
                replica[k] = <broker_t>target
                over -= load[source] > upper[source] >= load[source] - weight[p]
                under -= load[target] < lower[target] <= load[target] + weight[p]
                load[source] -= weight[p]
                load[target] += weight[p]
                count[source] -= 1
                count[target] += 1
                moves += 1
                break
    return moves


def measure_spread(
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const int32_t[::1] values,           # IN    (s,) broker indexes
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    int32_t[:, ::1] spread,              # OUT   (n, 2) spread of each list
):
    """Measure the spread of each list; return the largest. Cost O(s * r)."""
    cdef Py_ssize_t p, k, g
    cdef int32_t count, largest = 0
    with nogil:
        for p in range(spread.shape[0]):
            spread[p, 0] = spread[p, 1] = 0
            for k in range(offsets[p], offsets[p + 1]):
                count = 0
                for g in range(offsets[p], k):
                    count += rack[values[g]] == rack[values[k]]
                spread[p, 0] += count < bounds[rule[p], rack[values[k]], 0]
                spread[p, 1] += count < bounds[rule[p], rack[values[k]], 1]
            largest = max(largest, spread[p, 1])
    return largest


def mark_leaders(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const broker_t[::1] replica,         # IN    (s,)
    const int32_t[::1] original_offsets,  # IN    (n + 1,)
    const broker_t[::1] original,        # IN    replicas before the plan
    const double[::1] share,             # IN    (b,) 0 for brokers that must not become leaders
    uint8_t[:, ::1] arcs,                # INOUT (b, b) source, target: 1 if a leadership can go; 2 if moved before
):
    """Mark the pairs of brokers between which the preferred leadership of a partition can go.

    No slot is vacant. Return how many marks were set. Moving what has been moved before costs nothing. Cost O(s).
    """
    cdef Py_ssize_t i, k, p, marks = 0
    cdef int32_t leader, target
    cdef uint8_t mark
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            if offsets[p] == offsets[p + 1]:
                continue
            leader = replica[offsets[p]]
            mark = 1 + is_moved(original, original_offsets, p, leader)
            for k in range(offsets[p] + 1, offsets[p + 1]):
                target = replica[k]
                if share[target] > 0 and arcs[leader, target] < mark:
                    arcs[leader, target] = mark
                    marks += 1
    return marks


cdef inline bint is_moved(
    const broker_t[::1] original, const int32_t[::1] offsets, Py_ssize_t p, int32_t broker,
) noexcept nogil:
    """Whether the plan has given the broker this leadership."""
    return offsets[p] == offsets[p + 1] or original[offsets[p]] != broker


cdef inline Py_ssize_t follower_slot(
    const broker_t[::1] replica, Py_ssize_t start, Py_ssize_t end, int32_t leader, int32_t target,
) noexcept nogil:
    """The slot of ``target`` if ``leader`` can give it the leadership, else -1."""
    cdef Py_ssize_t k
    if end > start and replica[start] == leader:
        for k in range(start + 1, end):
            if replica[k] == target:
                return k
    return -1


def shift_leaders(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const int32_t[::1] original_offsets,  # IN    (n + 1,)
    const broker_t[::1] original,        # IN    replicas before the plan
    const int32_t[::1] path,             # IN    (m + 1,) brokers, the source first
    const uint8_t[::1] moved_only,             # IN    (m,) 1 for steps that only take what was moved before
    int64_t max_shifts,                  # IN    leaderships to shift at most
    int32_t[::1] cursors,                # OUT   (m,) scratch
    int32_t[::1] rows,                   # OUT   (m,) scratch
    broker_t[::1] replica,               # INOUT (s,)
):
    """Shift leaderships along a path of brokers; return how many units arrived.

    Each unit takes a different partition for every step, so that only the ends of the path change their loads.
    Cost O(m * s) in total.
    """
    cdef Py_ssize_t h, g, p, slot, steps = moved_only.shape[0]
    cdef int64_t shifted = 0
    cdef bint used
    with nogil:
        for h in range(steps):
            cursors[h] = 0
        while shifted < max_shifts:
            for h in range(steps):
                slot = -1
                while cursors[h] < order.shape[0] and slot < 0:
                    p = order[cursors[h]]
                    used = False
                    for g in range(h):
                        used = used or rows[g] == p
                    if not used and (not moved_only[h] or is_moved(original, original_offsets, p, path[h])):
                        slot = follower_slot(replica, offsets[p], offsets[p + 1], path[h], path[h + 1])
                    rows[h] = <int32_t>p
                    cursors[h] += 1
                if slot < 0:
                    break
            else:
                for h in range(steps):
                    p = rows[h]
                    slot = follower_slot(replica, offsets[p], offsets[p + 1], path[h], path[h + 1])
                    replica[slot] = <broker_t>path[h]
                    replica[offsets[p]] = <broker_t>path[h + 1]
                shifted += 1
                continue
            break
    return shifted


def reorder_leaders(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const double[::1] share,             # IN    (b,) 0 for brokers that must not become leaders
    const int64_t[::1] lower,            # IN    (b,) fewest preferred leaders of a broker
    const int64_t[::1] upper,            # IN    (b,) most preferred leaders of a broker
    bint over_only,                      # IN    only from brokers above ``upper``
    bint under_only,                     # IN    only to brokers below ``lower``
    broker_t[::1] replica,               # INOUT (s,)
    int64_t[::1] led,                    # INOUT (b,) preferred leaders of each broker
):
    """Exchange the first replica with another to bring the preferred leaders of brokers within limits.

    Return how many partitions changed. No exchange takes a broker from within its limits to beyond them. Cost O(s).
    """
    cdef Py_ssize_t i, k, p, start, end, best, changes = 0
    cdef int32_t leader, target
    cdef int64_t room, best_room = 0
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            start, end = offsets[p], offsets[p + 1]
            if end <= start or replica[start] < 0:
                continue
            leader = replica[start]
            if led[leader] <= (upper[leader] if over_only else lower[leader]):
                continue
            best = -1
            for k in range(start + 1, end):
                target = replica[k]
                if target < 0 or share[target] <= 0 or led[target] >= (lower[target] if under_only else upper[target]):
                    continue
                room = lower[target] + upper[target] - 2 * led[target]
                if best < 0 or room > best_room:
                    best, best_room = k, room
            if best < 0:
                continue
            target = replica[best]
            replica[best] = <broker_t>leader
            replica[start] = <broker_t>target
            led[leader] -= 1
            led[target] += 1
            changes += 1
    return changes
