"""Rack rules: how evenly the replicas of a partition are spread over racks, and how evenly they can be.

A rule has, for each rack, the fewest and the most replicas that it should have. The spread of a list has two columns:
the sum over racks of its replicas, of a rack at most the fewest, and at most the most. A list meets its rule if both
columns are as great as the brokers of the racks allow. A replica that moves to another rack changes neither column by
more than 1, so that a list that misses ``m`` of a column needs at least ``m`` moves, and the greater number suffices.

The rule of an even spread is a level ``l``: the least at which the racks have room for all replicas, if each has at
most ``l``. Each rack should then have ``l - 1`` or ``l``, or as many as it has brokers. Where there are as many racks
as replicas, the level is 1, and the second column is the number of racks that a list spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Int64, Ragged
from kframe.model.lists import distinct_values


@dataclass(frozen=True, slots=True, eq=False)
class HostChanges:
    """The racks that have another number of brokers for a partition than for most: a row for each, in any order.

    ``usual`` is the number for most partitions in ``rack``, ``hosts`` that for the partition ``row``.
    """

    row: Int64
    rack: Int64
    usual: Int64
    hosts: Int64


#: No partition has another number of brokers in a rack than most.
NO_CHANGES: Final = HostChanges(*(np.empty(0, np.int64) for _ in range(4)))


@dataclass(frozen=True, slots=True, eq=False)
class OwnRules:
    """Partitions that are not to be spread evenly: ``rule`` (n,) is an index of ``bounds`` (m, racks, 2), else -1.

    ``bounds`` are those of ``RackRules``.
    """

    rule: Int32
    bounds: Int32


@dataclass(frozen=True, slots=True, eq=False)
class RackRules:
    """The rule of each of ``n`` partitions: ``rule`` (n,) is an index of ``bounds`` (rules, racks, 2).

    ``bounds`` has the fewest and the most replicas of each rack. ``possible`` (n, 2) is the greatest spread that the
    brokers of the racks allow to a list of any length. ``own`` are the partitions that are not to be spread evenly.
    """

    rule: Int32
    bounds: Int32
    possible: Int32
    own: OwnRules | None = None

    @staticmethod
    def none(rows: int, racks: int) -> RackRules:
        """Rules that every list meets."""
        return RackRules(np.zeros(rows, np.int32), np.zeros((1, racks, 2), np.int32), np.zeros((rows, 2), np.int32))

    def spread(self, rows: Any, lists: Ragged, rack: Int32) -> Int32:
        """(k, 2) the spread of ``lists`` of broker indexes, which are of these rows. ``rack`` is by broker."""
        spread = np.zeros((len(lists), 2), np.int32)
        kernels.measure_spread(lists.offsets, lists.values, rack, self.rule[rows], self.bounds, spread)
        return spread

    def need(self, rows: Any, racks: Any, others: Any) -> Int64:
        """To how many columns of the spread a replica of these rows in these racks adds, beside ``others`` there.

        The arguments are broadcast.
        """
        bounds = self.bounds[self.rule[rows], racks]
        return np.asarray((np.asarray(others)[..., None] < bounds).sum(axis=-1), np.int64)


def even_rules(factors: Int32, hosts: Int32, changes: HostChanges = NO_CHANGES) -> RackRules:
    """The rules of an even spread, for lists of these lengths (n,). ``hosts`` (racks,) are the brokers of each rack."""
    most = max(int(hosts.max(initial=1)), int(changes.hosts.max(initial=1)))
    most = max(min(most, int(factors.max(initial=1))), 1)
    larger = len(hosts) - np.searchsorted(np.sort(hosts), np.arange(1, most + 1))
    room = np.concatenate([[0], np.cumsum(larger)])

    def possible(level: Int64) -> Int64:
        """(n,) the brokers of all racks, of a rack at most as many as the level."""
        others = [np.minimum(column, level[changes.row]) for column in (changes.hosts, changes.usual)]
        changed = np.bincount(changes.row, others[0] - others[1], minlength=len(level))
        return np.asarray(room[level] + changed, np.int64)

    target = np.minimum(factors, possible(np.full(len(factors), most)))
    level = np.maximum(np.searchsorted(room, np.minimum(factors, room[-1])), 1)
    pending = distinct_values(changes.row)
    level[pending] = 1
    while len(pending := pending[possible(level)[pending] < target[pending]]):
        level[pending] += 1
    bounds = np.stack([np.arange(most), np.arange(1, most + 1)], axis=1).astype(np.int32)
    return RackRules(
        (level - 1).astype(np.int32),
        np.ascontiguousarray(np.repeat(bounds[:, None], max(len(hosts), 1), axis=1)),
        np.stack([possible(level - 1), possible(level)], axis=1).astype(np.int32),
    )


def with_own(rules: RackRules, own: OwnRules, hosts: Int32, changes: HostChanges = NO_CHANGES) -> RackRules:
    """The rules of ``even_rules`` with those of some partitions instead."""
    rows = np.flatnonzero(own.rule >= 0)
    possible = rules.possible.copy()
    possible[rows] = np.minimum(own.bounds, hosts[None, :, None]).sum(axis=1)[own.rule[rows]]
    inside = np.flatnonzero(own.rule[changes.row] >= 0)
    bounds = own.bounds[own.rule[changes.row[inside]], changes.rack[inside]]
    hosts_of, usual = (np.minimum(bounds, column[inside, None]) for column in (changes.hosts, changes.usual))
    np.add.at(possible, changes.row[inside], (hosts_of - usual).astype(np.int32))
    rule = np.where(own.rule >= 0, own.rule + len(rules.bounds), rules.rule).astype(np.int32)
    return RackRules(rule, np.concatenate([rules.bounds, own.bounds]), possible, own)


def span_racks(lists: Ragged, rack: Int32) -> Bool:
    """(k,) whether the replicas of each list of broker indexes are in more than one rack. ``rack`` is by broker."""
    first = np.repeat(rack[lists.values[lists.first]], lists.counts[lists.counts > 0])
    return lists.any(rack[lists.values] != first)


def uneven_replicas(lists: Ragged, rack: Int32, hosts: Int32) -> Int32:
    """How many replicas of each list of broker indexes must go to other racks for the most even spread.

    ``rack`` is that of each broker, ``hosts`` (racks,) the brokers of each rack that can have replicas.
    """
    rules, rows = even_rules(lists.counts, hosts), np.arange(len(lists))
    missing = np.minimum(rules.possible, lists.counts[:, None]) - rules.spread(rows, lists, rack)
    return np.asarray(np.maximum(missing, 0).max(axis=1, initial=0), np.int32)
