"""Brokers that take control requests and answer them as a scenario says; no thread, no socket, no real time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from kframe.embedded.clock import VirtualClock
from kframe.embedded.describe import Api, Request, describe_requests
from kframe.embedded.transport import drop_unconnected
from kframe.errors import ErrorCode, InputError
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered, TopicPartition, UpdateMetadataAnswered
from kframe.model.ports import BrokerQueue, MayAct, Notify
from kframe.model.requests import ControlRequests
from kframe.runtime.samples import Samples

#: Instead of an error's name: requests are taken, but not answered.
SILENT: Final = "SILENT"
NONE: Final = "NONE"
#: How long a request waits for its answer before it is sent again (request.timeout.ms).
REQUEST_TIMEOUT_MS: Final = 30_000


class AnswerTable:
    """How brokers answer: an error by broker and api, or by broker, api and partition; NONE where nothing is said."""

    def __init__(self) -> None:
        self._said: dict[tuple[int, Api, str | None], str] = {}

    def say(self, broker_id: int, error: str, api: Api | None, partitions: tuple[str, ...]) -> None:
        """From now on: without ``api`` for all three, without ``partitions`` for the whole of it; NONE takes back what
        was said. Raises InputError for an error that Kafka has not, and for SILENT for some partitions."""
        where = f"answer of broker {broker_id}"
        if error not in ErrorCode.__members__ and error != SILENT:
            raise InputError(where, f"error {error!r}", "NONE, SILENT or an error by Kafka's name")
        if error == SILENT and partitions:
            raise InputError(where, "SILENT for some partitions", "SILENT for a whole api")
        for name in Api if api is None else (api,):
            if error == NONE and not partitions:
                self._said = {key: said for key, said in self._said.items() if key[:2] != (broker_id, name)}
            for partition in partitions or (None,):
                if error == NONE:
                    self._said.pop((broker_id, name, partition), None)
                else:
                    self._said[broker_id, name, partition] = error

    def mute(self, broker_id: int) -> bool:
        """Whether the broker answers none of the three."""
        return bool(self._said) and all(self._said.get((broker_id, api, None)) == SILENT for api in Api)

    def errors(self, request: Request) -> tuple[ErrorCode, dict[str, ErrorCode]]:
        """What was said of this request: for the whole of it, and for those of its partitions that were named."""
        broker_id, api = request["broker"], Api(request["api"])
        top = self._error(broker_id, api, None, ErrorCode.NONE)
        own = {name: self._error(broker_id, api, name, ErrorCode.NONE) for name in request["partitions"]}
        return top, {name: error for name, error in own.items() if error is not ErrorCode.NONE}

    def silent(self, request: Request) -> bool:
        """Whether the broker takes this request without answering it."""
        return self._said.get((request["broker"], request["api"], None)) == SILENT

    def answer(self, delivery: Delivery) -> Event | None:
        """What a controller is told of this request's answer, once it comes.

        An error for the whole api stands at the top level, and for each partition that has none of its own.
        StopReplica's answer tells a controller nothing unless replicas are deleted (``wire.md`` section 3).
        """
        request = delivery.request
        broker_id, api = request["broker"], Api(request["api"])
        top, own = self.errors(request)
        errors = ((name, own.get(name, top)) for name in request["partitions"])
        told = tuple((_split(name), error) for name, error in errors if error is not ErrorCode.NONE)
        match api:
            case Api.LEADER_AND_ISR:
                return LeaderAndIsrAnswered(broker_id, top, told, request["controller_epoch"], delivery.rows)
            case Api.UPDATE_METADATA:
                return UpdateMetadataAnswered(broker_id, top, request["controller_epoch"], delivery.batch)
            case Api.STOP_REPLICA if len(delivery.rows):
                return StopReplicaAnswered(broker_id, top, told, request["controller_epoch"], delivery.rows)
            case Api.STOP_REPLICA:
                return None

    def _error(self, broker_id: int, api: Api, partition: str | None, otherwise: ErrorCode) -> ErrorCode:
        said = self._said.get((broker_id, api, partition))
        return otherwise if said is None or said == SILENT else ErrorCode[said]


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A request on its way, and the controller's rows that its answer is about: of StopReplica those it deletes."""

    request: Request
    rows: Int32
    batch: int
    """Number of the batch that the request belongs to."""

    @staticmethod
    def of(cluster: ClusterState, request: Request, batch: int) -> Delivery:
        """Look the rows up while the columns are as the request says."""
        about = [name for name, entry in request["partitions"].items() if entry.get("delete_partition", True)]
        rows = [cluster.row(*_split(name)) for name in about]
        return Delivery(request, np.array([row for row in rows if row is not None], np.int32), batch)


@dataclass(slots=True)
class Channel:
    """The requests for one registration of a broker, first in, first out; one in flight."""

    waiting: deque[tuple[float, Delivery]] = field(default_factory=deque)
    """Each with the time at which it was queued."""
    times: Samples = field(default_factory=Samples)
    """How long those that were taken had waited."""
    in_flight: Delivery | None = None
    """Received by the broker, which is silent."""
    answer: Event | None = None
    """What the broker will say to it, should it ever."""


