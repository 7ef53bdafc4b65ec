"""Reference twins of ``_sweep.pyx``: failed brokers are a set, and every pair of a row is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from kframe.model.columns import Int8, Int16, Int32, Int64, UInt8
from kframe.model.ids import NO_LEADER, NO_STATE

__all__ = ["count_failures", "count_pair_failures"]

_OFFLINE, _NEWLY_OFFLINE, _UNDER, _NEWLY_UNDER, _AT, _UNCLEAN, _NEEDED, _MOVED = range(8)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Who leads a row in the end, and the columns that it counts in."""

    leader: int
    columns: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row, in broker indexes, with what its topic asks for and who is registered."""

    replicas: list[int]
    isr: list[int]
    leader: int
    min_isr: int
    has_state: bool
    unclean: bool
    registered: frozenset[int]

    @property
    def healthy(self) -> bool:
        """Whether the row is as ``healthy.pxd`` says."""
        in_sync = len(self.isr) == len(self.replicas) and set(self.isr) <= set(self.replicas) <= self.registered
        return in_sync and self.leader in self.replicas and self.min_isr > 0

    @property
    def kind(self) -> int:
        """By ``healthy.pxd``; ``spare`` is what a row of three replicas and more has beyond the first such kind."""
        return {1: 0, 2: 3 - self.min_isr}.get(len(self.replicas), 3 + self.spare)

    @property
    def spare(self) -> int:
        """How many more are in sync than must be, where all are; at most 3."""
        return min(len(self.replicas) - self.min_isr, 3)

    @property
    def before(self) -> frozenset[int]:
        """The columns that the row counts in as it stands."""
        dead = not self.registered & set(self.isr)
        needed = self.has_state and dead and bool(self.registered & set(self.replicas))
        if self.leader not in self.registered:
            return frozenset({_OFFLINE, _UNDER, *([_NEEDED] if needed else [])})
        if len(self.isr) < self.min_isr:
            return frozenset({_UNDER})
        return frozenset({_AT} if len(self.isr) == self.min_isr else ())

    @property
    def named(self) -> list[int]:
        """The registered brokers that the row names: replicas, then other ISR members, then another leader."""
        return [one for one in dict.fromkeys([*self.replicas, *self.isr, self.leader]) if one in self.registered]

    def outcome(self, failed: set[int]) -> _Outcome:
        """What becomes of the row when these registered brokers fail together."""
        leader, in_sync, unclean, needed = self._elect(self.registered - failed, failed)
        columns = {_OFFLINE: leader == NO_LEADER, _UNCLEAN: unclean, _NEEDED: needed}
        columns[_UNDER] = leader == NO_LEADER or in_sync < self.min_isr
        columns[_AT] = leader != NO_LEADER and in_sync == self.min_isr
        for now, newly in ((_OFFLINE, _NEWLY_OFFLINE), (_UNDER, _NEWLY_UNDER)):
            columns[newly] = columns[now] and now not in self.before
        columns[_MOVED] = NO_LEADER not in (self.leader, leader) and leader != self.leader
        return _Outcome(leader, frozenset(column for column, counts in columns.items() if counts))

    def _elect(self, live: frozenset[int], failed: set[int]) -> tuple[int, int, bool, bool]:
        """Leader, ISR size, whether it was elected uncleanly, whether it would have to be."""
        online = [one for one in self.replicas if one in live]
        if self.leader in live:
            left = [one for one in self.isr if one not in failed or one not in self.replicas]
            return self.leader, max(len(left), min(1, len(self.isr))), False, False
        if not self.has_state:
            return (online or [NO_LEADER])[0], len(online), False, False
        members = [one for one in self.isr if one in live]
        if clean := [one for one in online if one in members]:
            return clean[0], len(members), False, False
        if members or not online:
            return NO_LEADER, 0, False, False
        return (online[0], 1, True, False) if self.unclean else (NO_LEADER, 0, False, True)


def count_failures(
    first: int, last: int, topic: Int32, leader: Int16, partition_epoch: Int32, slot_start: Int32,
    replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16, registered: UInt8, rack: Int32,
    rack_bit: Int64, deleting: UInt8, min_insync: Int32, unclean: UInt8, totals: Int32, brokers: Int32, racks: Int32,
    leads: Int32, broker_leads: Int32, rack_leads: Int32, successors: Int32, further: Int32, shared_racks: Int32,
) -> int:  # fmt: skip
    """Fates of each row when nobody, one broker or one rack fails, and how the latter differ from the first; healthy
    rows by whom they name. ``rack_bit`` is the kernel's."""
    counted = 0
    for number, one in _rows(first, last, topic, leader, partition_epoch, slot_start, replica_count, isr_count,
                             replica, isr, registered, min_insync, unclean):  # fmt: skip
        counted += not deleting[topic[number]]
        if one.healthy and not deleting[topic[number]]:
            _count_healthy(one, rack, racks, rack_leads, successors, further, shared_racks)
            continue
        if one.leader in one.registered:
            leads[0, one.leader] += 1
        if deleting[topic[number]]:
            if one.leader in one.registered:
                leads[1, one.leader] += 1
            continue
        none = one.outcome(set())
        _count(totals, 0, one.before, frozenset())
        _count(totals, 1, none.columns, frozenset())
        _lead(leads, 1, none.leader, NO_LEADER)
        for broker in one.named:
            found = one.outcome({broker})
            _count(brokers, broker, found.columns, none.columns)
            _lead(broker_leads, broker, found.leader, none.leader)
        for failed in _racks_of(one, rack):
            found = one.outcome({broker for broker in one.registered if rack[broker] == failed})
            _count(racks, failed, found.columns, none.columns)
            _lead(rack_leads, failed, found.leader, none.leader)
    return counted


