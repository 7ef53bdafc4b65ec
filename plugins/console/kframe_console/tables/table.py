"""A table on the server: named columns, and windows of its rows, sorted and filtered."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin import ParameterError
from kframe.plugin.columns import Int32, UInt8
from kframe_console.tables.cache import ResultCache
from kframe_console.tables.columns import DataColumn
from kframe_console.tables.order import stable_order
from kframe_console.tables.query import SORT, TableQuery

#: Rows of a block.
_BLOCK_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTable:
    """Columns of ``count`` rows by name. ``key`` identifies the table among those of all readings."""

    key: Hashable
    columns: Mapping[str, DataColumn]
    count: int

    @property
    def nbytes(self) -> int:
        """Bytes that the columns own."""
        return sum(column.nbytes for column in self.columns.values())

    def rows(self, query: TableQuery, cache: ResultCache) -> Int32:
        """The numbers of all rows that the filters select, in the sort order. Raises ParameterError."""
        if not query.filters:
            return self._order(query.sort, cache)
        key = (self.key, "rows", query.sort, query.filters)
        return cache.get(key, lambda: self._selected(query, cache), _nbytes)

    def records(self, rows: NDArray[Any], names: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The values of ``rows`` by column."""
        names = list(self.columns if names is None else names)
        columns = [self.columns[name].values(rows) for name in names]
        return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))

    def blocks(self, rows: Int32) -> Iterator[Int32]:
        """``rows`` in blocks, so that an export needs the memory of a single block."""
        return (rows[first : first + _BLOCK_ROWS] for first in range(0, len(rows), _BLOCK_ROWS))

    def _selected(self, query: TableQuery, cache: ResultCache) -> Int32:
        selected = np.ones(self.count, np.bool_)
        for name, text in query.filters:
            bits = cache.get((self.key, "mask", name, text), lambda n=name, t=text: self._mask_bits(n, t), _nbytes)  # type: ignore[misc]
            selected &= np.unpackbits(bits, count=self.count).view(np.bool_)
        if not query.sort:
            return np.flatnonzero(selected).astype(np.int32)
        order = self._order(query.sort, cache)
        return order[selected[order]]

    def _mask_bits(self, name: str, text: str) -> UInt8:
        return np.packbits(self.columns[name].mask(name, text))

    def _order(self, sort: Sequence[tuple[str, bool]], cache: ResultCache) -> Int32:
        if not sort:
            return np.arange(self.count, dtype=np.int32)
        return cache.get((self.key, "order", sort), lambda: self._sorted(sort), _nbytes)

    def _sorted(self, sort: Sequence[tuple[str, bool]]) -> Int32:
        keys = []
        for name, descending in sort:
            column_keys = self.columns[name].keys()
            if not column_keys and self.count:
                raise ParameterError(SORT, repr(name), "a column that the source has")
            keys += [(key, descending) for key in column_keys]
        return stable_order(keys, self.count)


def _nbytes(array: NDArray[Any]) -> int:
    return array.nbytes
