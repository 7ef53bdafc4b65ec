"""Answers Fetch requests of replicas, and delays those without a result (Kafka ``KafkaRaftClient.handleFetchRequest``).

``answer`` and ``complete`` are called by one thread. The log is only read.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol

from kframe.plugin import ErrorCode
from kframe_kraft.disk import SnapshotId
from kframe_kraft.log import Diverged, FetchPosition, LogSection, NeedsSnapshot
from kframe_kraft.log.epochs import LogEpochEnd
from kframe_kraft.quorum.quorum import SoleVoter
from kframe_kraft.quorum.voters import ReplicaKey

#: A replica gives a request up after 2 s, so that no answer waits longer than this.
WAIT_MS_MAX: Final = 500
#: A request waits for the commit of so many records, so that one response has them and the high watermark. More records
#: are sent meanwhile.
UNCOMMITTED_MAX: Final = 5_000


class ReadableLog(Protocol):
    """The log of the leader, as ``kframe_kraft.log.DurableLog``."""

    @property
    def start(self) -> int:
        """The first offset."""

    @property
    def end(self) -> int:
        """The offset of the next record."""

    def fetch(self, offset: int, max_bytes: int) -> bytes | LogSection:
        """Whole batches from the one that has ``offset`` on: at most ``max_bytes``, at least one batch."""

    def check_position(self, offset: int, epoch: int) -> FetchPosition:
        """Whether a log that ends at ``offset`` with a record of ``epoch`` is a beginning of this one."""


@dataclass(frozen=True, slots=True)
class ReplicaFetch:
    """A request of ``replica`` for the records from ``offset`` on.

    ``epoch`` is the leader epoch that it knows, ``last_epoch`` that of its last record. ``high_watermark`` is what it
    knows, None if its version of the request does not say so.
    """

    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    max_bytes: int
    wait_ms: int
    high_watermark: int | None = None


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """``high_watermark`` is -1 before it is known."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    log_start: int = -1
    records: bytes | LogSection = b""
    diverged: LogEpochEnd | None = None
    snapshot_id: SnapshotId | None = None

    def read_records(self) -> bytes:
        """The bytes of the records."""
        return self.records if isinstance(self.records, bytes) else self.records.read(0, len(self.records))


@dataclass(frozen=True, slots=True, eq=False)
class PendingFetch:
    """A request that waits until ``deadline``, in milliseconds. ``error`` is the answer of one that was refused."""

    request: ReplicaFetch
    deadline: int
    error: ErrorCode = ErrorCode.NONE


