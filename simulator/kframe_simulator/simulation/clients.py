"""Producers that retry, and consumers, with metadata from brokers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.messages import (
    CONSUMER,
    UNDEFINED,
    EndTransaction,
    Fetch,
    FetchPartition,
    FetchResponse,
    Metadata,
    MetadataResponse,
    Produce,
    ProduceResponse,
    Response,
)
from kframe_simulator.broker.outgoing import Message
from kframe_simulator.simulation.broker_messages import BrokerHost
from kframe_simulator.simulation.network import OUTSIDE
from kframe_simulator.simulation.observations import RecordAcknowledged, RecordsRead
from kframe_simulator.simulation.options import ProducerOptions
from kframe_simulator.simulation.record_history import Value

#: Network indexes of producers begin here.
FIRST_ID: Final = 2000
#: The request timeout of a client, and of acks=all on a broker.
REQUEST_MS: Final = 7_000.0
REPLICATION_MS: Final = 6_000.0
#: The delay before a retry, and the number of attempts.
BACKOFF_MS: Final = 400.0
TRIES_MAX: Final = 8
#: The number of earlier requests that can be repeated.
SENT_MAX: Final = 4
#: After these errors an idempotent producer needs another epoch.
_FENCED: Final = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)


class Write(NamedTuple):
    """A task of a producer: a record for a partition, or, without value, the end of a transaction there."""

    key: TopicPartition
    topic_number: int
    """The number of earlier topics with this name."""
    value: Value | None
    transaction: int = UNDEFINED


class Producer:
    """A producer with one request in flight."""

    def __init__(self, clients: Clients, number: int, options: ProducerOptions) -> None:
        self.network_id = FIRST_ID + number
        self.options = options
        self._clients, self._number = clients, number
        self._id = number if options.idempotent else UNDEFINED
        self._epoch = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._waiting: deque[Write] = deque()
        self._written = self._transaction = 0
        self._tries = self._attempt = 0

    @property
    def idle(self) -> bool:
        """Whether the producer has no task."""
        return not self._waiting

    def write(self, key: TopicPartition, count: int) -> None:
        """Write records, in one transaction if the producer is transactional."""
        topic_number, transaction = self._clients.simulation.watch.record_history.topic_number(key), UNDEFINED
        if self.options.transactional:
            self._transaction += 1
            transaction = self._transaction
        began = self.idle
        for _ in range(count):
            self._written += 1
            self._waiting.append(Write(key, topic_number, Value(self._number, self._written, transaction), transaction))
        if self.options.transactional:
            self._waiting.append(Write(key, topic_number, None, transaction))
        if began:
            self._begin()

    def _begin(self) -> None:
        """Begin the next task."""
        self._tries = 0
        if self._waiting:
            self._try()

    def _try(self) -> None:
        """Request the leader and send the record to it. A missing response counts as a failure."""
        self._attempt += 1
        self._tries += 1
        attempt, write = self._attempt, self._waiting[0]
        if self._tries > TRIES_MAX:
            self._give_up(write)
            return
        self._clients.simulation.scheduler.after(REQUEST_MS, partial(self._failed, attempt))
        result = partial(self._send, attempt, write)
        self._clients.find_leader(self.network_id, self._number + self._tries, write.key, result)

    def _send(self, attempt: int, write: Write, leader: int, _leader_epoch: int) -> None:
        if attempt != self._attempt:
            return
        if leader < 0:
            self._retry(attempt)
            return
        request = self._request(write)
        promise = isinstance(request, Produce)
        self._clients.send(
            self.network_id,
            leader,
            request,
            write.topic_number if promise else None,
            partial(self._on_response, attempt),
        )
        if self.options.acks == 0 and promise:
            self._done(write)

    def _request(self, write: Write) -> Produce | EndTransaction:
        if write.value is None:
            self._clients.simulation.watch.record_history.decided.add((self._id, write.transaction))
            return EndTransaction(write.key, self._id, self._epoch, committed=bool(write.transaction % 2))
        sequence = self._sequences.get(write.key, 0) if self.options.idempotent else UNDEFINED
        epoch = self._epoch if self.options.idempotent else UNDEFINED
        return Produce(
            write.key,
            write.value,
            self.options.acks,
            REPLICATION_MS,
            self._clients.next_correlation(),
            self._id,
            epoch,
            sequence,
            self.options.transactional,
        )

    def _on_response(self, attempt: int, response: object) -> None:
        if attempt != self._attempt or not self._waiting:
            return
        error = response.error if isinstance(response, ProduceResponse) else None
        if error is ErrorCode.NONE:
            self._done(self._waiting[0])
        elif error in _FENCED:
            self._give_up(self._waiting[0])
        else:
            self._retry(attempt)

    def _retry(self, attempt: int) -> None:
        self._clients.simulation.scheduler.after(BACKOFF_MS, partial(self._failed, attempt))

    def _failed(self, attempt: int) -> None:
        if attempt == self._attempt and self._waiting:
            self._try()

    def _done(self, write: Write) -> None:
        if self.options.idempotent and write.value is not None:
            self._sequences[write.key] = self._sequences.get(write.key, 0) + 1
        self._attempt += 1
        self._waiting.popleft()
        self._begin()

    def _give_up(self, write: Write) -> None:
        """Give up a write with unknown outcome, and the rest of its transaction. Sequences restart under another
        producer epoch."""
        self._clients.simulation.counts["given up"] += 1
        self._clients.simulation.watch.record_history.decided.add((self._id, write.transaction))
        self._epoch += 1
        self._sequences.clear()
        self._attempt += 1
        self._waiting.popleft()
        while self._waiting and self._waiting[0].transaction == write.transaction != UNDEFINED:
            self._waiting.popleft()
        self._begin()


class Clients:
    """All clients of a simulation."""

    def __init__(self, simulation: BrokerHost, producers: tuple[ProducerOptions, ...]) -> None:
        self.simulation = simulation
        self.producers = [Producer(self, number, options) for number, options in enumerate(producers)]
        self.sent: deque[tuple[int, Produce, int]] = deque(maxlen=SENT_MAX)
        """Earlier requests: the broker, the request, and the number of its topic."""
        self._correlation = 0
        self._delayed: dict[int, tuple[Produce, int, Callable[[Any], None]]] = {}
        """By correlation: requests with a delayed response."""
        self._positions: dict[tuple[TopicPartition, int, bool], int] = {}
        self._epochs: dict[tuple[TopicPartition, int], int] = {}
        """The latest leader epoch that consumers know, by partition and topic number."""

    def next_correlation(self) -> int:
        """The correlation of the next producer request."""
        self._correlation += 1
        return self._correlation

    # -- All clients.

    def find_leader(self, index: int, number: int, key: TopicPartition, result: Callable[[int, int], None]) -> None:
        """Request the leader from a broker. ``result`` gets the leader and its epoch, -1 if the broker knows none."""
        ids = self.simulation.options.brokers
        broker_id = ids[number % len(ids)]

        def on_response(response: object) -> None:
            partition = response.partitions.get(key) if isinstance(response, MetadataResponse) else None
            result(*((partition.leader, partition.leader_epoch) if partition is not None else (UNDEFINED, UNDEFINED)))

        self.send(index, broker_id, Metadata((key[0],)), None, on_response)

    def send(
        self, index: int, broker_id: int, request: Any, topic_number: int | None, on_response: Callable[[Any], None]
    ) -> None:
        """Send a request to a broker and deliver its response. A Produce request has a ``topic_number``."""
        simulation = self.simulation
        broker = simulation.brokers[broker_id]
        if topic_number is not None:
            self.sent.append((broker_id, request, topic_number))

        def deliver_response(response: object) -> None:
            simulation.network.deliver(broker_id, index, partial(on_response, response))

        def respond(response: Response | None) -> None:
            if topic_number is not None and isinstance(response, ProduceResponse):
                self._acknowledged(request, response, topic_number)
            deliver_response(response)

        if topic_number is not None and request.acks == -1:
            self._delayed[request.correlation] = request, topic_number, deliver_response
        simulation.network.deliver(index, broker_id, lambda: broker.ask(request, respond))

    def on_response(self, correlation: int, message: Message) -> None:
        """A broker sends a delayed response."""
        delayed = self._delayed.pop(correlation, None)
        if delayed is not None and isinstance(message, ProduceResponse):
            request, topic_number, deliver_response = delayed
            self._acknowledged(request, message, topic_number)
            deliver_response(message)

    def _acknowledged(self, request: Produce, response: ProduceResponse, topic_number: int) -> None:
        watch = self.simulation.watch
        if watch.record_history.acknowledge(request, response, topic_number):
            watch.check(RecordAcknowledged(request.partition))

    # -- Consumers.

    def read(self, key: TopicPartition, committed: bool, number: int) -> None:
        """A consumer reads the next records of a partition."""
        topic_number = self.simulation.watch.record_history.topic_number(key)
        self.find_leader(OUTSIDE, number, key, partial(self._fetch, key, topic_number, committed))

    def _fetch(self, key: TopicPartition, topic_number: int, committed: bool, leader: int, leader_epoch: int) -> None:
        if (
            leader < 0
            or leader_epoch < self._epochs.get((key, topic_number), 0)
            or topic_number != self.simulation.watch.record_history.topic_number(key)
        ):
            return  # The leader epoch is older than the known one: a consumer does not go back.
        self._epochs[key, topic_number] = leader_epoch
        offset = self._positions.get((key, topic_number, committed), 0)
        partition = FetchPartition(offset, current_leader_epoch=leader_epoch)
        on_response = partial(self._fetched, key, topic_number, committed, leader_epoch, offset)
        self.send(OUTSIDE, leader, Fetch(CONSUMER, {key: partition}, committed), None, on_response)

    def _fetched(
        self, key: TopicPartition, topic_number: int, committed: bool, leader_epoch: int, offset: int, response: object
    ) -> None:
        record_history = self.simulation.watch.record_history
        if not isinstance(response, FetchResponse) or not record_history.watched(key):
            return
        if topic_number != record_history.topic_number(key) or leader_epoch < record_history.floor.get(key, 0):
            return  # The response concerns an earlier topic or leader epoch.
        partition = response.partitions[key]
        if partition.error not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return
        self.simulation.counts["records read"] += len(partition.records)
        self.simulation.watch.check(RecordsRead(key, offset, committed, partition))
        end = partition.log_end_offset if partition.error is not ErrorCode.NONE else offset + len(partition.records)
        self._positions[key, topic_number, committed] = end
