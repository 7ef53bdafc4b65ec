"""Transports without connections. One records the requests to each broker, one only counts them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kframe.embedded.describe import Request, describe_requests
from kframe.model.arrays import Int32, Int64
from kframe.model.brokers import Brokers
from kframe.model.cluster import ClusterState
from kframe.model.ids import Api
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.ports.store import MayAct, Notify
from kframe.ports.transport import BrokerQueue

__all__ = ["Api", "CountingTransport", "RecordingTransport", "Request", "Sent", "drop_unconnected"]

_log = logging.getLogger(__name__)


def drop_unconnected(request: Request) -> None:
    """The reaction of every transport to a request for an unconnected broker: only log a warning."""
    _log.warning("%s to broker %d dropped: not connected", request["api"], request["broker"])


class RecordingTransport:
    """Implements ``ports.Transport``: records the requests to each connected broker. The format is that of a trace. No
    broker responds."""

    def __init__(self) -> None:
        self._sent: dict[int, list[Request]] = {}
        self._connected: set[int] = set()

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready. Nothing is ever notified."""

    def close(self) -> None:
        """Drop every connection. Recorded requests remain readable."""
        self._connected.clear()

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Send to these brokers (indexes) from now on."""
        self._connected.update(cluster.brokers.ids_of(brokers))

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Stop sending to these brokers (indexes)."""
        self._connected.difference_update(cluster.brokers.ids_of(brokers))

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Record a batch with the present values of the columns."""
        for request in describe_requests(cluster, requests):
            if request["broker"] in self._connected:
                self._sent.setdefault(request["broker"], []).append(request)
            else:
                drop_unconnected(request)

    def queues(self) -> Mapping[int, BrokerQueue]:
        """Empty: this transport has no queues."""
        return {}

    def take(self) -> list[Request]:
        """Requests sent since the last call, by broker id, in order per broker. Read-only."""
        sent, self._sent = self._sent, {}
        return [request for broker_id in sorted(sent) for request in sent[broker_id]]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """Number of requests of one api to each broker, and of partitions in them. Parallel to ``broker_ids``."""

    broker_ids: Int32
    requests: Int64
    partitions: Int64


class CountingTransport:
    """Implements ``ports.Transport``: counts the requests to each connected broker, for clusters of any size.

    Costs a few array passes per batch for any number of partitions. No broker responds.
    """

    def __init__(self) -> None:
        self._brokers = Brokers()
        """Separate broker columns, so that counts outlive the columns of one controller; registered means connected."""
        self._requests: dict[Api, Int64] = {api: np.empty(0, np.int64) for api in Api}
        self._partitions: dict[Api, Int64] = {api: np.empty(0, np.int64) for api in Api}

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready. Nothing is ever notified."""

    def close(self) -> None:
        """Drop every connection. The counts remain."""
        self._brokers.registered[:] = 0

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Count for these brokers (indexes) from now on."""
        indexes = self._indexes(cluster, np.array(brokers, np.int32))
        self._brokers.registered[indexes] = 1

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Stop counting for these brokers (indexes)."""
        indexes = self._indexes(cluster, np.array(brokers, np.int32))
        self._brokers.registered[indexes] = 0

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Count a batch."""
        metadata = requests.metadata_brokers
        everywhere = np.full(len(metadata), len(requests.metadata_rows), np.int64)
        self._count(Api.LEADER_AND_ISR, cluster, *_lengths(requests.leader_and_isr))
        self._count(Api.UPDATE_METADATA, cluster, metadata, everywhere)
        self._count(Api.STOP_REPLICA, cluster, *_lengths(requests.stop_replica))

    def queues(self) -> Mapping[int, BrokerQueue]:
        """Empty. This transport has no queues."""
        return {}

    def sent(self, api: Api) -> Sent:
        """All counts of one api since the start or ``reset``. Brokers are in the order of their first use."""
        return Sent(self._brokers.ids.copy(), self._requests[api].copy(), self._partitions[api].copy())

    def reset(self) -> None:
        """Count from zero again."""
        for counts in (*self._requests.values(), *self._partitions.values()):
            counts[:] = 0

    def _count(self, api: Api, cluster: ClusterState, brokers: Int32, partitions: Int64) -> None:
        indexes = self._indexes(cluster, brokers)
        connected = self._brokers.registered[indexes] != 0
        self._requests[api][indexes[connected]] += 1  # A batch names a broker once per api.
        self._partitions[api][indexes[connected]] += partitions[connected]
        if not connected.all():
            _log.warning("%s to %d brokers dropped: not connected", api, int(np.count_nonzero(~connected)))

    def _indexes(self, cluster: ClusterState, brokers: Int32) -> Int32:
        """Our own indexes of these brokers; replaces the columns if one of them is new."""
        indexes = self._brokers.index_of(cluster.brokers.ids[brokers])
        for table in (self._requests, self._partitions):
            for api, counts in table.items():
                table[api] = np.append(counts, np.zeros(len(self._brokers) - len(counts), np.int64))
        return indexes


def _lengths(batch: BrokerRows) -> tuple[Int32, Int64]:
    return batch.brokers, np.diff(batch.offsets).astype(np.int64)
