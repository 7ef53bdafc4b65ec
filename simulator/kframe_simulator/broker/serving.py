"""Responses to followers and clients (Kafka 3.9 ``ReplicaManager``, ``Partition``, ``DelayedProduce``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    CONSUMER,
    NO_ID,
    UNDEFINED,
    DeleteRecords,
    DeleteRecordsResponse,
    EndTransaction,
    EpochEnd,
    EpochQuestion,
    Fetch,
    Fetched,
    FetchPartition,
    FetchResponse,
    Metadata,
    MetadataResponse,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    Produce,
    ProduceResponse,
    Record,
    RecordKind,
)
from kframe_simulator.broker.node import Node
from kframe_simulator.broker.outgoing import Peer
from kframe_simulator.broker.partition import Partition
from kframe_simulator.broker.replicas import Replicas

_ACKS: Final = (-1, 0, 1)
NEVER: Final = float("inf")
Late: TypeAlias = ProduceResponse | DeleteRecordsResponse


class _Held:
    """An answer that is held back until a partition's watermarks have risen."""

    __slots__ = ("correlation", "deadline", "done", "late", "look", "node")

    def __init__(self, node: Node, request: Produce | DeleteRecords, now: float, look: Callable[[], Late | None],
                 late: Late) -> None:  # fmt: skip
        self.node = node
        self.correlation = request.correlation
        self.deadline = now + request.timeout_ms
        self.look = look
        self.late = late
        self.done = False

    def try_again(self, now: float) -> bool:
        """Answer if it is time; returns whether that is over."""
        if not self.done:
            response = self.look() or (self.late if now >= self.deadline else None)
            if response is not None:
                self.done = True
                self.node.tell(Peer.CLIENT, self.correlation, response)
        return self.done


def _readable(log: Log, request: Fetch) -> int:
    """Up to where somebody may read."""
    if request.replica_id != CONSUMER:
        return log.end
    return log.last_stable_offset() if request.committed else log.high_watermark


