"""The brokers of a plan as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.model.arrays import Bool, Float64, Int32, Int64, UInt8


@dataclass(frozen=True, slots=True, eq=False)
class BrokerColumns:
    """The brokers of the snapshot and the added ones, ascending by id. All columns are (b,).

    ``share`` is the capacity, 0 for brokers that receive no replica. ``rack`` numbers racks; each broker without a rack
    is a rack of its own. ``leaving`` marks brokers that every replica in scope leaves. ``demoted`` marks brokers that
    are to lead nothing, because the request says so.
    """

    ids: Int32
    rack: Int32
    share: Float64
    cap: Int64
    leaving: UInt8
    demoted: Bool

    @property
    def leader_share(self) -> Float64:
        """The share of leaders: 0 for demoted brokers, and for those that receive no replica."""
        return np.where(self.demoted, 0.0, self.share)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rack_targets(self) -> Int32:
        """(racks,) brokers of each rack that receive replicas."""
        return np.bincount(self.rack[self.share > 0], minlength=int(self.rack.max(initial=-1)) + 1).astype(np.int32)

    def index_of(self, broker_id: int) -> int:
        """Index of an id that is known to exist."""
        return int(np.searchsorted(self.ids, broker_id))
