"""The result of a reassignment in columns: which partitions reached their target, and what was copied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct, field

from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int16, Int32, Int64, Ragged
from kframe.model.lists import loads
from kframe.model.tables import Targets
from kframe.whatif.results.topic_results import TopicStatus


class ReassignmentProblem(Struct):
    """A partition that the controller refused, or that waits."""

    topic: str
    partition: int
    target: list[int]
    status: TopicStatus
    error: str
    reason: str


class ReassignmentBroker(Struct):
    """Replicas and leaders of a broker in a reassignment."""

    broker_id: int
    replicas_before: int
    copied: int
    deleted: int
    replicas_peak: int
    replicas_after: int
    leaders_before: int
    leaders_gained: int
    leaders_after: int


class ReassignmentTopic(Struct):
    """Partitions and replicas of a topic in a reassignment."""

    topic: str
    partitions: int
    copied: int
    deleted: int
    completed: int
    waiting: int
    refused: int


class ReassignmentRecord(Struct):
    """The outcome of a reassignment, in partitions and replicas."""

    partitions: int
    completed: int
    waiting: int
    refused: int
    replicas_copied: int
    replicas_deleted: int
    replicas_before: int
    replicas_peak: int
    replicas_after: int
    problems: list[ReassignmentProblem]
    brokers: list[ReassignmentBroker]
    topics: list[ReassignmentTopic]


class ReassignmentResult(Struct, frozen=True, eq=False):
    """``k`` partitions of a plan, and the cost of their reassignment. Lists hold broker ids, one list for each
    partition.

    ``codes`` is Kafka's error for each partition. ``completed``: its assignment is the target, without adding or
    removing replicas. ``adding``: replicas to copy, without those of refused partitions. ``deleted``: former replicas.
    ``led``: it had a live leader to bring new replicas into the ISR; ``isr_codes`` is the response to that proposal.
    ``replicas_…`` (b,) count all replicas of each broker. At the peak every new replica is assigned and no old one is
    removed yet.
    """

    targets: Targets
    codes: Int16
    completed: Bool
    led: Bool
    isr_codes: Int16
    adding: Ragged
    deleted: Ragged
    known_topics: frozenset[str]
    """Topics of the plan that exist."""
    live: frozenset[int]
    """Brokers (ids) that were live when the reassignment began."""
    broker_ids: Int32
    replicas_before: Int64
    replicas_peak: Int64
    replicas_after: Int64
    leaders_before: Int32
    leaders_after: Int32
    messages: Mapping[int, str] = field(default_factory=dict)
    """The controller's message about a partition, by position, where it has one."""

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def refused(self) -> Bool:
        """(k,) not begun at all."""
        return np.asarray(self.codes != ErrorCode.NONE, np.bool_)

    @property
    def waiting(self) -> Bool:
        """(k,) begun, but not completed."""
        return ~self.refused & ~self.completed

    def status(self, position: int) -> TopicStatus:
        """The status of one partition of the plan."""
        if self.refused[position]:
            return TopicStatus.REFUSED
        return TopicStatus.COMPLETED if self.completed[position] else TopicStatus.WAITING

    def record(self) -> ReassignmentRecord:
        """Everything as data."""
        return ReassignmentRecord(
            **self.totals(),
            problems=list(self.problems()),
            brokers=list(self.broker_rows()),
            topics=list(self.topic_rows()),
        )

    def totals(self) -> dict[str, int]:
        """The reassignment in numbers."""
        return {
            "partitions": len(self),
            "completed": int(np.count_nonzero(self.completed)),
            "waiting": int(np.count_nonzero(self.waiting)),
            "refused": int(np.count_nonzero(self.refused)),
            "replicas_copied": len(self.adding.values),
            "replicas_deleted": len(self.deleted.values),
            "replicas_before": int(self.replicas_before.sum()),
            "replicas_peak": int(self.replicas_peak.sum()),
            "replicas_after": int(self.replicas_after.sum()),
        }

    def problems(self) -> Iterator[ReassignmentProblem]:
        """The partitions that were refused or wait, each with Kafka's error and the reason."""
        for position in np.flatnonzero(~self.completed).tolist():
            yield ReassignmentProblem(
                topic=self.targets.names[self.targets.topic[position]],
                partition=int(self.targets.partition[position]),
                target=self.targets.replicas[position].tolist(),
                status=self.status(position),
                error=ErrorCode(int(self.codes[position])).name,
                reason=self._reason(position),
            )

    def broker_rows(self) -> Iterator[ReassignmentBroker]:
        """What each broker gains and loses."""
        columns = (
            self.broker_ids,
            self.replicas_before,
            loads(self.adding, self.broker_ids),
            loads(self.deleted, self.broker_ids),
            self.replicas_peak,
            self.replicas_after,
            self.leaders_before,
            self.leaders_after - self.leaders_before,
            self.leaders_after,
        )
        yield from itertools.starmap(ReassignmentBroker, zip(*(column.tolist() for column in columns), strict=True))

    def topic_rows(self) -> Iterator[ReassignmentTopic]:
        """What is copied and deleted of each topic of the plan."""
        topic, topics = self.targets.topic, len(self.targets.names)
        columns = (
            np.bincount(topic, minlength=topics),
            np.bincount(topic, self.adding.counts, topics).astype(np.int64),
            np.bincount(topic, self.deleted.counts, topics).astype(np.int64),
            *(np.bincount(topic[mask], minlength=topics) for mask in (self.completed, self.waiting, self.refused)),
        )
        rows = zip(self.targets.names, *(column.tolist() for column in columns), strict=True)
        yield from itertools.starmap(ReassignmentTopic, rows)

    def _reason(self, position: int) -> str:
        """Why a partition did not reach its target."""
        if position in self.messages:
            return self.messages[position]
        topic, target = self.targets.names[self.targets.topic[position]], self.targets.replicas[position].tolist()
        error, isr_error = ErrorCode(int(self.codes[position])), ErrorCode(int(self.isr_codes[position]))
        absent = ", ".join(str(broker_id) for broker_id in target if broker_id not in self.live)
        if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return "no such partition" if topic in self.known_topics else "no such topic, or it is being deleted"
        if error is ErrorCode.INVALID_REPLICA_ASSIGNMENT:
            if not target:
                return "an empty replica list"
            if len(set(target)) < len(target):
                return "a broker named twice"
            return "a negative broker id" if min(target) < 0 else f"not live: {absent}"
        if error is not ErrorCode.NONE:
            return "the partition never had a leader"
        if not self.led[position]:
            return "no live leader adds the new replicas to the ISR"
        return f"its leader's ISR was refused: {isr_error.name}" if isr_error else f"not in sync, being down: {absent}"