class Serving:
    """Requests about records."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._node = replicas.node
        self._held: list[_Held] = []

    # -- reading

    def fetch(self, request: Fetch, now: float) -> FetchResponse:
        """Records for a follower or a consumer, and what the follower's place means for the ISR."""
        return FetchResponse({key: self._read(request, key, item, now) for key, item in request.partitions.items()})

    def _read(self, request: Fetch, key: TopicPartition, asked: FetchPartition, now: float) -> Fetched:
        replica_id = request.replica_id
        partition = self._replicas.find(key)
        if isinstance(partition, ErrorCode):
            return Fetched(partition)
        error = partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.leader_log
        if error is not ErrorCode.NONE:
            return Fetched(error)
        if log is None:
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if NO_ID not in (asked.topic_id, log.topic_id) and asked.topic_id != log.topic_id:
            return Fetched(ErrorCode.INCONSISTENT_TOPIC_ID)
        if replica_id != CONSUMER and replica_id not in partition.replicas:
            epoch_shown = asked.current_leader_epoch != UNDEFINED
            return Fetched(ErrorCode.UNKNOWN_LEADER_EPOCH if epoch_shown else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        notified = self._records(log, asked, _readable(log, request))
        if replica_id != CONSUMER and notified.error is ErrorCode.NONE and notified.diverging is None:
            partition.fetched(replica_id, asked.fetch_offset, asked.log_start_offset, notified.log_end_offset, now)
        return notified

    def _records(self, log: Log, asked: FetchPartition, below: int) -> Fetched:
        """What stands at an offset, unless the log that was read so far is not a prefix of ours. The high watermark
        told is that of before the fetch."""
        high, start, end = log.high_watermark, log.start, log.end
        out_of_range = Fetched(ErrorCode.OFFSET_OUT_OF_RANGE, high, start, end)
        if asked.last_fetched_epoch != UNDEFINED:
            epoch_end = log.end_of_epoch(asked.last_fetched_epoch)
            if epoch_end.end_offset == UNDEFINED or asked.fetch_offset < start:
                return out_of_range
            if epoch_end.leader_epoch < asked.last_fetched_epoch or epoch_end.end_offset < asked.fetch_offset:
                return Fetched(ErrorCode.NONE, high, start, end, (), epoch_end)
        if not start <= asked.fetch_offset <= end:
            return out_of_range
        records = log.read(asked.fetch_offset, self._node.config.fetch_records_max, below)
        return Fetched(ErrorCode.NONE, high, start, end, records)

    def epochs(self, request: OffsetsForLeaderEpoch) -> OffsetsForLeaderEpochResponse:
        """Where leader epochs end."""
        return OffsetsForLeaderEpochResponse({
            key: self._epoch_end(key, item) for key, item in request.partitions.items()
        })  # fmt: skip

    def _epoch_end(self, key: TopicPartition, asked: EpochQuestion) -> tuple[ErrorCode, EpochEnd]:
        nowhere, partition = EpochEnd(UNDEFINED, UNDEFINED), self._replicas.find(key)
        if isinstance(partition, ErrorCode):
            return partition, nowhere
        error, log = partition.check_leader_epoch(asked.current_leader_epoch), partition.leader_log
        if error is not ErrorCode.NONE:
            return error, nowhere
        if log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, nowhere
        return ErrorCode.NONE, log.end_of_epoch(asked.leader_epoch)

    def metadata(self, request: Metadata) -> MetadataResponse:
        """What the controller has told."""
        cache = self._node.cache
        wanted = {
            key: notified
            for key, notified in cache.partitions.items()
            if request.topics is None or key[0] in request.topics
        }
        return MetadataResponse(cache.controller_id, tuple(sorted(cache.live_brokers)), wanted)

    # -- writing

    def produce(self, request: Produce, now: float) -> ProduceResponse | None:
        """Append a record; with acks -1 the answer waits until all in-sync replicas have it."""
        written = self._append(request, now)
        if request.acks == 0:
            return None
        if request.acks == 1 or written.error is not ErrorCode.NONE:
            return written

        def look() -> ProduceResponse | None:
            return self._replicated(request.partition, written)

        late, response = ProduceResponse(ErrorCode.REQUEST_TIMED_OUT), look()
        if response is None:
            self._hold(_Held(self._node, request, now, look, late), request.partition)
        return response

    def _append(self, request: Produce, now: float) -> ProduceResponse:
        """Where the record stands now, or why it does not."""
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
        """Append a marker."""
        partition, log = self._led(request.partition)
        if partition is None or log is None:
            return ProduceResponse(self._not_led(request.partition))
        kind = RecordKind.COMMIT if request.committed else RecordKind.ABORT
        marker = Record(
            partition.leader_epoch, None, request.producer_id, request.producer_epoch, UNDEFINED, kind
        )  # fmt: skip
        return self._write(partition, log, marker, now)

    def _write(self, partition: Partition, log: Log, record: Record, now: float) -> ProduceResponse:
        error = ErrorCode.NONE if record.producer_id == UNDEFINED else log.producers.judge(record)
        if error is not ErrorCode.NONE:
            return ProduceResponse(error)
        offset = log.append(record)
        partition.advance(now)
        return ProduceResponse(ErrorCode.NONE, offset, partition.leader_epoch)

    def _replicated(self, key: TopicPartition, response: ProduceResponse) -> ProduceResponse | None:
        """The answer to a producer that waits for all replicas, once there is one."""
        partition, log = self._led(key)
        if partition is None or log is None:
            return ProduceResponse(self._not_led(key))
        if log.high_watermark <= response.offset:
            return None
        if partition.effective_min_isr <= len(partition.maximal_isr):
            return response
        return ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def delete_records(self, request: DeleteRecords, now: float) -> DeleteRecordsResponse | None:
        """Drop a leader's records; the answer waits until live followers have dropped theirs."""
        partition, log = self._led(request.partition)
        if partition is None or log is None:
            return DeleteRecordsResponse(self._not_led(request.partition))
        offset = log.high_watermark if request.offset == UNDEFINED else request.offset
        if not 0 <= offset <= log.high_watermark:
            return DeleteRecordsResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.raise_start(offset)

        def look() -> DeleteRecordsResponse | None:
            return self._deleted(request.partition, offset)

        late, response = DeleteRecordsResponse(ErrorCode.REQUEST_TIMED_OUT), look()
        if response is None:
            self._hold(_Held(self._node, request, now, look, late), request.partition)
        return response

    def _deleted(self, key: TopicPartition, offset: int) -> DeleteRecordsResponse | None:
        partition, log = self._led(key)
        if partition is None or log is None:
            return DeleteRecordsResponse(self._not_led(key))
        low = partition.low_watermark()
        return DeleteRecordsResponse(ErrorCode.NONE, low) if low >= offset else None

    def _led(self, key: TopicPartition) -> tuple[Partition | None, Log | None]:
        partition = self._replicas.partitions.get(key)
        return partition, None if partition is None else partition.leader_log

    def _not_led(self, key: TopicPartition) -> ErrorCode:
        result = self._replicas.find(key)
        return result if isinstance(result, ErrorCode) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _hold(self, held: _Held, key: TopicPartition) -> None:
        self._held.append(held)
        self._replicas.partitions[key].on_progress.append(held.try_again)

    def poll(self, now: float) -> float:
        """Answer those whose time is up; return when the next one's will be."""
        if not self._held:
            return NEVER
        self._held = [
            held for held in self._held if not held.done and not (held.deadline <= now and held.try_again(now))
        ]
        return min((held.deadline for held in self._held), default=NEVER)
