"""A copy of the rows that an operation changes, as they were before it; the rest of the cluster is not copied."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int32, offsets_of, ragged_positions
from kframe.model.lists import distinct_values
from kframe.model.slot_columns import SlotColumns

Columns = TypeVar("Columns", bound=SlotColumns)


class SavedRows(Generic[Columns]):
    """Rows of ``partitions`` that were saved before their first change. Rows that come later are new."""

    def __init__(self, partitions: Columns) -> None:
        """Save no row yet."""
        self.partitions = partitions
        self.existing = len(partitions)
        """Number of rows at the beginning."""
        self._is_saved = np.zeros(self.existing, np.bool_)
        self._rows: list[Int32] = []
        self._before: Columns = type(partitions)()

    def save(self, rows: Int32) -> None:
        """Copy those of ``rows`` that existed and are not saved yet. To be called before they change."""
        rows = distinct_values(rows[(rows >= 0) & (rows < self.existing)])
        rows = rows[~self._is_saved[rows]]
        if len(rows):
            self._is_saved[rows] = True
            self._rows.append(rows)
            append_rows(self._before, self.partitions, rows)

    def before(self) -> tuple[Int32, Columns]:
        """The saved rows, ascending, and a table of their values at the beginning."""
        rows = np.concatenate([np.empty(0, np.int32), *self._rows])
        order = np.argsort(rows)
        return rows[order], take_rows(self._before, order)


def append_rows(table: Columns, source: Columns, rows: NDArray[Any]) -> None:
    """Append a copy of some rows of ``source``, with all slots that they own."""
    capacity = source.capacity_of(rows)
    slots = ragged_positions(source.slot_start[rows], capacity)
    first_row, first_slot = table.grow(len(rows), len(slots))
    table.adopt_tables(source)
    for column in table.table:
        first, chosen = (first_row, rows) if column.per == "row" else (first_slot, slots)
        getattr(table, column.name)[first:] = getattr(source, column.name)[chosen]
    table.slot_start[first_row:] = first_slot + offsets_of(capacity)[:-1]
    table.set_capacity(np.arange(first_row, len(table)), capacity)


def take_rows(source: Columns, rows: NDArray[Any]) -> Columns:
    """A table with a copy of some rows, in that order."""
    table = type(source)()
    append_rows(table, source, rows)
    return table
