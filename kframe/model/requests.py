"""The control requests of one batch to each broker, in columns (Kafka's ControllerBrokerRequestBatch).

A batch refers to partition rows, not to their content: an encoder must read the columns before the next step of the
controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from kframe.model.arrays import Int32, UInt8


class BrokerRows(Struct, frozen=True, eq=False):
    """Rows by broker: ``rows[offsets[i]:offsets[i + 1]]`` go to broker index ``brokers[i]``, ascending by topic."""

    brokers: Int32
    offsets: Int32
    rows: Int32

    @staticmethod
    def none() -> BrokerRows:
        """No rows for any broker."""
        return BrokerRows(np.empty(0, np.int32), np.zeros(1, np.int32), np.empty(0, np.int32))

    def slices(self) -> Iterator[tuple[int, slice]]:
        """(broker index, slice of its rows) of each broker."""
        for position, broker in enumerate(self.brokers):
            yield int(broker), slice(int(self.offsets[position]), int(self.offsets[position + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class ControlRequests:
    """One batch. A broker receives its LeaderAndIsr first, then UpdateMetadata, then StopReplica.

    ``is_new`` is parallel to ``leader_and_isr.rows``; ``stop_leader_epoch`` and ``stop_delete`` to
    ``stop_replica.rows``. Every broker of ``metadata_brokers`` receives all of ``metadata_rows``; without rows it only
    receives the live brokers. Rows of topics that are queued for deletion have leader -2.
    """

    controller_id: int
    controller_epoch: int
    leader_and_isr: BrokerRows
    is_new: UInt8
    metadata_brokers: Int32
    metadata_rows: Int32
    stop_replica: BrokerRows
    stop_leader_epoch: Int32
    stop_delete: UInt8
    batch: int = 0
    """Number of the batch, ascending within a controller epoch; responses to UpdateMetadata refer to it."""

    @property
    def empty(self) -> bool:
        """Whether the batch has no request for any broker."""
        return not (len(self.leader_and_isr.brokers) or len(self.metadata_brokers) or len(self.stop_replica.brokers))
