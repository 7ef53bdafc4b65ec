"""An index of UUIDs for bulk look-ups."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import numpy as np

from kframe.plugin.columns import Int32, UInt8
from kframe_kraft.kernels._id_index import find_ids, insert_ids


class IdIndex:
    """The number of each UUID, not negative."""

    def __init__(self, ids: Iterable[tuple[UUID, int]] = ()) -> None:
        self._count = 0
        self._keys, self._values = np.zeros((16, 16), np.uint8), np.full(16, -1, np.int32)
        self.add(ids)

    def add(self, ids: Iterable[tuple[UUID, int]]) -> None:
        """Add UUIDs with their numbers."""
        pairs = list(ids)
        keys = np.frombuffer(b"".join([id.bytes for id, _ in pairs]), np.uint8).reshape(-1, 16)
        numbers = np.array([number for _, number in pairs], np.int32)
        self._count += len(pairs)
        if 2 * self._count > len(self._values):
            used = self._values >= 0
            keys, numbers = np.concatenate([self._keys[used], keys]), np.concatenate([self._values[used], numbers])
            capacity = 1 << (4 * self._count).bit_length()
            self._keys, self._values = np.zeros((capacity, 16), np.uint8), np.full(capacity, -1, np.int32)
        insert_ids(keys, numbers, self._keys, self._values)

    def find(self, ids: UInt8) -> tuple[Int32, int]:
        """Return the number of each of ``ids``, shape (n, 16), -1 if it is unknown; and how many are unknown."""
        numbers = np.empty(len(ids), np.int32)
        missing = find_ids(ids, self._keys, self._values, numbers)
        return numbers, missing