def _count_healthy(
    one: _Row, rack: Int32, racks: Int32, rack_leads: Int32, successors: Int32, further: Int32, shared_racks: Int32
) -> None:
    """Count by leader, follower and further replicas, and racks by what they add to the sum of their brokers."""
    follower, *others = [broker for broker in one.replicas if broker != one.leader] or [one.leader]
    successors[one.kind, one.leader, follower] += 1
    for broker in others:
        further[one.kind, broker] += 1
    none = one.outcome(set())
    for failed in _racks_of(one, rack):
        inside = [broker for broker in one.replicas if rack[broker] == failed]
        found = one.outcome(set(inside))
        if len(inside) == 2:
            shared_racks[one.kind, one.leader if one.leader in inside else inside[0]] += 1
        else:
            _count(racks, failed, found.columns, none.columns)
            for broker in inside:
                _count(racks, failed, none.columns, one.outcome({broker}).columns)
        if {one.leader, follower} <= set(inside) and one.leader != follower:
            _lead(rack_leads, failed, found.leader, NO_LEADER)


def _racks_of(one: _Row, rack: Int32) -> list[int]:
    return list(dict.fromkeys(int(rack[broker]) for broker in one.named if rack[broker] >= 0))


def count_pair_failures(
    first: int, last: int, topic: Int32, leader: Int16, partition_epoch: Int32, slot_start: Int32,
    replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16, registered: UInt8, rack: Int32,
    rack_bit: Int64, deleting: UInt8, min_insync: Int32, unclean: UInt8, scratch: Int32, pairs: Int32, lead_key: Int64,
    lead_change: Int8, third_key: Int64, further_pairs: Int32,
) -> int:  # fmt: skip
    """Fates of each row when two brokers fail, and how they differ from the sum of what each does; healthy rows by whom
    they name. ``rack``, ``rack_bit`` and ``scratch`` are the kernel's."""
    filled, brokers = 0, len(registered)
    order = {pair: number for number, pair in enumerate(combinations(range(brokers), 2))}
    third_key[: last - first] = -1
    for number, one in _rows(first, last, topic, leader, partition_epoch, slot_start, replica_count, isr_count,
                             replica, isr, registered, min_insync, unclean):  # fmt: skip
        if deleting[topic[number]]:
            continue
        if one.healthy:
            third_key[number - first] = _third_of(one, brokers, further_pairs)
            continue
        none, alone = one.outcome(set()), {broker: one.outcome({broker}) for broker in one.named}
        for left, right in combinations(one.named, 2):
            pair, both = order[min(left, right), max(left, right)], one.outcome({left, right})
            _count(pairs, pair, both.columns, alone[left].columns)
            _count(pairs, pair, none.columns, alone[right].columns)
            plus, minus = [both.leader, none.leader], [alone[left].leader, alone[right].leader]
            if sorted(plus) == sorted(minus):
                continue
            for found, change in [*((found, 1) for found in plus), *((found, -1) for found in minus)]:
                if found >= 0:
                    lead_key[filled], lead_change[filled] = pair * brokers + found, change
                    filled += 1
    return filled


def _third_of(one: _Row, brokers: int, further_pairs: Int32) -> int:
    """The key of who leads one after the other, and the pairs of others counted; -1 where there are fewer."""
    if len(one.replicas) < 3:
        return -1
    follower, third, *others = [broker for broker in one.replicas if broker != one.leader]
    if one.spare < 3:
        for left, right in [*product((one.leader, follower, third), others), *combinations(others, 2)]:
            further_pairs[one.spare, left, right] += 1
    return ((one.spare * brokers + one.leader) * brokers + follower) * brokers + third


def _rows(
    first: int, last: int, topic: Int32, leader: Int16, partition_epoch: Int32, slot_start: Int32,
    replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16, registered: UInt8, min_insync: Int32,
    unclean: UInt8,
) -> Iterator[tuple[int, _Row]]:  # fmt: skip
    up = frozenset(broker for broker, here in enumerate(registered.tolist()) if here)
    for row in range(first, last):
        of = int(topic[row])
        if of < 0:
            continue
        start, has_state = int(slot_start[row]), int(partition_epoch[row]) != NO_STATE
        replicas = replica[start : start + int(replica_count[row])].tolist()
        members = isr[start : start + int(isr_count[row])].tolist() if has_state else []
        yield row, _Row(
            replicas, members, int(leader[row]) if has_state else NO_LEADER, min(int(min_insync[of]), len(replicas)),
            has_state, bool(unclean[of]), up,
        )  # fmt: skip


def _count(counts: Int32, line: int, plus: frozenset[int], minus: frozenset[int]) -> None:
    for column in plus - minus:
        counts[line, column] += 1
    for column in minus - plus:
        counts[line, column] -= 1


def _lead(leads: Int32, line: int, plus: int, minus: int) -> None:
    if plus != minus:
        for found, change in ((plus, 1), (minus, -1)):
            if found >= 0:
                leads[line, found] += change
