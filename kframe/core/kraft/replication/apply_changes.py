"""Apply a decision to the columns, with the same result as the replay of its records."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import DecisionPart, records_of
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.partition_changes import PlannedChanges
from kframe.model.columns import Bool, Int32, Ragged, ragged_positions
from kframe.model.kraft.columns import MEMBER_LISTS, KraftPartitions

#: Changes of these lists are replayed record by record. Only reassignments and directory assignments have any.
_ASSIGNMENTS: Final = ("replicas", "directories", "adding", "removing")


def apply_part(context: KraftContext, part: DecisionPart, offset: int) -> int:
    """Apply a part of a decision; ``offset`` is that of its first record. Returns the number of records."""
    if isinstance(part, PlannedChanges):
        apply_changes(part, offset)
        return part.count
    records = records_of([part])
    for position, versioned in enumerate(records):
        context.replay(versioned.record, offset + position)
    return len(records)


def apply_changes(planned: PlannedChanges, offset: int) -> None:
    """Apply the changes; ``offset`` is that of their first record. The rows of a batch differ from one another."""
    batch, metadata = planned.batch, planned.metadata
    if any(bool(getattr(batch, f"writes_{name}").any()) for name in _ASSIGNMENTS):
        for position, versioned in enumerate(planned.records()):
            replay(metadata, versioned.record, offset + position)
        return
    p, rows = metadata.partitions, batch.rows
    if batch.writes_isr.any():
        _store_isr(p, rows[batch.writes_isr], batch.isr.select(batch.writes_isr))
    members = batch.writes_elr | batch.writes_last_known_elr
    if members.any():
        elr = p.lists("elr", rows[members])
        last_known = p.lists("last_known_elr", rows[members])
        new_elr = _sorted_by_id(batch.elr.select(members), metadata.brokers.ids)
        _store_members(
            p,
            rows[members],
            _merge_lists(new_elr, elr, batch.writes_elr[members]),
            _merge_lists(batch.last_known_elr.select(members), last_known, batch.writes_last_known_elr[members]),
        )
    led = rows[batch.writes_leader]
    p.leader[led] = batch.leader[batch.writes_leader]
    p.leader_epoch[led] += 1
    p.recovery[rows[batch.writes_recovery]] = batch.recovery[batch.writes_recovery]
    p.partition_epoch[rows[batch.changed]] += 1


def _store_isr(p: KraftPartitions, rows: Int32, isr: Ragged) -> None:
    p.ensure_capacity(rows, isr.counts)
    p.isr[ragged_positions(p.slot_start[rows], isr.counts)] = isr.values
    p.isr_count[rows] = isr.counts


def _store_members(p: KraftPartitions, rows: Int32, elr: Ragged, last_known_elr: Ragged) -> None:
    lists = {"elr": elr, "last_known_elr": last_known_elr, "adding": p.lists("adding", rows),
             "removing": p.lists("removing", rows)}  # fmt: skip
    p.ensure_capacity(rows, np.sum([lists[name].counts for name in MEMBER_LISTS], axis=0))
    starts = p.slot_start[rows]
    for name in MEMBER_LISTS:
        p.member[ragged_positions(starts, lists[name].counts)] = lists[name].values
        getattr(p, f"{name}_count")[rows] = lists[name].counts
        starts = starts + lists[name].counts


def _merge_lists(new: Ragged, stored: Ragged, written: Bool) -> Ragged:
    """The new lists in the rows of ``written``, the stored lists in the others."""
    both = Ragged.chain([new, stored])
    count = len(new)
    return both.take(np.where(written, np.arange(count), np.arange(count, 2 * count)))


def _sorted_by_id(lists: Ragged, ids: Int32) -> Ragged:
    """The lists with their brokers ascending by id, as records have ELRs."""
    order = np.lexsort((ids[lists.values], lists.owners))
    return Ragged(lists.offsets, lists.values[order])
