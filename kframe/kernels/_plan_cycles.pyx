"""Kernels for the network of brokers in which a plan becomes cheaper: what brokers can give others, at what cost.

The arguments are those of ``_plans.pyx``. ``original`` with ``original_offsets`` has the replicas before the plan. The
cost of a transfer is 1 if it copies a replica, -1 if it takes a copied replica back to where it was, else 0. Reference:
``reference/plan_cycles.py``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe.kernels.plan_rows cimport fullness, holds, may_move, rack_need, spread_of
from kframe.kernels.types cimport broker_t


def rate_transfers(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const broker_t[::1] replica,         # IN    (s,)
    const int32_t[::1] original_offsets,  # IN    (n + 1,)
    const broker_t[::1] original,        # IN    replicas before the plan
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const double[::1] share,             # IN    (b,)
    int32_t[:, ::1] costlier_targets,    # INOUT (b, 4) targets of rate over 1, over 2: in the source's rack, in others
    uint8_t[:, ::1] rates,               # INOUT (b, b) source, target: lowered to the least cost of a transfer, plus 1
):
    """Determine what the cheapest transfer between each two brokers costs; return how many rates were lowered.

    Cost O(s * r^2), and O(b * r) for each slot of a broker with a rate that the slot may lower.
    """
    cdef Py_ssize_t i, k, g, p, start, end, lowered = 0
    cdef int32_t source, target, room
    cdef uint8_t rate
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            start, end = offsets[p], offsets[p + 1]
            room = -spread_of(replica, rack, bounds, rule[p], start, end, 1)
            for g in range(bounds.shape[1]):
                room += bounds[rule[p], g, 1]
                if room > 0:
                    break
            for k in range(start, end):
                source = replica[k]
                if source < 0 or share[source] <= 0:
                    continue
                rate = 1 + holds(original, original_offsets[p], original_offsets[p + 1], source)
                for g in range(original_offsets[p], original_offsets[p + 1]):
                    target = original[g]
                    if share[target] > 0 and rates[source, target] >= rate and may_move(
                        replica, rack, bounds, rule[p], start, end, k, target
                    ):
                        lowered += lower_rate(rates, costlier_targets, rack, source, target, rate - 1)
                # A replica that adds to the spread goes to another rack only if that may have more.
                if costlier_targets[source, rate - 1] == 0 and (
                    costlier_targets[source, rate + 1] == 0
                    or (room <= 0 and rack_need(replica, rack, bounds, rule[p], start, end, k, rack[source]) > 0)
                ):
                    continue
                for target in range(<int32_t>share.shape[0]):
                    if share[target] > 0 and rates[source, target] > rate and may_move(
                        replica, rack, bounds, rule[p], start, end, k, target
                    ):
                        lowered += lower_rate(rates, costlier_targets, rack, source, target, rate)
    return lowered


cdef inline bint lower_rate(
    uint8_t[:, ::1] rates, int32_t[:, ::1] costlier_targets, const int32_t[::1] rack, int32_t source, int32_t target,
    uint8_t rate,
) noexcept nogil:
    cdef int first = 2 * (rack[source] != rack[target])
    costlier_targets[source, first] -= rates[source, target] > 1 >= rate
    costlier_targets[source, first + 1] -= rates[source, target] > 2
    rates[source, target] = rate
    return True


def collect_transfers(
    const int32_t[::1] slots,            # IN    (k,) slots in the order in which they are considered
    const int32_t[::1] owner,            # IN    (s,) partition of each slot
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const broker_t[::1] replica,         # IN    (s,)
    const int32_t[::1] original_offsets,  # IN    (n + 1,)
    const broker_t[::1] original,        # IN    replicas before the plan
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const int64_t[::1] weight,           # IN    (n,)
    const uint8_t[::1] used,             # IN    (n,) 1 for partitions that are not considered
    int32_t source,                       # IN
    int32_t target,                      # IN
    int32_t rate,                        # IN    cost of each transfer, plus 1
    int64_t weight_limit,                # IN    greatest sum of weights
    int32_t[::1] chosen,                 # OUT   (k,) indexes of ``slots`` whose replicas go to the target
):
    """Choose replicas that can go from a broker to another, up to ``weight_limit``; return how many.

    Cost O(k * r).
    """
    cdef Py_ssize_t i, k, p, count = 0
    cdef int64_t remaining = weight_limit
    cdef int32_t cost
    with nogil:
        for i in range(slots.shape[0]):
            if remaining <= 0:
                break
            k, p = slots[i], owner[slots[i]]
            if replica[k] != source or used[p] or weight[p] > remaining:
                continue
            cost = holds(original, original_offsets[p], original_offsets[p + 1], source)
            cost -= holds(original, original_offsets[p], original_offsets[p + 1], target)
            if cost + 1 != rate or not may_move(
                replica, rack, bounds, rule[p], offsets[p], offsets[p + 1], k, target
            ):
                continue
            chosen[count] = <int32_t>i
            count += 1
            remaining -= weight[p]
    return count


def load_at_prices(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] original_offsets,  # IN    (n + 1,)
    const broker_t[::1] original,        # IN    replicas before the plan
    const int32_t[::1] replication_factor,           # IN    (n,) replication factor after the plan
    const int32_t[:, ::1] surplus,       # IN    (n, 2) replicas that need not add to the spread
    const uint8_t[::1] leaving,          # IN    (b,)
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const int64_t[::1] weight,           # IN    (n,)
    const int64_t[::1] price,            # IN    (b,)
    const int32_t[::1] targets,          # IN    (t,) brokers that receive replicas, ascending by price
    broker_t[::1] chosen,                # OUT   (largest replication factor,) scratch
    int64_t[::1] load,                   # INOUT (b,) increased by the weights of the chosen replicas
):
    """Give each partition its cheapest valid replicas; return what they copy, -1 if a partition has too few brokers.

    A replica costs the price of its broker, and 1 more if it is copied. The cheapest broker is taken again and again,
    except where a rack would have too many for the required spread. Cost O(k * r^2), O(t) at worst for each replica.
    """
    cdef Py_ssize_t i, p, g, start, end, count
    cdef int64_t best_price, copied = 0
    cdef int32_t broker, best
    cdef int32_t[2] room
    cdef bint old
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            start, end = original_offsets[p], original_offsets[p + 1]
            best, room[0], room[1] = 0, surplus[p, 0], surplus[p, 1]
            for count in range(replication_factor[p]):
                best, best_price, old = -1, 0, True
                for g in range(start, end):
                    broker = original[g]
                    if not leaving[broker] and (best < 0 or price[broker] < best_price) and is_open(
                        chosen, rack, bounds, rule[p], count, broker, room
                    ):
                        best, best_price = broker, price[broker]
                for g in range(targets.shape[0]):
                    broker = targets[g]
                    if best >= 0 and price[broker] + 1 >= best_price:
                        break
                    if not holds(original, start, end, broker) and is_open(
                        chosen, rack, bounds, rule[p], count, broker, room
                    ):
                        best, old = broker, False
                        break
                if best < 0:
                    break
                use_room(room, rack_need(chosen, rack, bounds, rule[p], 0, count, -1, rack[best]))
                chosen[count] = <broker_t>best
                load[best] += weight[p]
                copied += 0 if old else weight[p]
            if best < 0:
                copied = -1
                break
    return copied


def assign_at_prices(
    const int32_t[::1] order,            # IN    (k,)
    const int32_t[::1] offsets,          # IN    (n + 1,)
    const int32_t[::1] original_offsets,  # IN    (n + 1,)
    const broker_t[::1] original,        # IN    replicas before the plan
    const int32_t[::1] replication_factor,           # IN    (n,) replication factor after the plan
    const int32_t[:, ::1] surplus,       # IN    (n, 2) replicas that need not add to the spread
    const uint8_t[::1] leaving,          # IN    (b,)
    const int32_t[::1] rack,             # IN    (b,)
    const int32_t[::1] rule,             # IN    (n,)
    const int32_t[:, :, ::1] bounds,     # IN    (rules, racks, 2)
    const double[::1] share,             # IN    (b,)
    const int64_t[::1] cap,              # IN    (b,)
    const int64_t[::1] weight,           # IN    (n,)
    const int64_t[::1] upper,            # IN    (b,)
    const int64_t[::1] price,            # IN    (b,)
    broker_t[::1] chosen,                # OUT   (largest replication factor,) scratch
    broker_t[::1] replica,               # OUT   (s,) slots of the partitions of ``order``
    int64_t[::1] load,                   # INOUT (b,)
    int64_t[::1] count,                  # INOUT (b,)
):
    """Give partitions the cheapest valid replicas, one after another; return how many have too few brokers.

    A replica costs the price of its broker, 1 more if it is copied, and 1 more beyond the upper limit. Of equals the
    replicas that are not copied come first, then the emptiest brokers. Cost O(k * b * r^2).
    """
    cdef Py_ssize_t i, p, start, end, first, last, failed = 0
    cdef int32_t assigned, broker, best
    cdef int32_t[2] room
    cdef int64_t cost, best_cost
    cdef double fill, best_fill
    cdef bint old, best_old
    with nogil:
        for i in range(order.shape[0]):
            p = order[i]
            start, end, first, last = offsets[p], offsets[p + 1], original_offsets[p], original_offsets[p + 1]
            assigned, room[0], room[1] = 0, surplus[p, 0], surplus[p, 1]
            while assigned < replication_factor[p]:
                best, best_cost, best_fill, best_old = -1, 0, 0, False
                for broker in range(<int32_t>share.shape[0]):
                    if best >= 0 and price[broker] > best_cost:
                        continue
                    old = holds(original, first, last, broker)
                    if leaving[broker] or not (old or (share[broker] > 0 and count[broker] < cap[broker])):
                        continue
                    cost = price[broker] + (not old) + (share[broker] > 0 and load[broker] + weight[p] > upper[broker])
                    fill = fullness(load, share, broker, weight[p])
                    if (best < 0 or cost < best_cost or (cost == best_cost and (
                        old > best_old or (old == best_old and fill < best_fill)
                    ))) and is_open(chosen, rack, bounds, rule[p], assigned, broker, room):
                        best, best_cost, best_fill, best_old = broker, cost, fill, old
                if best < 0:
                    break
                use_room(room, rack_need(chosen, rack, bounds, rule[p], 0, assigned, -1, rack[best]))
                chosen[assigned] = <broker_t>best
                assigned += 1
                load[best], count[best] = load[best] + weight[p], count[best] + 1
            failed += assigned < replication_factor[p]
            write_slots(replica, start, end, original, first, last, chosen, assigned)
    return failed


cdef inline void write_slots(
    broker_t[::1] replica, Py_ssize_t start, Py_ssize_t end, const broker_t[::1] original, Py_ssize_t first,
    Py_ssize_t last, const broker_t[::1] chosen, Py_ssize_t count,
) noexcept nogil:
    """Write the chosen brokers into the slots: those with a replica before the plan stay, others follow in order."""
    cdef Py_ssize_t k, h, slot = start
    for k in range(start, end):
        replica[k] = -1
        if k - start < last - first and holds(chosen, 0, count, original[first + k - start]):
            replica[k] = original[first + k - start]
    for h in range(count):
        if holds(original, first, last, chosen[h]):
            continue
        while replica[slot] >= 0:
            slot += 1
        replica[slot] = chosen[h]


cdef inline void use_room(int32_t* room, int32_t need) noexcept nogil:
    """Count a replica that adds ``need`` to the spread: ``room`` is how many more need not add to its columns."""
    room[0] -= need < 2
    room[1] -= need < 1


cdef inline bint is_open(
    const broker_t[::1] chosen, const int32_t[::1] rack, const int32_t[:, :, ::1] bounds, int32_t rule,
    Py_ssize_t count, int32_t broker, const int32_t* room,
) noexcept nogil:
    """Whether the broker can follow those chosen: it is none of them, and adds to the spread or need not."""
    cdef int32_t need
    if holds(chosen, 0, count, broker):
        return False
    if room[0] > 0 and room[1] > 0:
        return True
    need = rack_need(chosen, rack, bounds, rule, 0, count, -1, rack[broker])
    return (need == 2 or room[0] > 0) and (need >= 1 or room[1] > 0)
