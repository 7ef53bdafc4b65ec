"""The control requests of one batch, in columns: what each broker is to be told (Kafka's ControllerBrokerRequestBatch).

A batch speaks of partition rows, not of their content: whoever encodes or records it reads the columns, and does so
before the controller takes another step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from kframe.model.columns import Int32, UInt8


class Occasion(IntEnum):
    """What a batch is sent for. What befalls brokers is told in this order.

    Batches for the same occasion in the same step, each about other partitions of a cluster, are together the batch
    that the whole cluster would have caused (``kframe.spark``).
    """

    OTHER = 0
    ELECTION = 1
    """Partitions came online or got another leader."""
    STOP = 2
    """A broker that asked to shut down is to stop following."""
    REPLICAS = 3
    """Replicas changed their state."""
    DELETION = 4
    """Topics that are being deleted go on."""
    UNHEARD = 5
    """Nothing else was told: brokers learn only who is left."""


@dataclass(frozen=True, slots=True, eq=False)
class BrokerRows:
    """Rows by broker: ``rows[offsets[i]:offsets[i + 1]]`` go to broker index ``brokers[i]``, ascending by topic."""

    brokers: Int32
    offsets: Int32
    rows: Int32

    @staticmethod
    def none() -> BrokerRows:
        """Nothing for anybody."""
        return BrokerRows(np.empty(0, np.int32), np.zeros(1, np.int32), np.empty(0, np.int32))

    def slices(self) -> Iterator[tuple[int, slice]]:
        """(broker index, where its rows stand) of each broker."""
        for position, broker in enumerate(self.brokers):
            yield int(broker), slice(int(self.offsets[position]), int(self.offsets[position + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class ControlRequests:
    """One batch. A broker gets its LeaderAndIsr first, then UpdateMetadata, then StopReplica.

    ``is_new`` stands beside ``leader_and_isr.rows``; ``stop_leader_epoch`` and ``stop_delete`` beside
    ``stop_replica.rows``. Every broker of ``metadata_brokers`` gets all of ``metadata_rows``; without rows it is only
    told who is registered. Rows whose topic is queued for deletion are told as leader -2.
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
    occasion: Occasion = Occasion.OTHER
    batch: int = 0
    """Number of the batch, ascending within a controller epoch; answers to UpdateMetadata name it."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send to anybody."""
        return not (len(self.leader_and_isr.brokers) or len(self.metadata_brokers) or len(self.stop_replica.brokers))
