"""What a quorum of one voter answers to replicas: a plain model beside a leader of its own, with drawn requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final
from uuid import UUID

from kframe_kraft.disk import QuorumState
from kframe_kraft.log import Diverged, MemoryLog, NeedsSnapshot
from kframe_kraft.quorum import FetchAnswer, FetchService, PendingFetch, ReplicaFetch, ReplicaKey, SoleVoter

from kframe.errors import ErrorCode
from verification.kraft.simulation.history import WrittenBatch
from verification.kraft.simulation.log_model import position_of, read_of
from verification.kraft.simulation.options import CONTROLLER, Options

#: Longest wait of an answer, uncommitted records that need none, and the time after which an observer is forgotten.
_WAIT_MS: Final = 500
_UNCOMMITTED: Final = 5_000
_FORGOTTEN_MS: Final = 300_000
_BATCHES: Final = 40
_STEPS: Final = 200
_PAUSES_MS: Final = (0, 0, 1, 100, 499, 500, 501, 5_000, 299_999, 300_000)


class QuorumPlay:
    """A leader in ``epoch`` and its replicas. The log grows by batches that were written before."""

    def __init__(self, options: Options, batches: Sequence[WrittenBatch], random: Random) -> None:
        self._random = random
        self._log = MemoryLog()
        self._coming = list(batches[:_BATCHES])
        self._batches: list[WrittenBatch] = []
        self._grow()
        node = ReplicaKey(CONTROLLER, options.directory_id)
        stored = QuorumState(self._log.last_epoch + random.randint(-1, 3))
        self._voter = SoleVoter(node, options.voters(), stored, self._log.last_epoch)
        self._epoch = max(stored.leader_epoch, self._log.last_epoch) + 1
        self._service = FetchService(self._voter, self._log)
        self._role = "unattached"
        self._start = self._log.end
        self._now = random.randint(0, 1_000)
        self._high_watermark: int | None = None
        self._sent: dict[ReplicaKey, int] = {}
        self._refused: dict[ReplicaKey, int] = {}
        self._fetches: dict[ReplicaKey, list[tuple[int, int, int]]] = {}
        """The time, the offset and the leader's end of each Fetch."""
        self._waiting: dict[PendingFetch, tuple[int, ErrorCode]] = {}

    def problems(self) -> Iterator[str]:
        """What is answered otherwise."""
        for _ in range(_STEPS):
            match self._random.randrange(12):
                case 0 if self._coming:
                    self._grow()
                case 1 if self._role == "leader":
                    yield from self._sync()
                case 2:
                    self._now += self._random.choice(_PAUSES_MS)
                case 3 if self._role == "unattached":
                    yield from self._lead()
                case 4 if self._role == "leader" and self._random.random() < 0.1:
                    self._voter.resign()
                    self._role, self._high_watermark, self._fetches = "resigned", None, {}
                case 5 if self._waiting and self._random.random() < 0.2:
                    pending = self._random.choice(list(self._waiting))
                    self._service.forget(pending)
                    del self._waiting[pending]
                case 6:
                    yield from self._observers()
                case _:
                    yield from self._fetch()
            yield from self._complete()

    def _grow(self) -> None:
        for batch in self._coming[:3]:
            self._log.append(batch.content)
            self._batches.append(batch)
        del self._coming[:3]

    def _lead(self) -> Iterator[str]:
        state = self._voter.stand()
        if state.leader_epoch != self._epoch:
            yield f"K1: the voter stands in epoch {state.leader_epoch}, expected {self._epoch}"
        self._start = self._log.end
        self._voter.lead(self._start, log_has_voters=True)
        self._role = "leader"

    def _sync(self) -> Iterator[str]:
        end = self._random.choice([self._start, *(batch.end for batch in self._batches)])
        is_higher = end > max(self._start, self._high_watermark or 0)
        if is_higher:
            self._high_watermark = end
        leadership = self._voter.leadership
        assert leadership is not None
        if (leadership.note_synced(end), leadership.high_watermark) != (is_higher, self._high_watermark):
            yield f"K2: the high watermark is {leadership.high_watermark}, expected {self._high_watermark}"

    # -- Requests.

    def _request(self) -> ReplicaFetch:
        random, end = self._random, self._log.end
        node_id = random.choice((-1, 1, 1, 2, 3))
        return ReplicaFetch(
            ReplicaKey(node_id, UUID(int=random.choice((7, 7, 8)))),
            self._epoch + random.choice((-1, *(0,) * 10, 1)),
            random.choice((end, end, end, end, random.choice(self._batches).end, random.randint(0, end + 1))),
            random.choice((*(self._log.last_epoch,) * 6, random.choice(self._batches).epoch, self._epoch)),
            random.choice((0, 200, 20_000)),
            random.choice((-1, 0, 1, 100, 499, 500, 10_000)),
            random.choice((None, None, -1, 0, end, self._high_watermark)),
        )

    def _fetch(self) -> Iterator[str]:
        request, now = self._request(), self._now
        expected = self._expected(request)
        answer = self._service.answer(request, now)
        if isinstance(answer, PendingFetch):
            answered: object = answer.deadline, answer.error
            if isinstance(expected, tuple):
                self._waiting[answer] = expected
        else:
            answered = _content(answer)
        if answered != expected:
            yield f"K6: {request} at {now} is answered with {answered}, expected {expected}"

    def _expected(self, request: ReplicaFetch) -> FetchAnswer | tuple[int, ErrorCode]:
        """The answer, or the deadline of one that waits with its error."""
        error, replica, now = self._refusal(request), request.replica, self._now
        if error is not ErrorCode.NONE:
            before = self._refused.get(replica)
            self._refused[replica] = now
            waits = before is not None and now < before + _WAIT_MS
            return (now + _WAIT_MS, error) if waits else FetchAnswer(error)
        match position_of(self._log, self._batches, request.offset, request.last_epoch):
            case Diverged(end):
                return self._successful(request, FetchAnswer(diverged=end))
            case NeedsSnapshot(snapshot_id):
                return self._successful(request, FetchAnswer(snapshot_id=snapshot_id))
        if replica.node_id >= 0:
            self._fetches.setdefault(replica, []).append((now, request.offset, self._log.end))
        if self._has_result(request):
            return self._read(request)
        return now + sorted((0, request.wait_ms, _WAIT_MS))[1], ErrorCode.NONE

    def _refusal(self, request: ReplicaFetch) -> ErrorCode:
        epoch = self._epoch - (self._role == "unattached")  # It has not begun.
        if request.epoch != epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if request.epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        errors = {"unattached": ErrorCode.NOT_LEADER_OR_FOLLOWER, "resigned": ErrorCode.BROKER_NOT_AVAILABLE}
        return errors.get(self._role, ErrorCode.NONE)

    def _has_result(self, request: ReplicaFetch) -> bool:
        committed = -1 if self._high_watermark is None else self._high_watermark
        known = request.high_watermark
        if known is None:
            known = self._sent.get(request.replica, -1) if request.replica.node_id >= 0 else committed
        return request.offset < max(committed, self._log.end - _UNCOMMITTED) or known < committed

    def _read(self, request: ReplicaFetch) -> FetchAnswer:
        return self._successful(
            request, FetchAnswer(records=read_of(self._batches, request.offset, request.max_bytes, (), self._log.end))
        )

    def _successful(self, request: ReplicaFetch, answer: FetchAnswer) -> FetchAnswer:
        committed = -1 if self._high_watermark is None else self._high_watermark
        if request.replica.node_id >= 0:
            self._sent[request.replica] = committed
        return FetchAnswer(
            ErrorCode.NONE, committed, self._log.start, answer.records, answer.diverged, answer.snapshot_id
        )

    def _complete(self) -> Iterator[str]:
        """Answers are due once the log, the high watermark or the role has moved, and at the deadline."""
        expected: dict[PendingFetch, FetchAnswer] = {}
        for pending, (_, error) in self._waiting.items():
            refusal = self._refusal(pending.request)
            if error is ErrorCode.NONE and refusal is not ErrorCode.NONE:
                expected[pending] = FetchAnswer(refusal)
            elif error is ErrorCode.NONE and self._has_result(pending.request):
                expected[pending] = self._read(pending.request)
        due = {pending: each for pending, each in self._waiting.items() if pending not in expected}
        for pending, (deadline, error) in sorted(due.items(), key=lambda each: each[1][0]):
            if deadline <= self._now:
                expected[pending] = FetchAnswer(error) if error is not ErrorCode.NONE else self._read(pending.request)
        answered = {pending: _content(answer) for pending, answer in self._service.complete(self._now)}
        if answered != expected:
            yield f"K6: at {self._now} {answered} are answered, expected {expected}"
        self._waiting = {pending: each for pending, each in self._waiting.items() if pending not in expected}
        first = min((deadline for deadline, _ in self._waiting.values()), default=None)
        if self._service.deadline != first:
            yield f"K6: the next answer is due at {self._service.deadline}, expected {first}"

    # -- Progress.

    def _observers(self) -> Iterator[str]:
        leadership = self._voter.leadership
        if leadership is None:
            return
        fetches, now = self._fetches, self._now
        self._fetches = {key: each for key, each in fetches.items() if now - each[-1][0] < _FORGOTTEN_MS}
        expected = {key: (each[-1][1], each[-1][0], _caught_up(each)) for key, each in self._fetches.items()}
        count = leadership.observer_count(now)
        known = {key: (each.end, each.fetched_ms, each.caught_up_ms) for key, each in leadership.observers(now).items()}
        if (count, known) != (len(expected), expected):
            yield f"K6: {count} replicas are known at {now}: {known}, expected {expected}"


def _caught_up(fetches: Sequence[tuple[int, int, int]]) -> int:
    """When a replica had all that the leader had: at a Fetch from its end on, or at the one before a Fetch from the end
    that it had then. -1: never."""
    times = [-1]
    for number, (now, offset, end) in enumerate(fetches):
        if offset >= end:
            times.append(now)
        elif number and 0 < fetches[number - 1][2] <= offset:
            times.append(fetches[number - 1][0])
    return max(times)


def _content(answer: FetchAnswer) -> FetchAnswer:
    """An answer with its records as bytes."""
    return FetchAnswer(
        answer.error,
        answer.high_watermark,
        answer.log_start,
        answer.read_records(),
        answer.diverged,
        answer.snapshot_id,
    )
