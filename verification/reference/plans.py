"""Reference kernels of ``_plans.pyx``."""

from __future__ import annotations

import math

from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8

__all__ = [
    "fill_vacancies",
    "mark_leaders",
    "reorder_leaders",
    "shift_leaders",
    "span_racks",
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
    rack_targets: Int32,
    spread: bool,
    share: Float64,
    weight: Int64,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int:
    """First the leaving brokers, then the worst replicas of a list too long, then of racks that are crowded."""
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
            racks = _racks(replica, rack, slots)
            shared_only = len(retained) <= replication_factor[row]
            reachable = racks | {number for number in range(len(rack_targets)) if rack_targets[number]}
            factor = int(replication_factor[row])
            reached = factor - len(retained) + len(racks) >= min(factor, len(reachable))
            if shared_only and (not spread or reached):
                break
            candidates = [slot for slot in retained if not shared_only or _shares_rack(replica, rack, slots, slot)]
            if not candidates:
                break

            def urgency(slot: int, first: int = slots[0], slots: range = slots) -> tuple[int, float, int]:
                tier = 4 * (not in_sync[slot]) + 2 * _shares_rack(replica, rack, slots, slot) + (slot > first)
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
    share: Float64,
    cap: Int64,
    weight: Int64,
    replica: Int16,
    load: Int64,
    count: Int64,
) -> int:
    """The emptiest broker of a new rack, or else of any."""
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
            racks = _racks(replica, rack, slots)
            broker = min(
                targets,
                key=lambda target: (
                    int(rack[target]) in racks,
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
                and _may_move(replica, rack, slots, slot, target)
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


def span_racks(offsets: Int32, values: Int32, rack: Int32, spanned: Int32) -> int:
    """The size of the set of racks of each list."""
    for row in range(len(spanned)):
        spanned[row] = len(set(rack[values[offsets[row] : offsets[row + 1]]].tolist()))
    return int(max(spanned, default=0))


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


def _racks(replica: Int16, rack: Int32, slots: range, skipped: int = -1) -> set[int]:
    return {int(rack[replica[slot]]) for slot in _occupied(replica, slots) if slot != skipped}


def _shares_rack(replica: Int16, rack: Int32, slots: range, slot: int) -> bool:
    return int(rack[replica[slot]]) in _racks(replica, rack, slots, slot)


def _fullness(load: Int64, share: Float64, broker: int) -> float:
    return float(load[broker] / share[broker]) if share[broker] > 0 else math.inf


def _may_move(replica: Int16, rack: Int32, slots: range, slot: int, target: int) -> bool:
    """Whether no slot has the target, and the racks are as many afterwards."""
    if any(replica[other] == target for other in slots):
        return False
    others = _racks(replica, rack, slots, slot)
    return len(others | {int(rack[target])}) >= len(others | {int(rack[replica[slot]])})


def _is_moved(offsets: Int32, original: Int16, row: int, leader: int) -> bool:
    return bool(original[_slots(offsets, row)].tolist()[:1] != [leader])
