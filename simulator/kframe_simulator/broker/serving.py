"""Responses to followers and clients (Kafka 3.9 ``ReplicaManager``, ``Partition``, ``DelayedProduce``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    CONSUMER,
    NO_ID,
    UNDEFINED,
    EndTransaction,
    EpochEnd,
    Fetch,
    Fetched,
    FetchPartition,
    FetchResponse,
    Metadata,
    MetadataResponse,
    OffsetForLeaderPartition,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    Produce,
    ProduceResponse,
    Record,
    RecordKind,
)
from kframe_simulator.broker.node import NEVER, Node
from kframe_simulator.broker.outgoing import Peer
from kframe_simulator.broker.partition import Partition
from kframe_simulator.broker.replicas import Replicas

_ACKS: Final = (-1, 0, 1)


class _DelayedResponse:
    """A response that is delayed until the high watermark of a partition has risen."""

    __slots__ = ("condition", "correlation", "deadline", "done", "node")

    def __init__(
        self, node: Node, request: Produce, now: float, condition: Callable[[], ProduceResponse | None]
    ) -> None:
        self.node = node
        self.correlation = request.correlation
        self.deadline = now + request.timeout_ms
        self.condition = condition
        self.done = False

    def try_complete(self, now: float) -> bool:
        """Respond if the condition holds. Respond also if the time is up. Returns whether the request is complete."""
        if not self.done:
            timeout = ProduceResponse(ErrorCode.REQUEST_TIMED_OUT) if now >= self.deadline else None
            response = self.condition() or timeout
            if response is not None:
                self.done = True
                self.node.send(Peer.CLIENT, self.correlation, response)
        return self.done


def _readable(log: Log, request: Fetch) -> int:
    """The offset up to which the sender of a Fetch may read."""
    if request.replica_id != CONSUMER:
        return log.end
    return log.last_stable_offset() if request.committed else log.high_watermark


class Serving:
    """Handles requests about records."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._node = replicas.node
        self._delayed: list[_DelayedResponse] = []

    # -- Reads.

    def fetch(self, request: Fetch, now: float) -> FetchResponse:
        """Return records to a follower or a consumer. A follower's offset may change the ISR."""
        return FetchResponse({key: self._read(request, key, item, now) for key, item in request.partitions.items()})

    def _read(self, request: Fetch, key: TopicPartition, partition_request: FetchPartition, now: float) -> Fetched:
        replica_id = request.replica_id
        partition = self._replicas.find(key)
        if isinstance(partition, ErrorCode):
            return Fetched(partition)
        error = partition.check_leader_epoch(partition_request.current_leader_epoch)
        log = partition.leader_log
        if error is not ErrorCode.NONE:
            return Fetched(error)
        if log is None:
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if NO_ID not in (partition_request.topic_id, log.topic_id) and partition_request.topic_id != log.topic_id:
            return Fetched(ErrorCode.INCONSISTENT_TOPIC_ID)
        if replica_id != CONSUMER and replica_id not in partition.replicas:
            has_epoch = partition_request.current_leader_epoch != UNDEFINED
            return Fetched(ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        fetched = self._records(log, partition_request, _readable(log, request))
        if replica_id != CONSUMER and fetched.error is ErrorCode.NONE and fetched.diverging is None:
            partition.fetched(replica_id, partition_request.fetch_offset, fetched.log_end_offset, now)
        return fetched

    def _records(self, log: Log, partition_request: FetchPartition, below: int) -> Fetched:
        """The records at an offset, or the diverging epoch if the follower's log is not a prefix of this log. The high
        watermark is the one before the fetch."""
        high, end = log.high_watermark, log.end
        out_of_range = Fetched(ErrorCode.OFFSET_OUT_OF_RANGE, high, end)
        if partition_request.last_fetched_epoch != UNDEFINED:
            epoch_end = log.end_of_epoch(partition_request.last_fetched_epoch)
            if epoch_end.end_offset == UNDEFINED:
                return out_of_range
            if (
                epoch_end.leader_epoch < partition_request.last_fetched_epoch
                or epoch_end.end_offset < partition_request.fetch_offset
            ):
                return Fetched(ErrorCode.NONE, high, end, (), epoch_end)
        if not 0 <= partition_request.fetch_offset <= end:
            return out_of_range
        records = log.read(partition_request.fetch_offset, self._node.config.fetch_records_max, below)
        return Fetched(ErrorCode.NONE, high, end, records)

    def epochs(self, request: OffsetsForLeaderEpoch) -> OffsetsForLeaderEpochResponse:
        """The ends of leader epochs."""
        return OffsetsForLeaderEpochResponse(
            {key: self._epoch_end(key, item) for key, item in request.partitions.items()}
        )

    def _epoch_end(
        self, key: TopicPartition, partition_request: OffsetForLeaderPartition
    ) -> tuple[ErrorCode, EpochEnd]:
        unknown_end, partition = EpochEnd(UNDEFINED, UNDEFINED), self._replicas.find(key)
        if isinstance(partition, ErrorCode):
            return partition, unknown_end
        error, log = partition.check_leader_epoch(partition_request.current_leader_epoch), partition.leader_log
        if error is not ErrorCode.NONE:
            return error, unknown_end
        if log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, unknown_end
        return ErrorCode.NONE, log.end_of_epoch(partition_request.leader_epoch)

    def metadata(self, request: Metadata) -> MetadataResponse:
        """The metadata that the controller has sent."""
        cache = self._node.cache
        partitions = {
            key: metadata
            for key, metadata in cache.partitions.items()
            if request.topics is None or key[0] in request.topics
        }
        return MetadataResponse(cache.controller_id, tuple(sorted(cache.live_brokers)), partitions)

    # -- Writes.

    def produce(self, request: Produce, now: float) -> ProduceResponse | None:
        """Append a record. With acks -1 the response waits until all in-sync replicas have it."""
        written = self._append(request, now)
        if request.acks == 0:
            return None
        if request.acks == 1 or written.error is not ErrorCode.NONE:
            return written

        def condition() -> ProduceResponse | None:
            return self._replicated(request.partition, written)

        response = condition()
        if response is None:
            delayed = _DelayedResponse(self._node, request, now, condition)
            self._delayed.append(delayed)
            self._replicas.partitions[request.partition].on_progress.append(delayed.try_complete)
        return response

    def _append(self, request: Produce, now: float) -> ProduceResponse:
        """The offset of the appended record. The error if it failed."""
        if request.acks not in _ACKS:
            return ProduceResponse(ErrorCode.INVALID_REQUIRED_ACKS)
        partition, log = self._led(request.partition)
        if partition is None or log is None:
            return ProduceResponse(self._not_led(request.partition))
        if request.acks == -1 and len(partition.isr) < partition.effective_min_isr:
            return ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS)
        kind = RecordKind.TRANSACTIONAL if request.transactional else RecordKind.DATA
        record = Record(
            partition.leader_epoch, request.value, request.producer_id, request.producer_epoch, request.sequence, kind
        )
        if record.producer_id != UNDEFINED:
            duplicate = log.producers.duplicate(record)
            if duplicate != UNDEFINED:
                return ProduceResponse(ErrorCode.NONE, duplicate, partition.leader_epoch)
        return self._write(partition, log, record, now)

    def end_transaction(self, request: EndTransaction, now: float) -> ProduceResponse:
        """Append a transaction marker."""
        partition, log = self._led(request.partition)
        if partition is None or log is None:
            return ProduceResponse(self._not_led(request.partition))
        kind = RecordKind.COMMIT if request.committed else RecordKind.ABORT
        marker = Record(partition.leader_epoch, None, request.producer_id, request.producer_epoch, UNDEFINED, kind)
        return self._write(partition, log, marker, now)

    def _write(self, partition: Partition, log: Log, record: Record, now: float) -> ProduceResponse:
        error = ErrorCode.NONE if record.producer_id == UNDEFINED else log.producers.check_sequence(record)
        if error is not ErrorCode.NONE:
            return ProduceResponse(error)
        offset = log.append(record)
        partition.advance(now)
        return ProduceResponse(ErrorCode.NONE, offset, partition.leader_epoch)

    def _replicated(self, key: TopicPartition, response: ProduceResponse) -> ProduceResponse | None:
        """The response to an acks=all producer, once the outcome is known."""
        partition, log = self._led(key)
        if partition is None or log is None:
            return ProduceResponse(self._not_led(key))
        if log.high_watermark <= response.offset:
            return None
        if partition.effective_min_isr <= len(partition.maximal_isr):
            return response
        return ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def _led(self, key: TopicPartition) -> tuple[Partition | None, Log | None]:
        partition = self._replicas.partitions.get(key)
        return partition, None if partition is None else partition.leader_log

    def _not_led(self, key: TopicPartition) -> ErrorCode:
        result = self._replicas.find(key)
        return result if isinstance(result, ErrorCode) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def poll(self, now: float) -> float:
        """Complete requests whose time is up. Returns the next due time."""
        if not self._delayed:
            return NEVER
        self._delayed = [
            delayed
            for delayed in self._delayed
            if not delayed.done and not (delayed.deadline <= now and delayed.try_complete(now))
        ]
        return min((delayed.deadline for delayed in self._delayed), default=NEVER)
