"""Controller epochs by number: a cluster has few distinct ones, since each term of a controller has one epoch."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from kframe.errors import ShapeError
from kframe.model.arrays import Int32, UInt16
from kframe.model.lists import distinct_values

#: Most controller epochs of a cluster: columns have their numbers as uint16.
EPOCHS_MAX: Final = 1 << 16
#: The controller epoch of a partition that no controller has written, the first of each table.
NO_CONTROLLER_EPOCH: Final = -1


class EpochTable(Struct, frozen=True):
    """``epochs`` (e,) distinct controller epochs in any order, from NO_CONTROLLER_EPOCH on."""

    epochs: Int32

    @staticmethod
    def empty() -> EpochTable:
        """The table of a cluster in which nothing is stored."""
        return EpochTable(np.array([NO_CONTROLLER_EPOCH], np.int32))

    def extended(self, epochs: Int32) -> EpochTable:
        """The table with these epochs, too. The numbers of others stay. Raises ShapeError beyond EPOCHS_MAX."""
        distinct = epochs[:1] if bool((epochs == epochs[:1]).all()) else distinct_values(epochs)
        added = distinct[~np.isin(distinct, self.epochs)]
        if not len(added):
            return self
        if len(self.epochs) + len(added) > EPOCHS_MAX:
            raise ShapeError(f"{len(self.epochs) + len(added)} controller epochs; the maximum is {EPOCHS_MAX}")
        return EpochTable(np.append(self.epochs, added))

    def numbers(self, epochs: Int32) -> UInt16:
        """(k,) the numbers of epochs of the table."""
        if len(epochs) and bool((epochs == epochs[0]).all()):  # as in each change by one controller
            return np.full(len(epochs), np.flatnonzero(self.epochs == epochs[0])[0], np.uint16)
        order = np.argsort(self.epochs)
        return order[np.searchsorted(self.epochs[order], epochs)].astype(np.uint16)
