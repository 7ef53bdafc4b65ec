"""Reference implementation of the kernels in ``_id_index.pyx`` in plain Python, for tests.

Its table has no hash function: an id is in the first entries.
"""

from __future__ import annotations

from kframe.plugin.columns import Int32, UInt8


def find_ids(ids: UInt8, keys: UInt8, values: Int32, out: Int32) -> int:
    """Return the number of ids that are not in the table."""
    table = {keys[entry].tobytes(): int(value) for entry, value in enumerate(values) if value >= 0}
    out[:] = [table.get(row.tobytes(), -1) for row in ids]
    return int((out < 0).sum())


def insert_ids(ids: UInt8, numbers: Int32, keys: UInt8, values: Int32) -> None:
    """Insert ids; an id that is in the table gets the new value."""
    for row, number in zip(ids, numbers, strict=True):
        same = [entry for entry, value in enumerate(values) if value >= 0 and (keys[entry] == row).all()]
        entry = same[0] if same else int((values < 0).argmax())
        keys[entry], values[entry] = row, number
