"""Arrays that stores and transports exchange with the controller: dtypes, and lists of lists as offsets and values."""

from __future__ import annotations

from kframe.model.arrays import Bool, Int32, Int64, Ragged, UInt8, offsets_of, positions_within, ragged_positions
from kframe.model.lists import distinct_rows, same_lists
from kframe.model.slot_columns import REPLICAS_MAX

__all__ = [
    "REPLICAS_MAX",
    "Bool",
    "Int32",
    "Int64",
    "Ragged",
    "UInt8",
    "distinct_rows",
    "offsets_of",
    "positions_within",
    "ragged_positions",
    "same_lists",
]
