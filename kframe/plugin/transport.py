"""What a transport implements (``Transport``), the requests that it sends and the responses that it reports."""

from __future__ import annotations

from kframe.model.events import (
    AlterPartitionRequested,
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.model.tables import RequestedPartitions
from kframe.ports.store import MayAct, Notify
from kframe.ports.transport import Acknowledging, BrokerQueue, Expecting, StoreReader, Transport, WaitingTimes
from kframe.runtime.rate_limit import RateLimit
from kframe.runtime.samples import Samples

__all__ = [
    "Acknowledging",
    "AlterPartitionRequested",
    "BrokerQueue",
    "BrokerRows",
    "ControlRequests",
    "Event",
    "Expecting",
    "LeaderAndIsrResponseReceived",
    "MayAct",
    "Notify",
    "RateLimit",
    "RequestedPartitions",
    "Samples",
    "StopReplicaResponseReceived",
    "StoreReader",
    "Transport",
    "UpdateMetadataResponseReceived",
    "WaitingTimes",
]
