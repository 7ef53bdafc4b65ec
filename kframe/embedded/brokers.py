"""Brokers that receive control requests and respond as a scenario specifies. They use no threads, sockets or real
time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from kframe.embedded.clock import VirtualClock
from kframe.embedded.describe import Request, describe_requests
from kframe.embedded.transport import drop_unconnected
from kframe.errors import ErrorCode, InputError
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.model.ids import Api
from kframe.model.requests import ControlRequests
from kframe.model.topic_partitions import topic_partition
from kframe.ports.store import MayAct, Notify
from kframe.ports.transport import BrokerQueue
from kframe.runtime.samples import Samples

#: Used instead of an error name: the broker receives requests and does not respond.
SILENT: Final = "SILENT"
NONE: Final = "NONE"
#: Time until a request without a response is sent again (request.timeout.ms).
REQUEST_TIMEOUT_MS: Final = 30_000


class ResponseTable:
    """Configured responses: an error by broker and api, or by broker, api and partition. NONE by default."""

    def __init__(self) -> None:
        self._configured: dict[tuple[int, Api, str | None], str] = {}

    def configure(self, broker_id: int, error: str, api: Api | None, partitions: tuple[str, ...]) -> None:
        """Configure responses from now on: for all three apis without ``api``, for whole requests without
        ``partitions``. NONE removes an earlier setting. Raises InputError for an error that Kafka does not have, and
        for SILENT with partitions."""
        where = f"response of broker {broker_id}"
        if error not in ErrorCode.__members__ and error != SILENT:
            raise InputError(where, f"error {error!r}", "NONE, SILENT or an error by Kafka's name")
        if error == SILENT and partitions:
            raise InputError(where, "SILENT for some partitions", "SILENT for a whole api")
        for name in Api if api is None else (api,):
            if error == NONE and not partitions:
                self._configured = {
                    key: value for key, value in self._configured.items() if key[:2] != (broker_id, name)
                }
            for partition in partitions or (None,):
                if error == NONE:
                    self._configured.pop((broker_id, name, partition), None)
                else:
                    self._configured[broker_id, name, partition] = error

    def mute(self, broker_id: int) -> bool:
        """Whether the broker responds to none of the three apis."""
        return bool(self._configured) and all(self._configured.get((broker_id, api, None)) == SILENT for api in Api)

    def errors(self, request: Request) -> tuple[ErrorCode, dict[str, ErrorCode]]:
        """The configured errors of this request: for the whole request, and for each of its partitions with its own
        setting."""
        broker_id, api = request["broker"], Api(request["api"])
        top = self._error(broker_id, api, None, ErrorCode.NONE)
        errors = {name: self._error(broker_id, api, name, ErrorCode.NONE) for name in request["partitions"]}
        return top, {name: error for name, error in errors.items() if error is not ErrorCode.NONE}

    def silent(self, request: Request) -> bool:
        """Whether the broker receives this request without responding."""
        return self._configured.get((request["broker"], request["api"], None)) == SILENT

    def response(self, delivery: Delivery) -> Event | None:
        """The event for the controller when the response to this request arrives.

        An error for the whole api is the top-level error, and the error of each partition without its own. A response
        to StopReplica causes an event only if the request deletes replicas (``wire.md`` section 3).
        """
        request = delivery.request
        broker_id, api = request["broker"], Api(request["api"])
        top, by_partition = self.errors(request)
        errors = ((topic_partition(name), by_partition.get(name, top)) for name in request["partitions"])
        partition_errors = tuple((key, error) for key, error in errors if error is not ErrorCode.NONE)
        match api:
            case Api.LEADER_AND_ISR:
                return LeaderAndIsrResponseReceived(
                    broker_id,
                    top,
                    partition_errors,
                    request["controller_epoch"],
                    delivery.rows,
                    delivery.broker_epoch,
                )
            case Api.UPDATE_METADATA:
                return UpdateMetadataResponseReceived(broker_id, top, request["controller_epoch"], delivery.batch)
            case Api.STOP_REPLICA if len(delivery.rows):
                return StopReplicaResponseReceived(
                    broker_id,
                    top,
                    partition_errors,
                    request["controller_epoch"],
                    delivery.rows,
                    delivery.broker_epoch,
                )
            case Api.STOP_REPLICA:
                return None

    def _error(self, broker_id: int, api: Api, partition: str | None, otherwise: ErrorCode) -> ErrorCode:
        error = self._configured.get((broker_id, api, partition))
        return otherwise if error is None or error == SILENT else ErrorCode[error]


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A request in transit, and the controller's rows for its response. For StopReplica these are deleted replicas."""

    request: Request
    rows: Int32
    batch: int
    """Number of the batch of the request."""
    broker_epoch: int
    """The broker epoch of the registration that receives the request."""

    @staticmethod
    def of(cluster: ClusterState, request: Request, batch: int) -> Delivery:
        """Look up the rows while the columns match the request."""
        names = [name for name, entry in request["partitions"].items() if entry.get("delete_partition", True)]
        rows = [cluster.row(*topic_partition(name)) for name in names]
        broker = cluster.brokers.index_of([request["broker"]])[0]
        broker_epoch = int(cluster.brokers.broker_epoch[broker])
        return Delivery(request, np.array([row for row in rows if row is not None], np.int32), batch, broker_epoch)


@dataclass(slots=True)
class FifoChannel:
    """The FIFO queue of requests for one registration of a broker, with one request in flight."""

    waiting: deque[tuple[float, Delivery]] = field(default_factory=deque)
    """Waiting requests, each with the time at which it was queued."""
    times: Samples = field(default_factory=Samples)
    """Waiting times of the requests that left the queue."""
    in_flight: Delivery | None = None
    """Received by the broker, without a response so far."""
    response: Event | None = None
    """The response that the broker will give when it is no longer silent."""