class EmbeddedBrokers:
    """Implements ``ports.Transport``: brokers that answer at once and without error, unless told otherwise.

    A silent broker holds back its own queue only; after ``request_timeout_ms`` of the clock it is sent the same request
    again, and so on. Answers are told to ``notify`` as LeaderAndIsrAnswered and UpdateMetadataAnswered. How brokers
    answer outlasts their registrations; what is queued for them does not.
    """

    def __init__(self, clock: VirtualClock, request_timeout_ms: int = REQUEST_TIMEOUT_MS) -> None:
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._notify: Notify | None = None
        self._may_act: MayAct = _always
        self._channels: dict[int, Channel] = {}
        self._answers = AnswerTable()
        self._received: dict[int, list[Request]] = {}

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready; ``notify`` hears the brokers' answers. Whoever may not act any more reaches no broker."""
        self._notify, self._may_act = notify, may_act

    def close(self) -> None:
        """Drop every queue and connection; what was received stays to be read."""
        for broker_id in tuple(self._channels):
            self._drop(broker_id)

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) have registered: each gets a new, empty queue."""
        for broker_id in cluster.brokers.ids_of(brokers):
            self._drop(broker_id)
            self._channels[broker_id] = Channel()

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) are gone, and what was queued for them with them."""
        for broker_id in cluster.brokers.ids_of(brokers):
            self._drop(broker_id)

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Queue a batch, with what the columns say now, and let every broker take what it can."""
        for delivery in tuple(self._deliveries(cluster, requests)):
            channel = self._channels.get(delivery.request["broker"])
            if channel is None:
                drop_unconnected(delivery.request)
                continue
            channel.waiting.append((self._clock.now_ms(), delivery))
            self._deliver(channel)

    def answer(
        self, broker_id: int, error: str, api: Api | None = None, partitions: Iterable[str] | None = None
    ) -> None:
        """How a broker answers from now on (step ``answer`` of a scenario; partitions are written ``t-0``).

        ``error`` is Kafka's name of one, or SILENT; NONE takes back what was said before. A broker that is not silent
        any more answers what it has held back, as it would have when it received it. Raises InputError for an unknown
        error, and for SILENT for some partitions only.
        """
        self._answers.say(broker_id, error, api, tuple(partitions or ()))
        channel = self._channels.get(broker_id)
        if channel is None or channel.in_flight is None:
            return
        if not self._answers.silent(channel.in_flight.request):
            self._clock.cancel(_timer(broker_id))
            self._answered(channel)
            self._deliver(channel)

    def fail_log_dir(self, broker_id: int, partitions: Iterable[str]) -> None:
        """A log directory of a broker has died: from now on it answers KAFKA_STORAGE_ERROR to LeaderAndIsr and
        StopReplica for these partitions (``docs/reference/controller/broker-partition.md`` section 12)."""
        for api in (Api.LEADER_AND_ISR, Api.STOP_REPLICA):
            self.answer(broker_id, ErrorCode.KAFKA_STORAGE_ERROR.name, api, partitions)

    def take(self) -> list[Request]:
        """What brokers have received since the last call: by broker id, and for one broker in order. Only read it."""
        received, self._received = self._received, {}
        return [request for broker_id in sorted(received) for request in received[broker_id]]

    @property
    def acknowledges(self) -> bool:
        """Answers to UpdateMetadata name the batch."""
        return True

    def queues(self) -> Mapping[int, BrokerQueue]:
        """What waits for each connected broker, behind the request in flight."""
        channels = tuple(self._channels.items())
        return {broker_id: BrokerQueue(len(channel.waiting), channel.times) for broker_id, channel in channels}

    def _deliveries(self, cluster: ClusterState, requests: ControlRequests) -> Iterator[Delivery]:
        return (Delivery.of(cluster, request, requests.batch) for request in describe_requests(cluster, requests))

    def _answer(self, delivery: Delivery) -> Event | None:
        """The answer to a request that the broker has received."""
        return self._answers.answer(delivery)

    def _deliver(self, channel: Channel) -> None:
        while channel.waiting and channel.in_flight is None:
            queued_ms, delivery = channel.waiting.popleft()
            channel.times.add(self._clock.now_ms() - queued_ms)
            self._receive(channel, delivery)

    def _receive(self, channel: Channel, delivery: Delivery) -> None:
        """The broker takes a request: for the first time, or again; none from one who may not act."""
        if not self._may_act():
            channel.in_flight = None
            return
        request = delivery.request
        broker_id = request["broker"]
        self._received.setdefault(broker_id, []).append(request)
        channel.in_flight, channel.answer = delivery, self._answer(delivery)
        if self._answers.silent(request):
            again = partial(self._receive, channel, delivery)
            self._clock.schedule(_timer(broker_id), self._request_timeout_ms, again)
        else:
            self._answered(channel)

    def _answered(self, channel: Channel) -> None:
        answer, channel.in_flight, channel.answer = channel.answer, None, None
        if answer is not None and self._notify is not None:
            self._notify(answer)

    def _drop(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.waiting.clear()
            self._clock.cancel(_timer(broker_id))


def _always() -> bool:
    """Asked before there is a controller."""
    return True


def _timer(broker_id: int) -> str:
    return f"embedded-brokers/request-timeout/{broker_id}"


def _split(name: str) -> TopicPartition:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)
