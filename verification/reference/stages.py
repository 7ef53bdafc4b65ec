"""Reference kernels of ``_stages.pyx``: pending reassignments are lists, and a stage is filled by its rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8
from verification.reference.sweep import FailedRow

__all__ = ["count_harmed", "schedule_stages"]

_LEVELS, _ALONE = 32, 3
#: Columns of the sweep: offline, under min ISR, unclean election.
_HARM = (0, 2, 5)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A reassignment in broker indexes."""

    row: int
    targets: list[int]
    removed: list[int]
    source: int
    size: int

    @property
    def brokers(self) -> list[int]:
        """The source and the targets; none without a copy."""
        return [self.source, *self.targets] if self.targets else []

    def loads(self) -> dict[tuple[int, int], int]:
        """What it adds by line of ``load`` and broker."""
        count = len(self.targets)
        if not count:
            return {}
        loads = {(0, target): 1 for target in self.targets} | {(2, target): self.size for target in self.targets}
        return loads | {(1, self.source): count, (3, self.source): count * self.size}


@dataclass(slots=True)
class _StageDraft:
    """The copies of a stage."""

    limits: list[int]
    copies: list[_Copy] = field(default_factory=list)
    load: dict[tuple[int, int], int] = field(default_factory=dict)

    def fits(self, copy: _Copy) -> bool:
        """Whether no limit is exceeded with the copy."""
        copies = [*self.copies, copy]
        replicas = sum(len(other.targets) for other in copies)
        size = sum(len(other.targets) * other.size for other in copies)
        if copy.targets and (replicas > self.limits[2] or size > self.limits[3]):
            return False
        return all(self.load.get(key, 0) + amount <= self.limits[key[0] // 2] for key, amount in copy.loads().items())

    def add(self, copy: _Copy) -> None:
        """Add a copy."""
        self.copies.append(copy)
        for key, amount in copy.loads().items():
            self.load[key] = self.load.get(key, 0) + amount


def schedule_stages(
    group_offsets: Int32,
    rank: UInt8,
    add_offsets: Int32,
    adding: Int32,
    remove_offsets: Int32,
    removing: Int32,
    source: Int32,
    size: Int64,
    limits: Int64,
    members: Int32,
    heads: Int32,
    queue: Int32,
    scratch: Int32,
    starts: Int32,
    staged: Int32,
    total: Int64,
    load: Int64,
    pending: Int64,
    pressure: Float64,
    free: Int64,
    stage: Int32,
) -> int:
    """Every group is sorted again for each stage."""
    copies = [
        _Copy(
            row,
            adding[add_offsets[row] : add_offsets[row + 1]].tolist(),
            removing[remove_offsets[row] : remove_offsets[row + 1]].tolist(),
            int(source[row]),
            int(size[row]),
        )
        for row in range(len(size))
    ]
    groups = [
        [copies[row] for row in members[heads[group] : group_offsets[group + 1]].tolist()] for group in range(len(rank))
    ]
    remaining = queue.tolist()
    number = 0
    while True:
        remaining = [group for group in remaining if groups[group]]
        pressures = _pressures(pending, limits)
        ordered = sorted(remaining, key=lambda group: _sort_key(groups[group][0], int(rank[group]), pressures))
        draft = _fill(ordered, groups, rank, limits.tolist(), free)
        for copy in draft.copies:
            stage[copy.row] = number
            for (line, broker), amount in copy.loads().items():
                pending[line, broker] -= amount
        for copy in draft.copies:
            for broker in copy.removed:
                free[broker] += copy.size
        number += bool(draft.copies)
        if not draft.copies and not _promote(ordered, groups, free):
            return number


def _fill(ordered: list[int], groups: list[list[_Copy]], rank: UInt8, limits: list[int], free: Int64) -> _StageDraft:
    """A stage; its copies leave their groups and occupy disks."""
    draft = _StageDraft(limits)
    for group in ordered:
        while groups[group] and _fits_disks(groups[group][0], free):
            copy, is_alone = groups[group][0], rank[group] == _ALONE
            if draft.copies if is_alone else not draft.fits(copy):
                break
            draft.add(groups[group].pop(0))
            for target in copy.targets:
                free[target] -= copy.size
            if is_alone:
                return draft
    return draft


def _promote(ordered: list[int], groups: list[list[_Copy]], free: Int64) -> bool:
    """Exchange the first copy that fits the disks with the head of its group."""
    for group in ordered:
        for position, copy in enumerate(groups[group]):
            if _fits_disks(copy, free):
                groups[group][position], groups[group][0] = groups[group][0], copy
                return True
    return False


def _fits_disks(copy: _Copy, free: Int64) -> bool:
    return all(copy.size <= free[target] for target in copy.targets)


def _pressures(pending: Int64, limits: Int64) -> list[float]:
    """The stages that each broker needs at least."""
    lines, (moves, size) = pending.tolist(), limits[:2].tolist()
    return [
        max(max(lines[0][broker], lines[1][broker]) / moves, max(lines[2][broker], lines[3][broker]) / size)
        for broker in range(pending.shape[1])
    ]


def _sort_key(copy: _Copy, rank: int, pressures: list[float]) -> tuple[int, int]:
    largest = max(pressures, default=0.0)
    group_pressure = max((pressures[broker] for broker in copy.brokers), default=0.0)
    level = int(group_pressure / largest * _LEVELS) if largest > 0 else 0
    return rank, -min(level, _LEVELS - 1)


def count_harmed(
    group: Int32,
    leader: Int16,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    min_isr: Int32,
    new_leader: Int16,
    new_slot_start: Int32,
    new_replica_count: Int16,
    new_isr_count: Int16,
    new_replica: Int16,
    new_isr: Int16,
    new_min_isr: Int32,
    unclean: UInt8,
    registered: UInt8,
    rack: Int32,
    harm: Int32,
) -> int:
    """Sets of columns before and after, for each broker that either names."""
    up = frozenset(broker for broker, is_registered in enumerate(registered.tolist()) if is_registered)
    harmed = 0
    for number in range(len(group)):
        before, after = (
            FailedRow(
                replicas[start[number] : start[number] + count[number]].tolist(),
                in_sync[start[number] : start[number] + isr_count_[number]].tolist(),
                int(leaders[number]),
                int(min_isrs[number]),
                True,
                bool(unclean[number]),
                up,
            )
            for leaders, start, count, isr_count_, replicas, in_sync, min_isrs in (
                (leader, slot_start, replica_count, isr_count, replica, isr, min_isr),
                (new_leader, new_slot_start, new_replica_count, new_isr_count, new_replica, new_isr, new_min_isr),
            )
        )
        baseline = _harm(before, after, set())
        _count(harm, int(group[number]), len(registered), baseline)
        harmed += bool(baseline)
        for broker in sorted(up & {*before.replicas, *after.replicas}):
            _count(harm, int(group[number]), broker, _harm(before, after, {broker}) - baseline)
    return harmed


def _harm(before: FailedRow, after: FailedRow, failed: set[int]) -> frozenset[int]:
    return (after.outcome(failed).columns - before.outcome(failed).columns) & frozenset(_HARM)


def _count(harm: Int32, group: int, line: int, columns: frozenset[int]) -> None:
    for position, column in enumerate(_HARM):
        harm[group, line, position] += column in columns
