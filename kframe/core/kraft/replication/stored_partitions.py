"""Copies of what partitions have stored, whose rows may be far apart in memory."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kframe import kernels
from kframe.model.arrays import Int16, Int32, Ragged
from kframe.model.kraft.columns import MEMBER_LISTS, KraftPartitions


class StoredPartitions(Struct, frozen=True, eq=False):
    """The leaders and lists of rows, without the directories. Each list has an entry for each row."""

    starts: Int32
    """(k,) the first slot."""
    leader: Int32
    """(k,) broker index, or NO_LEADER."""
    replicas: Ragged
    isr: Ragged
    elr: Ragged
    last_known_elr: Ragged
    adding: Ragged
    removing: Ragged


def stored_partitions(p: KraftPartitions, rows: Int32) -> StoredPartitions:
    """The leaders and lists of ``rows``."""
    starts, leader = np.empty((2, len(rows)), np.int32)
    replica_offsets, isr_offsets = np.empty((2, len(rows) + 1), np.int32)
    members = kernels.read_partitions(
        rows,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.elr_count,
        p.last_known_elr_count,
        p.adding_count,
        p.removing_count,
        p.leader,
        starts,
        leader,
        replica_offsets,
        isr_offsets,
    )
    replicas, isr = _copied(starts, replica_offsets, p.replica), _copied(starts, isr_offsets, p.isr)
    others = [p.lists(name, rows) for name in MEMBER_LISTS] if members else [Ragged.empty(len(rows))] * 4
    return StoredPartitions(starts, leader, replicas, isr, *others)


def _copied(starts: Int32, offsets: Int32, slots: Int16) -> Ragged:
    values = np.empty(int(offsets[-1]), np.int32)
    kernels.copy_lists(starts, offsets, slots, values)
    return Ragged(offsets, values)