class FetchService:
    """Serves the replicas of a quorum."""

    def __init__(self, quorum: SoleVoter, log: ReadableLog) -> None:
        self._quorum = quorum
        self._log = log
        self._pending: dict[PendingFetch, None] = {}
        #: Ascending by deadline, as a heap; with requests that are no longer pending.
        self._deadlines: list[tuple[int, int, PendingFetch]] = []
        self._numbers = count()
        #: The last read, with offset, size and end of the log: brokers read the same records one after another.
        self._last_read: tuple[tuple[int, int, int], bytes | LogSection] | None = None
        #: What the pending requests were compared with last.
        self._compared: object = None
        #: The high watermark that was sent to each replica last, for requests that do not say it.
        self._sent: dict[ReplicaKey, int] = {}
        #: When a replica was refused last.
        self._refused_ms: dict[ReplicaKey, int] = {}

    @property
    def deadline(self) -> int | None:
        """When the next request must be answered, in milliseconds. None if none waits."""
        while self._deadlines and self._deadlines[0][2] not in self._pending:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def answer(self, request: ReplicaFetch, now: int) -> FetchAnswer | PendingFetch:
        """Answer a request now, or delay it until ``complete`` returns it.

        A request that is refused again within ``WAIT_MS_MAX`` waits, because brokers repeat it without a pause.
        """
        error = self._quorum.refusal(request.epoch)
        if error is not ErrorCode.NONE:
            return self._refuse(request, error, now)
        leadership = self._quorum.leadership
        assert leadership is not None
        elsewhere = self._other_history(request)
        if elsewhere is not None:
            return elsewhere
        leadership.note_fetch(request.replica, request.offset, self._log.end, now)
        if self._has_result(request):
            return self._read(request)
        return self._delay(PendingFetch(request, now + min(max(request.wait_ms, 0), WAIT_MS_MAX)))

    def complete(self, now: int) -> list[tuple[PendingFetch, FetchAnswer]]:
        """The requests that can be answered: the log or the high watermark has moved, or their time is over."""
        answered = self._with_results()
        while (deadline := self.deadline) is not None and deadline <= now:
            pending = heappop(self._deadlines)[2]
            error = pending.error or self._quorum.refusal(pending.request.epoch)
            answered.append((pending, self._read(pending.request) if error is ErrorCode.NONE else FetchAnswer(error)))
            del self._pending[pending]
        return answered

    def _with_results(self) -> list[tuple[PendingFetch, FetchAnswer]]:
        """The requests that need not wait any longer. They are compared only after something has moved, since there may
        be thousands."""
        state = self._log.end, self._high_watermark(), self._quorum.epoch, self._quorum.role
        if state == self._compared:
            return []
        self._compared = state
        answered: list[tuple[PendingFetch, FetchAnswer]] = []
        for pending in [pending for pending in self._pending if pending.error is ErrorCode.NONE]:
            error = self._quorum.refusal(pending.request.epoch)
            if error is not ErrorCode.NONE:
                answer = FetchAnswer(error)
            elif self._has_result(pending.request):
                answer = self._read(pending.request)
            else:
                continue
            del self._pending[pending]
            answered.append((pending, answer))
        return answered

    def forget(self, pending: PendingFetch) -> None:
        """Drop a request whose connection has ended."""
        self._pending.pop(pending, None)

    def _refuse(self, request: ReplicaFetch, error: ErrorCode, now: int) -> FetchAnswer | PendingFetch:
        before = self._refused_ms.get(request.replica)
        self._refused_ms[request.replica] = now
        if before is None or now - before >= WAIT_MS_MAX:
            return FetchAnswer(error)
        return self._delay(PendingFetch(request, now + WAIT_MS_MAX, error))

    def _delay(self, pending: PendingFetch) -> PendingFetch:
        self._pending[pending] = None
        heappush(self._deadlines, (pending.deadline, next(self._numbers), pending))
        return pending

    def _has_result(self, request: ReplicaFetch) -> bool:
        """Whether the replica lacks committed records, many records, or the high watermark."""
        high_watermark = self._high_watermark()
        if max(high_watermark, self._log.end - UNCOMMITTED_MAX) > request.offset:
            return True
        known = request.high_watermark
        if known is None and request.replica.node_id < 0:
            return False  # Replicas without an id cannot be distinguished.
        return high_watermark > (self._sent.get(request.replica, -1) if known is None else known)

    def _other_history(self, request: ReplicaFetch) -> FetchAnswer | None:
        """The answer to a replica whose log does not go on in this one. None for others."""
        match self._log.check_position(request.offset, request.last_epoch):
            case Diverged(end):
                return self._successful_answer(request, diverged=end)
            case NeedsSnapshot(snapshot_id):
                return self._successful_answer(request, snapshot_id=snapshot_id)
        return None

    def _read(self, request: ReplicaFetch) -> FetchAnswer:
        if request.offset < self._log.start:  # Snapshots have replaced the records while the request waited.
            elsewhere = self._other_history(request)
            assert elsewhere is not None
            return elsewhere
        key = request.offset, request.max_bytes, self._log.end
        if self._last_read is None or self._last_read[0] != key:
            self._last_read = key, self._log.fetch(request.offset, request.max_bytes)
        return self._successful_answer(request, self._last_read[1])

    def _successful_answer(
        self,
        request: ReplicaFetch,
        records: bytes | LogSection = b"",
        diverged: LogEpochEnd | None = None,
        snapshot_id: SnapshotId | None = None,
    ) -> FetchAnswer:
        high_watermark = self._high_watermark()
        if request.replica.node_id >= 0:
            self._sent[request.replica] = high_watermark
        return FetchAnswer(ErrorCode.NONE, high_watermark, self._log.start, records, diverged, snapshot_id)

    def _high_watermark(self) -> int:
        leadership = self._quorum.leadership
        return -1 if leadership is None or leadership.high_watermark is None else leadership.high_watermark
