"""A shadow predicts the records of each event of the KRaft oracle's cases, and each change has a cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.causes.change_causes import explain_change
from kframe.core.kraft.causes.request_causes import ALTERED, ASSIGNED, CANCELLED, PREFERRED, REASSIGNED, UNCLEAN
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replay import replay
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import PartitionChangeRecord, PartitionRecord
from kframe.ports.committed_log import CommittedBatch, CommittedRecord
from kframe.whatif.shadow.kraft import BatchComparison, compare_batch
from tests.kraft import oracle_events
from tests.kraft.oracle_cases import Oracle
from tests.kraft.test_oracle import RECORDED


def case_of(parameter: Any) -> dict[str, Any]:
    """The case of a parameter of the oracle's test."""
    case: dict[str, Any] = parameter.values[0]
    return case


CASES: Final = [pytest.param(case_of(parameter), id=parameter.id) for parameter in RECORDED]
#: The static ``min.insync.replicas`` of the controller is not in the log.
STATIC_MIN_ISR: Final = "rare-static-min-isr"
#: The events of the changes of each case in ``requests.jsonl``.
REQUESTS: Final = {
    "cancel-p0": {CANCELLED},
    "cancel-p0-last": {CANCELLED},
    "cancel-three-partitions": {CANCELLED},
    "cancel-in-two-requests": {CANCELLED},
    "reassign-removes-replicas-of-p0": {REASSIGNED},
    "reassign-and-cancel-in-one-request": {CANCELLED, REASSIGNED},
    "alter-partition-completes-p0": {ALTERED},
    "preferred-election-completes-p0": {PREFERRED},
    "fence-completes-p0": {"broker fenced: broker 2"},
    "unfence-elects-many": {"broker unfenced: broker 1"},
    "unclean-election-of-many": {UNCLEAN},
    "assign-lost-directories": {ASSIGNED},
    "create-colliding-topics": {"topic created: a.b", "topic created: a_b", "topic created: c"},
    "reassign-over-a-reassignment": {REASSIGNED},
}


def copied(context: KraftContext) -> KraftContext:
    """The same state without the memory of an active controller."""
    metadata = context.metadata.copy()
    heartbeats = Heartbeats.activated(0, metadata.brokers.registrations, 0)
    heartbeats.contact_ns.clear()
    return KraftContext(metadata, heartbeats, context.settings, JavaRandom(0))


def decided(case: Mapping[str, Any]) -> Iterator[tuple[KraftContext, int, list[RecordAndVersion]]]:
    """The state before each event that writes records, the offset of the first one, and the records."""
    oracle = Oracle(case)
    for event in case["events"]:
        if case.get("independent"):
            oracle.restore_heartbeats(case)
        try:
            decision, _, after_replay = oracle_events.decide(oracle, event)
        except (oracle_events.NotApplicable, RequestRefused):
            continue
        except oracle_events.Undecided:
            return
        if decision.records:
            yield copied(oracle.context), oracle.next_offset, decision.records
        if case.get("independent"):
            continue
        for versioned in decision.records:
            oracle.replay(versioned.record, oracle.next_offset)
            oracle.next_offset += 1
        if after_replay is not None:
            oracle.context.heartbeats.begin_controlled_shutdown(after_replay, oracle.next_offset - 1)


def shadowed(context: KraftContext, offset: int, records: Sequence[RecordAndVersion]) -> BatchComparison:
    committed = tuple(CommittedRecord(offset + number, *versioned) for number, versioned in enumerate(records))
    return compare_batch(context, [CommittedBatch(offset, 0, 1, 1, committed)], knows_unclean=True)


@pytest.mark.parametrize("case", CASES)
def test_shadow_predicts_each_event(case: dict[str, Any]) -> None:
    for context, offset, records in decided(case):
        assert shadowed(context, offset, records).differences == []


@pytest.mark.parametrize("name", REQUESTS)
def test_shadow_names_event_of_whole_request(name: str) -> None:
    (case,) = (case for case in map(case_of, RECORDED) if case["id"] == name)
    events = {event for decision in decided(case) for event in shadowed(*decision).events}
    assert events == REQUESTS[name]


@pytest.mark.parametrize("case", CASES)
def test_each_change_has_a_cause(case: dict[str, Any]) -> None:
    unexplained = []
    for context, offset, records in decided(case):
        before, current = context.metadata, context.metadata.copy()
        for number, (record, _) in enumerate(records):
            if isinstance(record, PartitionChangeRecord):
                others = [*records[number + 1 :], *reversed(records[:number])]
                events = [
                    other for other, _ in others if not isinstance(other, PartitionChangeRecord | PartitionRecord)
                ]
                if not explain_change([current, before], record, events):
                    unexplained.append(record)
            replay(current, record, offset + number)
    assert bool(unexplained) == (case["id"] == STATIC_MIN_ISR)
