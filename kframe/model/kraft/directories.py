"""The log directories of a KRaft cluster: a dense index for each directory id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

import numpy as np

from kframe.model.arrays import Int16
from kframe.model.kraft import directory_ids

#: Directory indexes of the reserved ids.
MIGRATING: Final = 0
UNASSIGNED: Final = 1
LOST: Final = 2
NO_BROKER: Final = -1


class Directories:
    """Directory ids by index. A directory that disappears keeps its index."""

    def __init__(self) -> None:
        self.ids: list[UUID] = [directory_ids.MIGRATING, directory_ids.UNASSIGNED, directory_ids.LOST]
        self._index: dict[UUID, int] = {directory: index for index, directory in enumerate(self.ids)}
        self._brokers = np.full(8, NO_BROKER, np.int16)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def brokers(self) -> Int16:
        """(d,) broker index of the registration that lists the directory as online, or NO_BROKER."""
        return self._brokers[: len(self)]

    def index_of(self, directory: UUID) -> int:
        """Index of a directory id. A new id gets the next index."""
        index = self._index.get(directory)
        if index is None:
            index = self._index[directory] = len(self.ids)
            self.ids.append(directory)
            if index == len(self._brokers):
                self._brokers = np.concatenate([self._brokers, np.full(index, NO_BROKER, np.int16)])
        return index

    def indexes_of(self, directories: Iterable[UUID]) -> list[int]:
        """Indexes of directory ids."""
        return [self.index_of(directory) for directory in directories]

    def find(self, directory: UUID) -> int | None:
        """Index of a directory id, or None if it was never named."""
        return self._index.get(directory)

    def ids_of(self, indexes: Iterable[int]) -> tuple[UUID, ...]:
        """Directory ids at ``indexes``."""
        return tuple(self.ids[index] for index in indexes)

    def broker_of(self, directory: UUID) -> int:
        """Broker index of the registration that lists this directory, or NO_BROKER."""
        index = self._index.get(directory)
        return NO_BROKER if index is None else int(self._brokers[index])

    def assign(self, broker: int, online: Iterable[UUID]) -> None:
        """Replace the online directories of a broker index."""
        self._brokers[self._brokers == broker] = NO_BROKER
        indexes = self.indexes_of(online)
        self._brokers[indexes] = broker

    def copy(self) -> Directories:
        """An independent copy."""
        clone = Directories()
        clone.ids, clone._index, clone._brokers = list(self.ids), dict(self._index), self._brokers.copy()
        return clone
