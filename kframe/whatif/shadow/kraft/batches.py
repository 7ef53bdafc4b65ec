"""Predict the records of a committed batch from the state before it, decision by decision.

A batch has one decision or several. The records of brokers and of requests show their events. A change of a partition
that belongs to none of them must be what the rules write for an event without a record, such as an AlterPartition.

Kafka decides all changes of a request from the state before it. No record shows where a request ends, so a decision is
predicted from the state after the records before it, and from the state before the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    PartitionChangeRecord,
    TopicRecord,
    record_name,
)
from kframe.ports.committed_log import CommittedBatch, CommittedRecord
from kframe.whatif.shadow.kraft.changes import UNEXPLAINED, explain_changes
from kframe.whatif.shadow.kraft.differences import RECORD, WRITTEN, RecordDifference, differences, identity, key_of
from kframe.whatif.shadow.kraft.events import PossibleEvent, broker_events, precedes_changes
from kframe.whatif.shadow.kraft.requests import UNPREDICTED, infer_request

BOOTSTRAP: Final = "bootstrap records of a new cluster"
TRANSACTION: Final = "records of a transaction"
#: Several records of these types in a batch may be of one request: a heartbeat, or a CreateTopics.
_REPEATED: Final = (BrokerRegistrationChangeRecord, TopicRecord)
STATIC_UNCLEAN: Final = "holds only if unclean.leader.election.enable is on by a static setting (--config)"


class BatchOutcome(Enum):
    """The result for a batch."""

    EQUAL = "equal"
    DIFFERS = "differs"
    UNPREDICTABLE = "not predictable"


@dataclass(slots=True)
class BatchComparison:
    """A batch, or several if a decision spans them, compared with what the rules write."""

    batches: Sequence[CommittedBatch]
    events: list[str] = field(default_factory=list)
    """The events of the decisions, in order."""
    differences: list[RecordDifference] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Why records are not predicted."""

    @property
    def outcome(self) -> BatchOutcome:
        """DIFFERS if any record does, else UNPREDICTABLE if any record is."""
        if self.differences:
            return BatchOutcome.DIFFERS
        return BatchOutcome.UNPREDICTABLE if self.reasons else BatchOutcome.EQUAL


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A possible event of records, and how the records differ from its decision."""

    event: str
    predicted: tuple[RecordAndVersion, ...]
    differences: tuple[RecordDifference, ...]
    refusal: str = ""


def compare_batch(
    context: KraftContext, batches: Sequence[CommittedBatch], *, knows_unclean: bool = False
) -> BatchComparison:
    """Compare, and replay the records. ``context`` has the state before ``batches``, then the one after them.

    ``knows_unclean`` tells that ``unclean.leader.election.enable`` of the settings is that of the controller. Without
    it, a prediction that needs it on is not predictable. Raises InputError for a record that contradicts the state.
    """
    comparison = BatchComparison(batches)
    reason = ""
    if any(batch.in_transaction for batch in batches):
        reason = TRANSACTION
    elif METADATA_VERSION not in context.metadata.features:
        reason = BOOTSTRAP
    committed = [record for batch in batches for record in batch.records]
    if reason:
        comparison.reasons.append(reason)
        for offset, record, _ in committed:
            context.replay(record, offset)
    else:
        _Parser(context, committed, comparison, knows_unclean=knows_unclean).run()
    return comparison


class _Parser:
    """Reads the decisions of a batch in order. Replays each after its comparison."""

    def __init__(
        self,
        context: KraftContext,
        committed: Sequence[CommittedRecord],
        comparison: BatchComparison,
        *,
        knows_unclean: bool,
    ) -> None:
        self._context = context
        self._committed = committed
        self._comparison = comparison
        self._assumed = None if knows_unclean else _with_unclean(context)
        repeated = sum(isinstance(record, _REPEATED) for _, record, _ in committed)
        #: The state before the batch, if a request may have several decisions.
        self._before = replace(context, metadata=context.metadata.copy()) if repeated > 1 else None
        self._next = 0

    def run(self) -> None:
        """Compare all records."""
        committed = self._committed
        while self._next < len(committed):
            end = self._end_of_changes(self._next)
            record = committed[end].record if end < len(committed) else None
            if record is None or precedes_changes(record):
                follows = []
            else:
                follows = broker_events(self._context, record, committed[self._next].offset)
            if follows:
                self._compare_following_event(end)
            elif end > self._next:
                self._explain(end)
            else:
                self._compare_preceding_event()

    def _end_of_changes(self, start: int) -> int:
        """The end of the changes of partitions from ``start`` on."""
        end = start
        while end < len(self._committed) and isinstance(self._committed[end].record, PartitionChangeRecord):
            end += 1
        return end

    def _compare_following_event(self, end: int) -> None:
        """Compare an event whose record, at ``end``, follows its changes. Other decisions may precede the changes."""
        while True:
            offset = self._committed[self._next].offset
            events = broker_events(self._context, self._committed[end].record, offset)
            candidates = self._all_candidates(events, self._committed[self._next : end + 1])
            count = max(
                self._count_changes_of(candidate, range(end - 1, self._next - 1, -1)) for candidate in candidates
            )
            if end - count == self._next:
                self._conclude(events, end + 1)
                return
            self._explain(end - count)

    def _compare_preceding_event(self) -> None:
        """Compare an event whose record precedes its changes."""
        start = self._next
        offset, record, _ = self._committed[start]
        if isinstance(record, NoOpRecord):
            self._advance(start + 1)
        elif type(record) in UNPREDICTED:
            self._note(record_name(type(record)))
            self._comparison.reasons.append(UNPREDICTED[type(record)])
            self._advance(start + 1)
        elif events := broker_events(self._context, record, offset):
            following = range(start + 1, self._end_of_changes(start + 1))
            candidates = self._all_candidates(events, self._committed[start : start + 1])
            count = max(self._count_changes_of(candidate, following) for candidate in candidates)
            self._conclude(events, start + 1 + count)
        elif inferred := infer_request(self._context, [each.record for each in self._committed[start:]]):
            count, requests = inferred
            self._conclude(requests, start + count)
        else:
            difference = RecordDifference(
                UNEXPLAINED,
                record_name(type(record)),
                key_of(self._context.metadata, record),
                offset,
                RECORD,
                None,
                WRITTEN,
            )
            self._comparison.differences.append(difference)
            self._advance(start + 1)

    def _count_changes_of(self, candidate: _Candidate, indexes: Sequence[int]) -> int:
        """How many of the changes at ``indexes``, from the first on, are about partitions that an event changes."""
        changed_partitions = {identity(record) for record, _ in candidate.predicted}
        for count, index in enumerate(indexes):
            name = identity(self._committed[index].record)
            if name not in changed_partitions:
                return count
            changed_partitions.remove(name)
        return len(indexes)

    def _all_candidates(
        self, events: Sequence[PossibleEvent], committed: Sequence[CommittedRecord], *, unclean: bool = False
    ) -> list[_Candidate]:
        """The candidates from the current state, then those from the state before the batch."""
        contexts = [self._context, *([] if self._before is None else [self._before])]
        return [
            candidate
            for context in contexts
            for candidate in self._candidates(_with_unclean(context) if unclean else context, events, committed)
        ]

    def _candidates(
        self, context: KraftContext, events: Sequence[PossibleEvent], committed: Sequence[CommittedRecord]
    ) -> list[_Candidate]:
        candidates = []
        for event, decide in events:
            refusal = ""
            try:
                predicted = decide(context).records
            except RequestRefused as error:
                predicted, refusal = [], str(error)
            unequal = differences(context.metadata, event, predicted, committed)
            candidates.append(_Candidate(event, tuple(predicted), tuple(unequal), refusal))
        return candidates

    def _conclude(self, events: Sequence[PossibleEvent], end: int) -> None:
        """Compare the records up to ``end`` with the decisions on ``events``, note the closest one, and replay."""
        committed = self._committed[self._next : end]
        closest = _closest(self._all_candidates(events, committed))
        if closest.differences and self._assumed is not None:
            assumed = _closest(self._all_candidates(events, committed, unclean=True))
            if not assumed.differences:
                closest = assumed
                self._comparison.reasons.append(STATIC_UNCLEAN)
        self._note(closest.event)
        self._comparison.differences += [
            replace(difference, event=f"{closest.event}, which the rules refuse ({closest.refusal})")
            if closest.refusal
            else difference
            for difference in closest.differences
        ]
        self._advance(end)

    def _explain(self, end: int) -> None:
        """Compare the changes up to ``end`` with the decisions on events without a record, and replay them."""
        for explained in explain_changes(self._context, self._assumed, self._committed[self._next : end]):
            self._note(explained.event)
            self._comparison.differences += explained.differences
            if explained.assumes_unclean:
                self._comparison.reasons.append(STATIC_UNCLEAN)
            self._advance(self._next + 1)

    def _note(self, event: str) -> None:
        events = self._comparison.events
        if events[-1:] != [event]:
            events.append(event)

    def _advance(self, end: int) -> None:
        """Replay the records up to ``end``."""
        for offset, record, _ in self._committed[self._next : end]:
            self._context.replay(record, offset)
        self._next = end


def _with_unclean(context: KraftContext) -> KraftContext:
    return replace(context, settings=replace(context.settings, unclean_leader_election_enable=True))


def _closest(candidates: Sequence[_Candidate]) -> _Candidate:
    """The candidate with the fewest differences, the first of equal ones."""
    return min(candidates, key=lambda candidate: len(candidate.differences))
