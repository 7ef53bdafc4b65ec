"""Reference kernels of ``_sweep.pyx``: failed brokers are a set, and every pair of a row is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from kframe.model.arrays import Int8, Int16, Int32, Int64, UInt8
from kframe.model.ids import NO_LEADER, NO_STATE

__all__ = ["count_failures", "count_pair_failures"]

_OFFLINE, _NEWLY_OFFLINE, _UNDER, _NEWLY_UNDER, _AT, _UNCLEAN, _NEEDED, _MOVED, _NEWLY_MAY_LOSE = range(9)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The leader after the failure, and the columns that the row adds to."""

    leader: int
    columns: frozenset[int]


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row in broker indexes, the settings of its topic and the registered brokers."""

    replicas: list[int]
    isr: list[int]
    leader: int
    min_isr: int
    has_state: bool
    unclean: bool
    registered: frozenset[int]

    @property
    def healthy(self) -> bool:
        """Whether the row is healthy by ``healthy_rows.pxd``."""
        in_sync = len(self.isr) == len(self.replicas) and set(self.isr) <= set(self.replicas) <= self.registered
        return in_sync and self.leader in self.replicas and self.min_isr > 0

    @property
    def kind(self) -> int:
        """The kind by ``healthy_rows.pxd``."""
        return {1: 0, 2: 3 - self.min_isr}.get(len(self.replicas), 3 + self.spare_members)

    @property
    def spare_members(self) -> int:
        """In-sync replicas beyond the required ones, at most 3."""
        return min(len(self.replicas) - self.min_isr, 3)

    @property
    def before(self) -> frozenset[int]:
        """The columns that the row adds to before any failure."""
        isr_offline = not self.registered & set(self.isr)
        needed = self.has_state and isr_offline and bool(self.registered & set(self.replicas))
        if self.leader not in self.registered:
            return frozenset({_OFFLINE, _UNDER, *([_NEEDED] if needed else [])})
        if len(self.isr) < self.min_isr:
            return frozenset({_UNDER})
        return frozenset({_AT} if len(self.isr) == self.min_isr else ())

    @property
    def named(self) -> list[int]:
        """The registered brokers that the row names: replicas, then other ISR members, then another leader."""
        return [
            broker for broker in dict.fromkeys([*self.replicas, *self.isr, self.leader]) if broker in self.registered
        ]

    def outcome(self, failed: set[int]) -> _Outcome:
        """The outcome when these registered brokers fail together."""
        leader, in_sync, unclean, needed = self._elect(self.registered - failed, failed)
        columns = {_OFFLINE: leader == NO_LEADER, _UNCLEAN: unclean, _NEEDED: needed}
        columns[_UNDER] = leader == NO_LEADER or in_sync < self.min_isr
        columns[_AT] = leader != NO_LEADER and in_sync == self.min_isr
        for now, newly in ((_OFFLINE, _NEWLY_OFFLINE), (_UNDER, _NEWLY_UNDER)):
            columns[newly] = columns[now] and now not in self.before
        columns[_NEWLY_MAY_LOSE] = unclean or (needed and _NEEDED not in self.before)
        columns[_MOVED] = NO_LEADER not in (self.leader, leader) and leader != self.leader
        return _Outcome(leader, frozenset(column for column, counts in columns.items() if counts))

    def _elect(self, live: frozenset[int], failed: set[int]) -> tuple[int, int, bool, bool]:
        """Leader, ISR size, whether the election is unclean, whether an unclean election is needed."""
        online = [broker for broker in self.replicas if broker in live]
        if self.leader in live:
            remaining = [broker for broker in self.isr if broker not in failed or broker not in self.replicas]
            return self.leader, max(len(remaining), min(1, len(self.isr))), False, False
        if not self.has_state:
            return (online or [NO_LEADER])[0], len(online), False, False
        members = [broker for broker in self.isr if broker in live]
        if clean := [broker for broker in online if broker in members]:
            return clean[0], len(members), False, False
        if members or not online:
            return NO_LEADER, 0, False, False
        return (online[0], 1, True, False) if self.unclean else (NO_LEADER, 0, False, True)


def count_failures(
    first: int, last: int, topic: Int32, leader: Int16, partition_epoch: Int32, slot_start: Int32,
    replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16, registered: UInt8, rack: Int32,
    rack_bit: Int64, deleting: UInt8, min_insync: Int32, unclean: UInt8, totals: Int32, brokers: Int32, racks: Int32,
    leads: Int32, broker_leads: Int32, rack_leads: Int32, successors: Int32, further_replicas: Int32,
    shared_racks: Int32,
) -> int:  # fmt: skip
    """Outcomes without a failure, and the differences for one broker and one rack. Healthy rows by their brokers."""
    counted = 0
    for row, partition in _partitions(
        first,
        last,
        topic,
        leader,
        partition_epoch,
        slot_start,
        replica_count,
        isr_count,
        replica,
        isr,
        registered,
        min_insync,
        unclean,
    ):
        counted += not deleting[topic[row]]
        if partition.healthy and not deleting[topic[row]]:
            _count_healthy(partition, rack, racks, rack_leads, successors, further_replicas, shared_racks)
            continue
        if partition.leader in partition.registered:
            leads[0, partition.leader] += 1
        if deleting[topic[row]]:
            if partition.leader in partition.registered:
                leads[1, partition.leader] += 1
            continue
        none = partition.outcome(set())
        _count(totals, 0, partition.before, frozenset())
        _count(totals, 1, none.columns, frozenset())
        _lead(leads, 1, none.leader, NO_LEADER)
        for broker in partition.named:
            outcome = partition.outcome({broker})
            _count(brokers, broker, outcome.columns, none.columns)
            _lead(broker_leads, broker, outcome.leader, none.leader)
        for failed in _racks_of(partition, rack):
            outcome = partition.outcome({broker for broker in partition.registered if rack[broker] == failed})
            _count(racks, failed, outcome.columns, none.columns)
            _lead(rack_leads, failed, outcome.leader, none.leader)
    return counted


def _count_healthy(
    partition: FailedRow,
    rack: Int32,
    racks: Int32,
    rack_leads: Int32,
    successors: Int32,
    further_replicas: Int32,
    shared_racks: Int32,
) -> None:
    """Count by leader, successor and further replicas. Count racks by the difference to the sum of their brokers."""
    successor, *others = [broker for broker in partition.replicas if broker != partition.leader] or [partition.leader]
    successors[partition.kind, partition.leader, successor] += 1
    for broker in others:
        further_replicas[partition.kind, broker] += 1
    none = partition.outcome(set())
    for failed in _racks_of(partition, rack):
        inside = [broker for broker in partition.replicas if rack[broker] == failed]
        outcome = partition.outcome(set(inside))
        if len(inside) == 2:
            shared_racks[partition.kind, partition.leader if partition.leader in inside else inside[0]] += 1
        else:
            _count(racks, failed, outcome.columns, none.columns)
            for broker in inside:
                _count(racks, failed, none.columns, partition.outcome({broker}).columns)
        if {partition.leader, successor} <= set(inside) and partition.leader != successor:
            _lead(rack_leads, failed, outcome.leader, NO_LEADER)


def _racks_of(partition: FailedRow, rack: Int32) -> list[int]:
    return list(dict.fromkeys(int(rack[broker]) for broker in partition.named if rack[broker] >= 0))


def count_pair_failures(
    first: int,
    last: int,
    topic: Int32,
    leader: Int16,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    registered: UInt8,
    rack: Int32,
    rack_bit: Int64,
    deleting: UInt8,
    min_insync: Int32,
    unclean: UInt8,
    scratch: Int32,
    pairs: Int32,
    lead_key: Int64,
    lead_change: Int8,
    third_key: Int64,
    further_pairs: Int32,
) -> int:
    """Outcomes of two failures beyond the sum of each. Healthy rows by their brokers."""
    filled, brokers = 0, len(registered)
    order = {pair: number for number, pair in enumerate(combinations(range(brokers), 2))}
    third_key[: last - first] = -1
    for row, partition in _partitions(
        first,
        last,
        topic,
        leader,
        partition_epoch,
        slot_start,
        replica_count,
        isr_count,
        replica,
        isr,
        registered,
        min_insync,
        unclean,
    ):
        if deleting[topic[row]]:
            continue
        if partition.healthy:
            third_key[row - first] = _third_of(partition, brokers, further_pairs)
            continue
        none, alone = partition.outcome(set()), {broker: partition.outcome({broker}) for broker in partition.named}
        for left, right in combinations(partition.named, 2):
            pair, both = order[min(left, right), max(left, right)], partition.outcome({left, right})
            _count(pairs, pair, both.columns, alone[left].columns)
            _count(pairs, pair, none.columns, alone[right].columns)
            plus, minus = [both.leader, none.leader], [alone[left].leader, alone[right].leader]
            if sorted(plus) == sorted(minus):
                continue
            for outcome, change in [*((outcome, 1) for outcome in plus), *((outcome, -1) for outcome in minus)]:
                if outcome >= 0:
                    lead_key[filled], lead_change[filled] = pair * brokers + outcome, change
                    filled += 1
    return filled


def _third_of(partition: FailedRow, brokers: int, further_pairs: Int32) -> int:
    """The key of the leader and its two successors, -1 below RF 3. Counts the other pairs."""
    if len(partition.replicas) < 3:
        return -1
    successor, third, *others = [broker for broker in partition.replicas if broker != partition.leader]
    if partition.spare_members < 3:
        for left, right in [*product((partition.leader, successor, third), others), *combinations(others, 2)]:
            further_pairs[partition.spare_members, left, right] += 1
    return ((partition.spare_members * brokers + partition.leader) * brokers + successor) * brokers + third


def _partitions(
    first: int,
    last: int,
    topic: Int32,
    leader: Int16,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    registered: UInt8,
    min_insync: Int32,
    unclean: UInt8,
) -> Iterator[tuple[int, FailedRow]]:
    up = frozenset(broker for broker, is_registered in enumerate(registered.tolist()) if is_registered)
    for row in range(first, last):
        topic_index = int(topic[row])
        if topic_index < 0:
            continue
        start, has_state = int(slot_start[row]), int(partition_epoch[row]) != NO_STATE
        replicas = replica[start : start + int(replica_count[row])].tolist()
        members = isr[start : start + int(isr_count[row])].tolist() if has_state else []
        min_isr = min(int(min_insync[topic_index]), len(replicas))
        yield (
            row,
            FailedRow(
                replicas,
                members,
                int(leader[row]) if has_state else NO_LEADER,
                min_isr,
                has_state,
                bool(unclean[topic_index]),
                up,
            ),
        )


def _count(counts: Int32, line: int, plus: frozenset[int], minus: frozenset[int]) -> None:
    for column in plus - minus:
        counts[line, column] += 1
    for column in minus - plus:
        counts[line, column] -= 1


def _lead(leads: Int32, line: int, plus: int, minus: int) -> None:
    if plus != minus:
        for broker, change in ((plus, 1), (minus, -1)):
            if broker >= 0:
                leads[line, broker] += change
