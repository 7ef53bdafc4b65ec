"""Reference kernels of ``_plan_cycles.pyx``."""

from __future__ import annotations

import math

import numpy as np

from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8
from verification.reference.plans import _may_move, _slots, _spread

__all__ = ["assign_at_prices", "collect_transfers", "load_at_prices", "rate_transfers"]


def rate_transfers(
    order: Int32,
    offsets: Int32,
    replica: Int16,
    original_offsets: Int32,
    original: Int16,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    share: Float64,
    costlier_targets: Int32,
    rates: UInt8,
) -> int:
    """Every slot with every broker that could take its replica: first the brokers that had one before the plan."""
    lowered = 0
    for row in order.tolist():
        before = original[_slots(original_offsets, row)].tolist()
        for slot in _slots(offsets, row):
            source = int(replica[slot])
            if source < 0 or share[source] <= 0:
                continue
            for target in [*before, *range(len(share))]:
                rate = _rate(before, source, target)
                slots = _slots(offsets, row)
                valid = share[target] > 0 and _may_move(replica, rack, bounds[rule[row]], slots, slot, target)
                if valid and rates[source, target] > rate:
                    first = 2 * int(rack[source] != rack[target])
                    lower = [rates[source, target] > bound >= rate for bound in (1, 2)]
                    costlier_targets[source, first : first + 2] -= lower
                    rates[source, target] = rate
                    lowered += 1
    return lowered


def collect_transfers(
    slots: Int32,
    owner: Int32,
    offsets: Int32,
    replica: Int16,
    original_offsets: Int32,
    original: Int16,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    weight: Int64,
    used: UInt8,
    source: int,
    target: int,
    rate: int,
    weight_limit: int,
    chosen: Int32,
) -> int:
    """The slots one after another, each if it is valid and its weight fits into the rest of ``weight_limit``."""
    count = 0
    for index, slot in enumerate(slots.tolist()):
        row = int(owner[slot])
        before = original[_slots(original_offsets, row)].tolist()
        if replica[slot] != source or used[row] or weight[row] > weight_limit or weight_limit <= 0:
            continue
        if _rate(before, source, target) != rate or not _may_move(
            replica, rack, bounds[rule[row]], _slots(offsets, row), slot, target
        ):
            continue
        chosen[count] = index
        count += 1
        weight_limit -= int(weight[row])
    return count


def load_at_prices(
    order: Int32,
    original_offsets: Int32,
    original: Int16,
    replication_factor: Int32,
    surplus: Int32,
    leaving: UInt8,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    weight: Int64,
    price: Int64,
    targets: Int32,
    chosen: Int16,
    load: Int64,
) -> int:
    """The cheapest broker that leaves enough replicas for the spread; of equals a broker that had a replica."""
    copied = 0
    for row in order.tolist():
        before = original[_slots(original_offsets, row)].tolist()
        costs = {broker: int(price[broker]) for broker in before if not leaving[broker]}
        costs |= {broker: int(price[broker]) + 1 for broker in targets.tolist() if broker not in before}
        chosen_brokers = list[int]()
        for _ in range(int(replication_factor[row])):
            candidates = [
                broker for broker in costs if _is_open([*chosen_brokers, broker], rack, bounds[rule[row]], surplus[row])
            ]
            if not candidates:
                return -1
            broker = min(candidates, key=costs.__getitem__)
            chosen_brokers.append(broker)
            del costs[broker]
            load[broker] += weight[row]
            copied += 0 if broker in before else int(weight[row])
    return copied


def assign_at_prices(
    order: Int32,
    offsets: Int32,
    original_offsets: Int32,
    original: Int16,
    replication_factor: Int32,
    surplus: Int32,
    leaving: UInt8,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    share: Float64,
    cap: Int64,
    weight: Int64,
    upper: Int64,
    price: Int64,
    chosen: Int16,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int:
    """The broker that is cheapest now, and leaves enough replicas for the required spread."""
    failed = 0
    for row in order.tolist():
        size, before = int(weight[row]), original[_slots(original_offsets, row)].tolist()
        assigned = list[int]()
        while len(assigned) < replication_factor[row]:
            keys = {
                broker: (
                    int(price[broker])
                    + (broker not in before)
                    + bool(share[broker] > 0 and load[broker] + size > upper[broker]),
                    broker not in before,
                    float((load[broker] + size) / share[broker]) if share[broker] > 0 else math.inf,
                )
                for broker in range(len(share))
                if not leaving[broker]
                and broker not in assigned
                and _is_open([*assigned, broker], rack, bounds[rule[row]], surplus[row])
                and (broker in before or (share[broker] > 0 and count[broker] < cap[broker]))
            }
            if not keys:
                break
            broker = min(keys, key=keys.__getitem__)
            assigned.append(broker)
            load[broker] += size
            count[broker] += 1
        failed += len(assigned) < replication_factor[row]
        slots = _slots(offsets, row)
        retained = [broker if broker in assigned else -1 for broker in before[: len(slots)]]
        retained += [-1] * (len(slots) - len(retained))
        new = [broker for broker in assigned if broker not in before]
        replica[slots] = [new.pop(0) if broker < 0 and new else broker for broker in retained]
    return failed


def _is_open(brokers: list[int], rack: Int32, bounds: Int32, surplus: Int32) -> bool:
    """Whether no more of the brokers than the surplus add nothing to either column of the spread."""
    return bool((len(brokers) - _spread(np.array(brokers, np.int32), rack, bounds) <= surplus).all())


def _rate(before: list[int], source: int, target: int) -> int:
    """What a transfer costs, plus 1."""
    return 1 + (source in before) - (target in before)
