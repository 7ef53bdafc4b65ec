"""Tables of few rows, from records of the engine: brokers, topics, results."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, get_args

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from kframe.plugin.columns import Bool, Int32
from kframe_console.tables.columns import CountColumn, DataColumn, DecimalColumn, NamedColumn, NumericColumn
from kframe_console.tables.table import ColumnTable

_COLUMNS: Final = {int: CountColumn, float: DecimalColumn}


@dataclass(frozen=True, eq=False)
class ObjectColumn(DataColumn):
    """One JSON value a row. Filters compare texts; numbers sort by value, all others by text."""

    objects: Sequence[Any]
    kind: str = "object"

    @property
    def nbytes(self) -> int:
        """See DataColumn. An estimate: most values are short."""
        return 100 * len(self.objects)

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        return [self.objects[row] for row in rows.tolist()]

    def keys(self) -> list[NDArray[Any]]:
        """Unknown values first, then numbers, then texts."""
        order = sorted(range(len(self.objects)), key=lambda row: _sort_key(self.objects[row]))
        ranks: Int32 = np.zeros(len(order), np.int32)
        for previous, row in pairwise(order):
            is_greater = _sort_key(self.objects[row]) > _sort_key(self.objects[previous])
            ranks[row] = ranks[previous] + is_greater
        return [ranks]

    def mask(self, name: str, text: str) -> Bool:
        """Values whose text contains ``text`` in any case, or after ``=`` equals it; ``none`` selects unknown ones."""
        folded = text.strip().casefold()
        texts = [object_text(value).casefold() for value in self.objects]
        if folded.startswith("="):
            return np.array([value == folded[1:] for value in texts], np.bool_)
        return np.array([folded in value for value in texts], np.bool_)

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        is_map = any(isinstance(value, dict) for value in self.objects)
        kind = pa.map_(pa.string(), pa.string()) if is_map else pa.array(self.objects).type
        return pa.array(self.values(rows), kind)


def record_table(key: Hashable, records: Iterable[Struct], columns: Sequence[str]) -> ColumnTable:
    """The table of these records, with the fields ``columns`` that the first of them has."""
    rows: list[Mapping[str, Any]] = [msgspec.to_builtins(record) for record in records]
    names = [name for name in columns if not rows or name in rows[0]]
    return ColumnTable(key, {name: _column([row.get(name) for row in rows]) for name in names}, len(rows))


def figures_table(key: Hashable, records: Sequence[Struct], row: type[Struct]) -> ColumnTable:
    """The table of records of type ``row``, whose fields are texts, whole numbers or decimals; each may be unknown."""
    columns: dict[str, DataColumn] = {}
    for field in msgspec.structs.fields(row):
        values = [getattr(record, field.name) for record in records]
        kinds = [_COLUMNS[kind] for kind in (field.type, *get_args(field.type)) if kind in _COLUMNS]
        numbers = [np.nan if value is None else value for value in values] if kinds else []
        columns[field.name] = kinds[0](np.array(numbers, np.float64)) if kinds else NamedColumn.of(values)
    return ColumnTable(key, columns, len(records))


def object_text(value: object) -> str:
    """A value of JSON as a cell shows it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value)) or "none"
        case dict():
            return ", ".join(f"{name}={element}" for name, element in value.items()) or "none"
    return str(value)


def _column(values: Sequence[Any]) -> DataColumn:
    kinds = set(map(type, values))
    if kinds == {int}:
        return NumericColumn(np.array(values, np.int64))
    return NamedColumn.of(values) if kinds == {str} else ObjectColumn(values)


def _sort_key(value: object) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, object_text(value))
