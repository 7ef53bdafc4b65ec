"""How a commit to a KRaft cluster changes its partitions."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kframe.model.arrays import Int32, Ragged
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.lists import members
from kframe.whatif.results.timeline import ElrChanged, StatesWritten


class RowStates(Struct, frozen=True, eq=False):
    """Leaders, ISRs and ELRs of some rows at one time; rows that do not exist yet are not among them."""

    rows: Int32
    leader: Int32
    isr: Ragged
    elr: Ragged

    @staticmethod
    def of(partitions: KraftPartitions, rows: Int32) -> RowStates:
        """The current states of ``rows``."""
        return RowStates(
            rows, partitions.leaders_of(rows), partitions.lists("isr", rows), partitions.lists("elr", rows)
        )


def unclean_rows(before: RowStates, after: RowStates) -> Int32:
    """The rows with a new leader that was neither in the ISR nor in the ELR."""
    elected = (after.leader != before.leader) & (after.leader != NO_LEADER)
    safe = before.isr.any(before.isr.values == after.leader[before.isr.owners])
    safe |= before.elr.any(before.elr.values == after.leader[before.elr.owners])
    unclean: Int32 = before.rows[elected & ~safe]
    return unclean


def partition_states_written(before: RowStates, after: RowStates, created: int) -> StatesWritten:
    """The changes of these rows by a commit; ``created`` is the number of new partitions."""
    growth = after.isr.counts - before.isr.counts
    elected = (after.leader != before.leader) & (after.leader != NO_LEADER)
    return StatesWritten(
        partitions=len(before.rows) + created,
        created=created,
        elected=int(np.count_nonzero(elected)),
        shrunk=int(np.count_nonzero(growth < 0)),
        leaderless=int(np.count_nonzero((after.leader == NO_LEADER) & (before.leader != NO_LEADER))),
        refused=0,
        grown=int(np.count_nonzero(growth > 0)),
    )


def elr_changed(before: RowStates, after: RowStates) -> ElrChanged | None:
    """The changes of ELRs in these rows by a commit; None without any."""
    added, removed = ~members(after.elr, before.elr), ~members(before.elr, after.elr)
    if not (added.any() or removed.any()):
        return None
    changed = after.elr.any(added) | before.elr.any(removed)
    elected = before.elr.values[removed] == after.leader[before.elr.owners[removed]]
    return ElrChanged(
        partitions=int(np.count_nonzero(changed)),
        entered=int(np.count_nonzero(added)),
        left=int(np.count_nonzero(removed)),
        elected=int(np.count_nonzero(elected)),
    )
