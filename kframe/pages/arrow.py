"""Columns as tables of Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class NameColumn:
    """A column of names: ``index`` (k,) into ``names``."""

    names: Sequence[str]
    index: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class ListColumn:
    """A column of lists: ``offsets`` (k + 1,) into ``values``."""

    offsets: NDArray[np.int32]
    values: NDArray[np.int32]


Column: TypeAlias = NDArray[Any] | NameColumn | ListColumn | Sequence[Any]


def arrow_table(columns: Mapping[str, Column]) -> Any:
    """A ``pyarrow.Table`` of these columns."""
    import pyarrow as pa

    def array(column: Column) -> Any:
        match column:
            case NameColumn():
                return pa.array(list(column.names), pa.string()).take(pa.array(column.index))
            case ListColumn():
                return pa.ListArray.from_arrays(pa.array(column.offsets), pa.array(column.values))
        return pa.array(column)

    return pa.table({name: array(column) for name, column in columns.items()})
