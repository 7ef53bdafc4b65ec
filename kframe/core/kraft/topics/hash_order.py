"""The first partition of a topic in the order of Kafka's hash table (Kafka 4.4 ``TimelineHashMap``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.model.arrays import Bool, Int32

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_MIN_SLOTS: Final = 2
_HASH_BITS: Final = 64


def first_partition(partitions: Int32, *, changed: bool) -> int:
    """The position in ``partitions`` (n,), ascending partition numbers, of the number that Kafka's table lists first.

    ``changed`` tells whether the controller has replayed a change of any of them since it created the last one. Such
    a replay enlarges a full table, as an insertion does.
    """
    slots = _slots(len(partitions) + changed)
    shift = np.uint64(_HASH_BITS - slots.bit_length() + 1)
    used = (partitions.astype(np.uint64) * _MULTIPLIER) >> shift
    in_first_slot: Bool = used == used.min()
    return int(np.flatnonzero(in_first_slot)[-1])  # A slot is listed from the last insertion to the first.


def _slots(size: int) -> int:
    """Slots of a table after ``size`` insertions: it doubles before the insertion that exceeds 4/3 a slot."""
    slots = _MIN_SLOTS
    while size * 3 > slots * 4:
        slots *= 2
    return slots
