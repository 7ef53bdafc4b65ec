"""Partitions that differ in the names of their brokers alone: a failure is played on one partition of each form.

The controller compares brokers of a partition with one another, never their ids. So the failure of the second replica
has the same effect on all partitions of a form, and the next leader is at the same position in their replica lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.leader_selection import acceptable_replicas
from kframe.model.arrays import Bool, Int32, Int64, Ragged
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.topics import NO_ROW
from kframe.model.lists import common_length, repeated
from kframe.whatif.engines.kraft.failed_rows import NO_BROKER, CaseResults, FailureCases, play_cases

#: The form of a partition that is not like any other.
NO_FORM: Final = -1
_NOT_ASSIGNED: Final = -1
#: Replicas of a partition with a form, so that a byte has a bit for each.
_WIDTH_MAX: Final = 8
#: Partitions that are compared, and cases that are played, at a time.
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class PartitionForms:
    """The forms of consecutive partition rows from ``start`` on. ``number`` (n,): the form, or NO_FORM. ``replicas``
    (w, n): broker indexes in the order of the replica list, then NO_BROKER. ``first`` as of ``first_partitions``."""

    context: KraftContext
    start: int
    number: Int64
    replicas: Int32
    first: Int32

    @staticmethod
    def of(context: KraftContext, rows: Int32, first: Int32) -> PartitionForms:
        """The forms of ``rows``, which are consecutive."""
        width = min(int(context.metadata.partitions.replica_count[rows].max(initial=1)), _WIDTH_MAX)
        number, replicas = np.empty(len(rows), np.int64), np.empty((width, len(rows)), np.int32)
        for begin in range(0, len(rows), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            lists = context.metadata.partitions.lists("replica", rows[block])
            replicas[:, block] = _padded(lists, width)
            number[block] = _compare(context, rows[block], first, lists, replicas[:, block])
        has_form = number != NO_FORM
        number[has_form] = np.unique(number[has_form], return_inverse=True)[1]
        return PartitionForms(context, int(rows[0]) if len(rows) else 0, number, replicas, first)

    def play(self, cases: FailureCases) -> CaseResults:
        """The results of ``play_cases``."""
        results = CaseResults(np.empty(len(cases), np.uint8), np.empty(len(cases), np.int32))
        for begin in range(0, len(cases), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            part = self._play(cases.part(begin, begin + _BLOCK))
            results.flags[block], results.leader[block] = part.flags, part.leader
        return results

    def _play(self, cases: FailureCases) -> CaseResults:
        replicas = self.replicas[:, cases.rows - self.start]
        key = self._keys(cases, replicas)
        has_form = np.flatnonzero(key != NO_FORM)
        positions, numbers = _representatives(key[has_form])
        played = np.concatenate([has_form[positions], np.flatnonzero(key == NO_FORM)])
        number = np.empty(len(cases), np.int64)
        number[has_form], number[key == NO_FORM] = numbers, np.arange(len(positions), len(played))
        results = play_cases(self.context, cases.take(played), self.first)
        position = np.full(len(played), _NOT_ASSIGNED)
        for row, column in enumerate(replicas):
            position[(column[played] == results.leader) & (results.leader != NO_LEADER)] = row
        position = position[number]
        leader = np.where(position >= 0, replicas[position, np.arange(len(cases))], results.leader[number])
        return CaseResults(results.flags[number], leader)

    def _keys(self, cases: FailureCases, replicas: Int32) -> Int64:
        """(k,) equal numbers for cases of equal results. NO_FORM for cases that are like no other."""
        key, width = self.number[cases.rows - self.start], len(replicas)
        has_form = key != NO_FORM
        for failing in cases.failing.T[:width]:
            position = np.full(len(cases), width, np.int64)
            for number, column in enumerate(replicas):
                position[column == failing] = number
            position[failing == NO_BROKER] = width
            has_form &= (position < width) | (failing == NO_BROKER)
            key = key * (width + 1) + position
        if cases.directory is not None:
            lists = self.context.metadata.partitions.lists("directory", cases.rows)
            key = key << width | _mask(_padded(lists, width) == cases.directory)
        key[~has_form] = NO_FORM
        return key


def _compare(context: KraftContext, rows: Int32, first: Int32, lists: Ragged, replicas: Int32) -> Int64:
    """(n,) equal numbers for rows of the same form, or NO_FORM. ``lists`` are their replicas, ``replicas`` (w, n) the
    same padded."""
    p, width = context.metadata.partitions, len(replicas)
    regular = (lists.counts <= width) & ~lists.any(repeated(lists)) & (first[p.topic[rows]] == NO_ROW)
    regular &= (p.adding_count[rows] == 0) & (p.removing_count[rows] == 0) & (p.last_known_elr_count[rows] <= 1)
    leader, active = p.leaders_of(rows), context.metadata.brokers.active
    marks = acceptable_replicas(context.metadata, p.slot_start[rows], lists, active)
    acceptable = Ragged(lists.offsets, marks.astype(np.int32))
    code = _mask(_padded(acceptable, width) > 0) << width | _mask((replicas != NO_BROKER) & (active[replicas] != 0))
    # A list of brokers without repetition is known by a bit for each replica: its order decides nothing.
    for members in (p.lists(name, rows) for name in ("isr", "elr", "last_known_elr")):
        mask, counts = _members(_padded(members, width), replicas)
        regular &= counts == members.counts
        code = code << width | mask
    mask, counts = _members(leader[np.newaxis], replicas)
    regular &= (counts == 1) | (leader == NO_LEADER)
    minimum = np.clip(context.min_isr(rows), -1, _WIDTH_MAX + 1) + 1
    for value, bits in ((mask, width), (lists.counts, 4), (minimum, 4), (context.unclean_enabled(rows), 1)):
        code = code << bits | value
    code[~regular] = NO_FORM
    return code


def _padded(lists: Ragged, width: int) -> Int32:
    """(width, n) the values of each list, then NO_BROKER. Longer lists are cut."""
    if common_length(lists) == width:
        return np.ascontiguousarray(lists.values.reshape(-1, width).T)
    table, counts = np.full((width, len(lists)), NO_BROKER, np.int32), lists.counts
    for position in range(width):
        rows = np.flatnonzero(counts > position)
        table[position, rows] = lists.values[lists.offsets[rows] + position]
    return table


def _members(members: Int32, replicas: Int32) -> tuple[Int64, Int64]:
    """(n,) a bit for each of ``replicas`` (w, n) that is among ``members`` (m, n), and (n,) how many are."""
    is_member = np.zeros(replicas.shape, np.bool_)
    for column in members:
        is_member |= (replicas == column) & (column != NO_BROKER)
    return _mask(is_member), is_member.sum(axis=0)


def _mask(marks: Bool) -> Int64:
    """(n,) a bit for each of the marks (w, n)."""
    mask = np.zeros(marks.shape[1], np.int64)
    for position, column in enumerate(marks):
        mask |= column.astype(np.int64) << position
    return mask


def _representatives(keys: NDArray[Any]) -> tuple[Int64, Int64]:
    """The positions of distinct keys, and for each key the number of its representative among them."""
    span = int(keys.max(initial=-1)) + 1
    if span > 4 * len(keys):
        _, positions, numbers = np.unique(keys, return_index=True, return_inverse=True)
        return positions, numbers
    last = np.full(span, -1, np.int64)
    last[keys] = np.arange(len(keys))
    used = np.flatnonzero(last >= 0)
    number = np.empty(span, np.int64)
    number[used] = np.arange(len(used))
    return last[used], number[keys]
