"""The rack of each partition whose replicas are all to be in one rack, so that they are copied within a zone.

A partition goes to a rack that needs the fewest copies, so the sum of these copies is a lower bound for every choice of
racks. Limits of loads, caps and flows depend on the choice: what a solver proves for chosen racks is no bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ParameterError
from kframe.model.arrays import Bool, Int32, Int64, Ragged
from kframe.model.lists import distinct_combinations
from kframe.plans.check.placement_constraints import constraints_of
from kframe.plans.check.rack_rules import HostChanges, OwnRules
from kframe.plans.generate.broker_columns import BrokerColumns
from kframe.snapshot import Snapshot

#: The copies that a rack needs that has too few brokers.
_TOO_MANY: Final = np.iinfo(np.int64).max
#: The least share of a rack, so that none is divided by 0.
_LEAST: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class OneRack:
    """The partitions that are to be in one rack, and their racks. All columns are (n,).

    ``rack`` is the number of the rack, -1 for other partitions, those outside of the scope or with one replica, and
    those for which no rack has enough brokers. ``fewest`` is the copies that the cheapest rack needs. ``hosts`` is the
    most brokers of a rack that can have a replica. Both are of partitions with a rack or without enough brokers.
    """

    requested: Bool
    rack: Int32
    fewest: Int64
    hosts: Int64

    def rules(self, own: OwnRules | None, factors: Int32, racks: int) -> OwnRules:
        """The ``own`` rules of other partitions, and a rule for these: all replicas in the rack. ``factors`` (n,)."""
        rows = np.flatnonzero(self.rack >= 0)
        rule = np.full(len(self.rack), -1, np.int32) if own is None else own.rule.copy()
        bounds = np.zeros((0, racks, 2), np.int32) if own is None else own.bounds
        pairs, number = distinct_combinations((self.rack[rows], factors[rows]))
        inside = np.zeros((len(pairs), racks, 2), np.int32)
        inside[np.arange(len(pairs)), pairs[:, 0]] = pairs[:, 1, None]
        rule[rows] = len(bounds) + number
        return OwnRules(rule, np.concatenate([bounds, inside]))


def check_requested(
    snapshot: Snapshot, racks: Mapping[int, str | None], requested: Bool, selected: Bool, *, fix_racks: bool
) -> None:
    """Raise InputError for partitions that cannot be requested to be in one rack.

    ``requested`` and ``selected`` (n,) mark these and the partitions in scope.
    """
    if not any(rack is not None for rack in racks.values()):
        raise ParameterError("one_rack", "no broker with a known rack", "racks, such as those of --rack-map FILE")
    constrained = constraints_of(snapshot).keys() & set(snapshot.topics.topic_of_rows()[requested].tolist())
    if constrained:
        name = snapshot.topics.names[min(constrained)]
        expected = "topics without them: the constraints determine the racks"
        raise ParameterError("one_rack", f"topic {name} with placement constraints", expected)
    if fix_racks and not (selected & ~requested).any():
        raise ParameterError("fix_racks", "each partition to be in one rack", "partitions to spread beside these")


def choose_racks(
    brokers: BrokerColumns,
    lists: Ragged,
    factors: Int32,
    weight: Int64,
    requested: Bool,
    order: Int32,
    changes: HostChanges,
) -> OneRack:
    """The rack of each requested partition in ``order``: one with enough brokers that needs the fewest copies.

    Caps of brokers can exclude a cheaper rack. Of equally cheap racks, those with less than their share of the load
    come first, then the rack of the preferred leader, then the emptiest. ``lists`` are of before the plan, and
    ``changes`` the racks with another number of brokers for a partition.
    """
    columns = np.full(len(lists), -1, np.int32), np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    result, (rack, fewest, hosts) = OneRack(requested, *columns), columns
    rows = order[requested[order] & (factors[order] > 1)]
    copies, most_hosts = _copies(brokers, lists.take(rows), factors[rows], rows, len(lists), changes)
    hosts[rows] = most_hosts
    possible = copies.min(axis=1, initial=_TOO_MANY) < _TOO_MANY
    rows, copies = rows[possible], copies[possible]
    fewest[rows] = copies.min(axis=1, initial=_TOO_MANY)
    others = np.ones(len(lists), np.bool_)
    others[rows] = False
    room = _RackRoom.of(brokers, lists, others, weight, int((factors[rows] * weight[rows]).sum()))
    complete = fewest[rows] == 0
    rack[rows[complete]] = copies[complete].argmin(axis=1)
    room.add(rack[rows[complete]], factors[rows[complete]], weight[rows[complete]])
    rows, copies = rows[~complete], copies[~complete]
    tied = np.count_nonzero(copies == fewest[rows][:, None], axis=1) > 1
    first = brokers.rack[lists.values[lists.offsets[rows]]]
    for index in np.lexsort((tied, fewest[rows])).tolist():  # stable: equal rows keep their order
        row = int(rows[index])
        rack[row] = room.take(copies[index].tolist(), int(factors[row]), int(weight[row]), int(first[index]))
    return result


def _copies(
    brokers: BrokerColumns, lists: Ragged, factors: Int32, rows: Int32, count: int, changes: HostChanges
) -> tuple[Int64, Int64]:
    """(k, racks) replicas that are copied if all of a list are in a rack, and (k,) the most brokers of a rack.

    ``lists`` and ``factors`` are of ``rows``, which are of ``count``.
    """
    racks = len(brokers.rack_targets)
    hosts = np.tile(brokers.rack_targets.astype(np.int64), (len(rows), 1))
    position = np.full(count, -1, np.int64)
    position[rows] = np.arange(len(rows))
    changed = np.flatnonzero(position[changes.row] >= 0)
    hosts[position[changes.row[changed]], changes.rack[changed]] = changes.hosts[changed]
    staying = lists.keep(brokers.leaving[lists.values] == 0)
    cells = staying.owners.astype(np.int64) * racks + brokers.rack[staying.values]
    inside = np.bincount(cells, minlength=len(rows) * racks).reshape(len(rows), racks)
    copies = np.maximum(factors[:, None] - inside, 0)
    copies[hosts < factors[:, None]] = _TOO_MANY
    return copies, hosts.max(axis=1, initial=0)


@dataclass(frozen=True, slots=True)
class _RackRoom:
    """What racks, by number, have of partitions in one rack, and room for.

    ``load`` has all replicas, ``share`` is that by the capacity of the rack. ``slots`` are the replicas that the caps
    leave to each broker of a rack beside other partitions, None without caps. ``used`` counts replicas, ``count``
    partitions. A broker that has more replicas than its cap has as many slots.
    """

    load: list[float]
    share: list[float]
    slots: list[Int64] | None
    used: list[int]
    count: list[int]

    @staticmethod
    def of(brokers: BrokerColumns, lists: Ragged, others: Bool, weight: Int64, requested: int) -> _RackRoom:
        """The racks with the replicas of ``others`` (n,), before partitions of the load ``requested`` get theirs."""
        racks, receives = len(brokers.rack_targets), brokers.share > 0
        present = lists.keep(others[lists.owners])
        load = np.bincount(brokers.rack[present.values], weight[present.owners], racks)
        capacity = np.bincount(brokers.rack, np.where(receives, brokers.share, 0.0), racks)
        share = capacity / max(capacity.sum(), _LEAST) * (load.sum() + requested)
        slots = None
        if (brokers.cap[receives] < len(lists)).any():
            before = np.bincount(lists.values, minlength=len(brokers))
            cap = np.maximum(np.where(receives, np.minimum(brokers.cap, len(lists)), 0), before)
            free = np.where(brokers.leaving == 0, cap - np.bincount(present.values, minlength=len(brokers)), 0)
            slots = [free[brokers.rack == rack] for rack in range(racks)]
        return _RackRoom(load.tolist(), share.tolist(), slots, [0] * racks, [0] * racks)

    def add(self, racks: NDArray[np.int32], factors: Int32, weight: Int64) -> None:
        """Give racks partitions with these replication factors and weights of a replica."""
        for rack in np.unique(racks).tolist():
            inside = racks == rack
            self.load[rack] += float((factors[inside] * weight[inside]).sum())
            self.used[rack] += int(factors[inside].sum())
            self.count[rack] += int(np.count_nonzero(inside))

    def take(self, copies: list[int], factor: int, weight: int, first: int) -> int:
        """Give the best rack a partition that needs these ``copies`` by rack; return the rack.

        ``first`` is the rack of the preferred leader.
        """
        load, share = self.load, self.share
        rack = min(
            (rack for rack, count in enumerate(copies) if count < _TOO_MANY),
            key=lambda rack: (
                not self._fits(rack, factor),
                copies[rack],
                load[rack] >= share[rack],
                rack != first,
                load[rack] / max(share[rack], _LEAST),
            ),
        )
        load[rack] += factor * weight
        self.used[rack] += factor
        self.count[rack] += 1
        return rack

    def _fits(self, rack: int, factor: int) -> bool:
        """Whether a rack has room for another partition. A broker has one replica of each."""
        if self.slots is None:
            return True
        return int(np.minimum(self.slots[rack], self.count[rack] + 1).sum()) >= self.used[rack] + factor
