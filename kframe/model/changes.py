"""A planned change of the leadership state of many partitions, and the result of storing it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Int64, Ragged, UInt8


@dataclass(frozen=True, slots=True, eq=False)
class StateChange:
    """New leadership state for ``k`` partitions, to be stored by compare-and-set.

    ``rows`` are unique. ``expected`` is the partition epoch (the store's version) that must be current. NO_STATE means
    that no state may exist yet; the write creates it with version 0.
    """

    rows: Int32
    leader: Int32
    leader_epoch: Int32
    recovery: UInt8
    isr: Ragged
    expected: Int32
    controller_epoch: int

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: NDArray[Any]) -> StateChange:
        """The part of the change that a mask or an array of positions selects."""
        positions = chosen.nonzero()[0] if chosen.dtype == bool else chosen
        return StateChange(
            self.rows[positions],
            self.leader[positions],
            self.leader_epoch[positions],
            self.recovery[positions],
            self.isr.take(positions),
            self.expected[positions],
            self.controller_epoch,
        )

    def stored_at(self, partition_epoch: Int32) -> StoredStates:
        """The states once all are stored, each at ``partition_epoch``."""
        return StoredStates(
            self.rows,
            np.ones(len(self), np.bool_),
            self.leader,
            self.leader_epoch,
            np.full(len(self), self.controller_epoch, np.int32),
            partition_epoch,
            self.recovery,
            self.isr,
        )


class WriteCode(IntEnum):
    """The result of a bulk write for one row."""

    OK = 0
    STALE = 1
    """The stored version is not the expected one (ZooKeeper: BADVERSION)."""
    MISSING = 2
    """There is no such record (NONODE)."""
    EXISTS = 3
    """The record to create already exists (NODEEXISTS)."""
    FAILED = 4
    """Storage failed for this row only."""


class WriteResult(Struct, frozen=True, eq=False):
    """For each row of a StateChange: its WriteCode, and the new version of the state where the code is OK."""

    codes: UInt8
    partition_epoch: Int32

    @property
    def accepted(self) -> Bool:
        """Mask of the rows that were stored."""
        stored: Bool = self.codes == WriteCode.OK
        return stored


class StoredStates(Struct, frozen=True, eq=False):
    """Leadership states read for ``rows``. ``exists`` masks those that exist. ISRs hold broker indexes."""

    rows: Int32
    exists: Bool
    leader: Int32
    leader_epoch: Int32
    controller_epoch: Int32
    partition_epoch: Int32
    recovery: UInt8
    isr: Ragged
    zxid: Int64 | None = None
    """The transaction that last wrote each state, comparable with broker epochs. UNKNOWN_ZXID where it is unknown. None
    if the store does not track it."""

    def may_be_changed_in(self, controller_epoch: int) -> Bool:
        """Mask of the states that a controller of this epoch may change: they exist, and no later one has written
        them."""
        mask: Bool = self.exists & (self.controller_epoch <= controller_epoch)
        return mask

    def take(self, chosen: Bool) -> StoredStates:
        """The rows that a mask selects."""
        return StoredStates(
            self.rows[chosen],
            self.exists[chosen],
            self.leader[chosen],
            self.leader_epoch[chosen],
            self.controller_epoch[chosen],
            self.partition_epoch[chosen],
            self.recovery[chosen],
            self.isr.take(np.flatnonzero(chosen)),
            None if self.zxid is None else self.zxid[chosen],
        )