class EmbeddedBrokers:
    """Implements ``ports.Transport``: brokers that respond immediately and without error, unless configured otherwise.

    It models the queue of requests to each broker, responses, silence and timeouts. It models no log, no ISR and no
    bytes: ``kframe_simulator.broker.Broker`` models logs and ISRs, fake brokers of the wire plugin model connections.

    A silent broker blocks only its own queue. After ``request_timeout_ms`` of the clock it receives the same request
    again, and so on. ``notify`` receives the answers as LeaderAndIsrResponseReceived, UpdateMetadataResponseReceived
    and StopReplicaResponseReceived. The configured responses remain when a broker unregisters; its queue does not.
    """

    def __init__(self, clock: VirtualClock, request_timeout_ms: int = REQUEST_TIMEOUT_MS) -> None:
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._notify: Notify | None = None
        self._may_act: MayAct = _always
        self._channels: dict[int, FifoChannel] = {}
        self._responses = ResponseTable()
        self._received: dict[int, list[Request]] = {}

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready; ``notify`` receives the brokers' responses. While ``may_act`` is false, no request leaves."""
        self._notify, self._may_act = notify, may_act

    def close(self) -> None:
        """Drop every queue and connection. Received requests remain readable."""
        for broker_id in tuple(self._channels):
            self._drop(broker_id)

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) have registered: each gets a new, empty queue."""
        for broker_id in cluster.brokers.ids_of(brokers):
            self._drop(broker_id)
            self._channels[broker_id] = FifoChannel()

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) have unregistered. Their queues are dropped."""
        for broker_id in cluster.brokers.ids_of(brokers):
            self._drop(broker_id)

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Queue a batch with the present values of the columns, and let every broker receive what it can."""
        for delivery in tuple(self._deliveries(cluster, requests)):
            channel = self._channels.get(delivery.request["broker"])
            if channel is None:
                drop_unconnected(delivery.request)
                continue
            channel.waiting.append((self._clock.now_ms(), delivery))
            self._deliver(channel)

    def respond_with(
        self, broker_id: int, error: str, api: Api | None = None, partitions: Iterable[str] | None = None
    ) -> None:
        """Configure the responses of a broker (step ``answer`` of a scenario). Partitions have the form ``t-0``.

        ``error`` is the name of a Kafka error, or SILENT; NONE removes an earlier setting. A broker that is no longer
        silent gives the delayed response, as determined when it received the request. Raises InputError for an unknown
        error, and for SILENT with partitions.
        """
        self._responses.configure(broker_id, error, api, tuple(partitions or ()))
        channel = self._channels.get(broker_id)
        if channel is None or channel.in_flight is None:
            return
        if not self._responses.silent(channel.in_flight.request):
            self._clock.cancel(_timer(broker_id))
            self._respond(channel)
            self._deliver(channel)

    def fail_log_dir(self, broker_id: int, partitions: Iterable[str]) -> None:
        """Simulate the failure of a log directory. The broker responds with KAFKA_STORAGE_ERROR to LeaderAndIsr and
        StopReplica for these partitions (``docs/reference/controller/broker-partition.md`` section 12)."""
        for api in (Api.LEADER_AND_ISR, Api.STOP_REPLICA):
            self.respond_with(broker_id, ErrorCode.KAFKA_STORAGE_ERROR.name, api, partitions)

    def take(self) -> list[Request]:
        """Requests that brokers have received since the last call, by broker id, in order per broker. Read-only."""
        received, self._received = self._received, {}
        return [request for broker_id in sorted(received) for request in received[broker_id]]

    @property
    def acknowledges(self) -> bool:
        """True: responses to UpdateMetadata name the batch."""
        return True

    def queues(self) -> Mapping[int, BrokerQueue]:
        """The queue of each connected broker. It excludes the request in flight."""
        channels = tuple(self._channels.items())
        return {broker_id: BrokerQueue(len(channel.waiting), channel.times) for broker_id, channel in channels}

    def _deliveries(self, cluster: ClusterState, requests: ControlRequests) -> Iterator[Delivery]:
        return (Delivery.of(cluster, request, requests.batch) for request in describe_requests(cluster, requests))

    def _response(self, delivery: Delivery) -> Event | None:
        """The response to a request that the broker has received."""
        return self._responses.response(delivery)

    def _deliver(self, channel: FifoChannel) -> None:
        while channel.waiting and channel.in_flight is None:
            queued_ms, delivery = channel.waiting.popleft()
            channel.times.add(self._clock.now_ms() - queued_ms)
            self._receive(channel, delivery)

    def _receive(self, channel: FifoChannel, delivery: Delivery) -> None:
        """Deliver a request, for the first time or again. Drop it if the controller may not act."""
        if not self._may_act():
            channel.in_flight = None
            return
        request = delivery.request
        broker_id = request["broker"]
        self._received.setdefault(broker_id, []).append(request)
        channel.in_flight, channel.response = delivery, self._response(delivery)
        if self._responses.silent(request):
            retry = partial(self._receive, channel, delivery)
            self._clock.schedule(_timer(broker_id), self._request_timeout_ms, retry)
        else:
            self._respond(channel)

    def _respond(self, channel: FifoChannel) -> None:
        response, channel.in_flight, channel.response = channel.response, None, None
        if response is not None and self._notify is not None:
            self._notify(response)

    def _drop(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.waiting.clear()
            self._clock.cancel(_timer(broker_id))


def _always() -> bool:
    """The initial ``may_act``, before a controller opens the transport."""
    return True


def _timer(broker_id: int) -> str:
    return f"embedded-brokers/request-timeout/{broker_id}"
