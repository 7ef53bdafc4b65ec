"""Reference kernels of ``_plans.pyx``."""

from __future__ import annotations

import math

import numpy as np

from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8

__all__ = [
    "fill_vacancies",
    "mark_leaders",
    "measure_spread",
    "reorder_leaders",
    "shift_leaders",
    "transfer_replicas",
    "vacate_replicas",
]


def vacate_replicas(
    order: Int32,
    offsets: Int32,
    replication_factor: Int32,
    in_sync: UInt8,
    leaving: UInt8,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    demanded: Int32,
    share: Float64,
    weight: Int64,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int:
    """First the leaving brokers, then the worst replicas of a list too long, then of racks that have too many."""
    vacated = 0

    def vacate(slot: int, row: int) -> None:
        load[replica[slot]] -= weight[row]
        count[replica[slot]] -= 1
        replica[slot] = -1

    for row in order.tolist():
        slots = range(int(offsets[row]), int(offsets[row + 1]))
        for slot in [slot for slot in _occupied(replica, slots) if leaving[replica[slot]]]:
            vacate(slot, row)
            vacated += 1
        while True:
            retained = _occupied(replica, slots)
            needs = {slot: _need(replica, rack, bounds[rule[row]], slots, slot) for slot in retained}
            lacking = int(replication_factor[row]) - len(retained)
            missing = demanded[row] - lacking - _spread(replica[retained], rack, bounds[rule[row]])
            if lacking >= 0 and not (missing > 0).any():
                break
            need_max = 2 if lacking < 0 else int(missing[1] <= 0)
            candidates = [slot for slot in retained if needs[slot] <= need_max]
            if not candidates:
                break

            def urgency(slot: int, first: int = slots[0], needs: dict[int, int] = needs) -> tuple[int, float, int]:
                tier = 8 * (not in_sync[slot]) + 2 * (2 - needs[slot]) + (slot > first)
                tier = 0 if slot == first and in_sync[slot] else tier
                return tier, _fullness(load, share, int(replica[slot])), slot

            vacate(max(candidates, key=urgency), row)
            vacated += 1
    return vacated


def fill_vacancies(
    order: Int32,
    offsets: Int32,
    replication_factor: Int32,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    share: Float64,
    cap: Int64,
    weight: Int64,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int:
    """The emptiest broker of the racks where a replica adds most to the spread."""
    missing = 0
    for row in order.tolist():
        slots = range(int(offsets[row]), int(offsets[row + 1]))
        lacking = int(replication_factor[row]) - len(_occupied(replica, slots))
        for slot in slots:
            brokers = [int(replica[other]) for other in slots]
            targets = [
                broker
                for broker in range(len(share))
                if share[broker] > 0 and count[broker] < cap[broker] and broker not in brokers
            ]
            if lacking <= 0 or (replica[slot] < 0 and not targets):
                break
            if replica[slot] >= 0:
                continue
            broker = min(
                targets,
                key=lambda target: (
                    -_need(replica, rack, bounds[rule[row]], slots, slot, int(rack[target])),
                    (load[target] + weight[row]) / share[target],
                    target,
                ),
            )
            replica[slot] = broker
            load[broker] += weight[row]
            count[broker] += 1
            lacking -= 1
        missing += max(lacking, 0)
    return missing


def transfer_replicas(
    order: Int32,
    offsets: Int32,
    rack: Int32,
    rule: Int32,
    bounds: Int32,
    share: Float64,
    cap: Int64,
    weight: Int64,
    lower: Int64,
    upper: Int64,
    over_only: bool,
    under_only: bool,
    within_limits: bool,
    first_slots: bool,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int:
    """From the last slot on, the first replica that any broker can take moves to the broker with most room."""
    moves = 0
    for row in order.tolist():
        size = int(weight[row])
        slots = range(int(offsets[row]), int(offsets[row + 1]))
        for slot in reversed(slots if first_slots else slots[1:]):
            source = int(replica[slot])
            if source < 0 or share[source] <= 0 or load[source] - size < lower[source]:
                continue
            if over_only and (load[source] <= upper[source] or (within_limits and load[source] - size < upper[source])):
                continue
            targets = [
                target
                for target in range(len(share))
                if share[target] > 0
                and count[target] < cap[target]
                and load[target] + size <= upper[target]
                and not (under_only and load[target] >= lower[target])
                and not (under_only and within_limits and load[target] + size > lower[target])
                and _may_move(replica, rack, bounds[rule[row]], slots, slot, target)
            ]
            if not targets:
                continue
            target = max(targets, key=lambda target: (lower[target] + upper[target] - 2 * load[target], -target))
            replica[slot] = target
            for broker, change in ((source, -1), (target, 1)):
                load[broker] += change * size
                count[broker] += change
            moves += 1
            break
    return moves


def measure_spread(offsets: Int32, values: Int32, rack: Int32, rule: Int32, bounds: Int32, spread: Int32) -> int:
    """The sum of the replicas of each rack, of at most as many as its bounds."""
    for row in range(len(spread)):
        spread[row] = _spread(values[_slots(offsets, row)], rack, bounds[rule[row]])
    return int(spread[:, 1].max(initial=0))


def mark_leaders(
    order: Int32, offsets: Int32, replica: Int16, original_offsets: Int32, original: Int16, share: Float64, arcs: UInt8
) -> int:
    """Every leader with every follower of its partition."""
    marks = 0
    for row in order.tolist():
        leader, *followers = replica[_slots(offsets, row)].tolist() or [-1]
        mark = 1 + _is_moved(original_offsets, original, row, leader)
        for target in followers:
            if share[target] > 0 and arcs[leader, target] < mark:
                arcs[leader, target] = mark
                marks += 1
    return marks


def shift_leaders(
    order: Int32,
    offsets: Int32,
    original_offsets: Int32,
    original: Int16,
    path: Int32,
    moved_only: UInt8,
    max_shifts: int,
    cursors: Int32,
    rows: Int32,
    replica: Int16,
) -> int:
    """For each unit and step the next partition that can take it and that the unit does not use yet."""
    steps = list(zip(path[:-1].tolist(), path[1:].tolist(), strict=True))
    cursors[:] = 0
    shifted = 0
    while shifted < max_shifts:
        used: dict[int, int] = {}
        for step, (leader, target) in enumerate(steps):
            while cursors[step] < len(order) and step not in used.values():
                row = int(order[cursors[step]])
                moved = _is_moved(original_offsets, original, row, leader)
                lists = replica[_slots(offsets, row)].tolist()
                can_shift = lists[:1] == [leader] and target in lists[1:] and (moved or not moved_only[step])
                if row not in used and can_shift:
                    used[row] = step
                rows[step] = row
                cursors[step] += 1
            if step not in used.values():
                return shifted
        for row, step in used.items():
            leader, target = steps[step]
            slots = _slots(offsets, row)
            follower = replica[slots].tolist().index(target)
            replica[slots[0]], replica[slots[follower]] = target, leader
        shifted += 1
    return shifted


def reorder_leaders(
    order: Int32,
    offsets: Int32,
    share: Float64,
    lower: Int64,
    upper: Int64,
    over_only: bool,
    under_only: bool,
    replica: Int16,
    led: Int64,
) -> int:
    """The first replica changes with the one whose broker has most room, if both brokers stay within their limits."""
    changes = 0
    for row in order.tolist():
        slots = _slots(offsets, row)
        if not slots or replica[slots[0]] < 0:
            continue
        leader = int(replica[slots[0]])
        if led[leader] <= (upper if over_only else lower)[leader]:
            continue
        targets = [
            slot
            for slot in slots[1:]
            if replica[slot] >= 0
            and share[replica[slot]] > 0
            and led[replica[slot]] < (lower if under_only else upper)[replica[slot]]
        ]
        if targets:
            room = {slot: int((lower + upper - 2 * led)[replica[slot]]) for slot in targets}
            best = max(targets, key=lambda slot: (room[slot], -slot))
            led[leader] -= 1
            led[replica[best]] += 1
            replica[slots[0]], replica[best] = int(replica[best]), leader
            changes += 1
    return changes


def _slots(offsets: Int32, row: int) -> range:
    return range(int(offsets[row]), int(offsets[row + 1]))


def _occupied(replica: Int16, slots: range) -> list[int]:
    return [slot for slot in slots if replica[slot] >= 0]


def _spread(brokers: Int16 | Int32, rack: Int32, bounds: Int32) -> Int32:
    """(2,) the sum over racks of the brokers, of a rack at most as many as its bounds (racks, 2)."""
    counts = np.bincount(rack[brokers], minlength=len(bounds))
    return np.asarray(np.minimum(counts[:, None], bounds).sum(axis=0), np.int32)


def _need(replica: Int16, rack: Int32, bounds: Int32, slots: range, slot: int, target_rack: int = -1) -> int:
    """What a replica in a rack, by default that of the slot, adds to the spread of the other slots."""
    number = int(rack[replica[slot]]) if target_rack < 0 else target_rack
    others = sum(int(rack[replica[other]]) == number for other in _occupied(replica, slots) if other != slot)
    return int((others < bounds[number]).sum())


def _fullness(load: Int64, share: Float64, broker: int) -> float:
    return float(load[broker] / share[broker]) if share[broker] > 0 else math.inf


def _may_move(replica: Int16, rack: Int32, bounds: Int32, slots: range, slot: int, target: int) -> bool:
    """Whether no slot has the target, and neither column of the spread is less afterwards."""
    if any(replica[other] == target for other in slots):
        return False
    others = [int(replica[other]) for other in _occupied(replica, slots) if other != slot]
    before, after = (
        _spread(np.array([*others, broker], np.int32), rack, bounds) for broker in (int(replica[slot]), target)
    )
    return bool((after >= before).all())


def _is_moved(offsets: Int32, original: Int16, row: int, leader: int) -> bool:
    return bool(original[_slots(offsets, row)].tolist()[:1] != [leader])
