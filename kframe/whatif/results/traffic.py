"""The requests that each broker was sent, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from kframe.model.arrays import Bool, Int64

if TYPE_CHECKING:
    from kframe.model.ids import Api


class Traffic(Struct, eq=False):
    """What each broker, by index, was sent of one kind of request.

    ``nbytes`` counts only requests whose size is known; ``unsized`` masks the brokers that were sent another one too.
    """

    requests: Int64
    entries: Int64
    nbytes: Int64
    unsized: Bool

    @staticmethod
    def none(brokers: int) -> Traffic:
        """No traffic."""
        requests, entries, nbytes = (np.zeros(brokers, np.int64) for _ in range(3))
        return Traffic(requests, entries, nbytes, np.zeros(brokers, np.bool_))

    def add(self, other: Traffic) -> None:
        """Count ``other`` in."""
        self.requests += other.requests
        self.entries += other.entries
        self.nbytes += other.nbytes
        self.unsized |= other.unsized

    def bytes_of(self, broker: int) -> int | None:
        """Bytes that a broker was sent. None if the size of any request is not known."""
        return None if self.unsized[broker] else int(self.nbytes[broker])


class SentBatch(Struct, frozen=True, eq=False):
    """The requests of one batch.

    ``traffic`` is that of each kind of request. ``bytes_unknown`` is why no size is known; None if all are.
    ``bodies`` are the encoded bodies by kind and broker index, if they are recorded and known.
    """

    traffic: Mapping[Api, Traffic]
    bytes_unknown: str | None
    bodies: Mapping[tuple[Api, int], list[bytes]]
