"""Copies of the lists of partitions whose rows may be far apart in memory."""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int16, Int32, Ragged
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.row_views import values_at


def stored_replicas(p: KraftPartitions, rows: Int32) -> Ragged:
    """The replicas of each of ``rows``."""
    return _copied(p, rows, p.replica_count, p.replica)


def stored_isrs(p: KraftPartitions, rows: Int32) -> Ragged:
    """The ISR of each of ``rows``."""
    return _copied(p, rows, p.isr_count, p.isr)


def _copied(p: KraftPartitions, rows: Int32, counts: Int16, slots: Int16) -> Ragged:
    offsets, values = np.empty(len(rows) + 1, np.int32), np.empty(int(values_at(counts, rows).sum()), np.int32)
    kernels.copy_lists(rows, p.slot_start, counts, slots, offsets, values)
    return Ragged(offsets, values)
