"""An Outcome as a document: JSON output, and a file of ``--out``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from kframe.errors import ErrorCode
from kframe.model.cluster import ClusterState
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.snapshot import Snapshot
from kframe.snapshot.content import Mode
from kframe.whatif.results.brokers import BrokerRecord
from kframe.whatif.results.changes import ChangedPartition
from kframe.whatif.results.feature_update import FeatureUpdateRecord
from kframe.whatif.results.findings import FailOn, FindingCounts
from kframe.whatif.results.health import ClusterHealth, HealthRecord, PartitionConditions
from kframe.whatif.results.outcome import (
    ControllerResponse,
    Impact,
    Operation,
    Outcome,
    RecordCount,
    StepOutcome,
    Verb,
)
from kframe.whatif.results.reassignment_result import ReassignmentRecord
from kframe.whatif.results.release import ReleaseRecord
from kframe.whatif.results.timeline import EventRecord
from kframe.whatif.results.topic_results import TopicOutcomeRecord

SCHEMA: Final = "kframe.whatif/v1"
#: How many partitions a response names.
NAMES_MAX: Final = 20
#: Codes of a response that are no refusals.
_NO_REFUSAL: Final = frozenset({"NONE", "ELECTION_NOT_NEEDED"})


class OperationRecord(Struct):
    """The operation: what is done, to which brokers (ids), topics or number of partitions."""

    text: str
    verb: Verb
    brokers: list[int]
    together: bool
    election: str | None
    partitions: int | None
    topics: list[str]
    directories: list[str]
    features: dict[str, int]
    controllers: list[int]


class SnapshotRecord(Struct):
    """The snapshot: its format, its name, and its size."""

    format: str
    name: str
    mode: Mode
    cluster_id: str | None
    controller_id: int | None
    controller_epoch: int | None
    brokers: int
    topics: int
    partitions: int


class ResponseRecord(Struct, kw_only=True):
    """The controller's response: an error by Kafka's name, counts by error, and at most 20 names that got one."""

    error: str
    partitions: dict[str, int] | UnsetType = UNSET
    topics: dict[str, int] | UnsetType = UNSET
    remaining: int | UnsetType = UNSET
    named: list[str]


class StepRecord(PartitionConditions):
    """A step of the operation: its events in order, and the partitions in each condition after it."""

    name: str
    timeline: list[EventRecord]
    response: ResponseRecord | None


class WhatIfDocument(Struct, kw_only=True):
    """The outcome of an operation on a snapshot: ``kframe whatif``; ``kframe elect`` without ``--execute``; and
    ``outcome.json`` of ``--out``, which has no ``partitions``."""

    operation: OperationRecord
    snapshot: SnapshotRecord
    rules: str
    release: ReleaseRecord | UnsetType = UNSET
    changed: bool
    impact: Impact
    findings: FindingCounts
    before: HealthRecord
    after: HealthRecord
    steps: list[StepRecord]
    records: list[RecordCount] | UnsetType = UNSET
    reassignment: ReassignmentRecord | UnsetType = UNSET
    topics: list[TopicOutcomeRecord] | UnsetType = UNSET
    feature_update: FeatureUpdateRecord | UnsetType = UNSET
    brokers: list[BrokerRecord]
    bytes_unknown: str | None
    """Why sizes of requests are unknown."""
    assumptions: list[str]
    notes: list[str]
    partitions: list[ChangedPartition] | UnsetType = UNSET

    def responses(self) -> list[ResponseRecord]:
        """The controller's responses in order."""
        return [step.response for step in self.steps if step.response is not None]

    def refusals(self) -> dict[str, int]:
        """The errors of the controller's responses, with their counts.

        An election that is not needed is no refusal, nor are partitions without a candidate in an election of all.
        """
        refusals: dict[str, int] = {}
        if self.operation.verb == "elect" and self.operation.partitions is None:
            return refusals
        for response in self.responses():
            counts = response.topics or response.partitions or {}
            if response.error != "NONE":
                counts = {response.error: 1, **counts}
            for error, count in counts.items():
                if error not in _NO_REFUSAL:
                    refusals[error] = refusals.get(error, 0) + count
        return refusals

    def refusal_text(self) -> str:
        """The refusals in words; empty if there is none."""
        errors = ", ".join(f"{count:,} {error}" for error, count in self.refusals().items())
        return f"refused by Kafka's rules ({errors})" if errors else ""


def summary_document(outcome: Outcome, snapshot: Snapshot, cluster: ClusterState | ClusterMetadata) -> WhatIfDocument:
    """An outcome without the changed partitions, which ``outcome.changes`` has in columns and as records.

    ``cluster`` is the cluster of the outcome; it supplies the names. Unknown facts are None.
    """
    return WhatIfDocument(
        operation=_operation(outcome.operation),
        snapshot=SnapshotRecord(
            format=snapshot.source.format,
            name=snapshot.source.name,
            mode=snapshot.mode,
            cluster_id=snapshot.cluster_id,
            controller_id=snapshot.controller_id,
            controller_epoch=snapshot.controller_epoch,
            brokers=len(snapshot.brokers),
            topics=len(snapshot.topics),
            partitions=len(snapshot),
        ),
        rules=outcome.rules,
        release=outcome.release or UNSET,
        changed=outcome.changed,
        impact=outcome.impact,
        findings=FindingCounts(*map(outcome.count_of, FailOn)),
        before=_health(outcome.before),
        after=_health(outcome.after),
        steps=[_step(step, cluster) for step in outcome.steps],
        records=UNSET if outcome.records is None else list(outcome.records),
        reassignment=UNSET if outcome.reassignment is None else outcome.reassignment.record(),
        topics=[topic.record() for topic in outcome.topics] or UNSET,
        feature_update=outcome.feature_update or UNSET,
        brokers=list(outcome.brokers.records()),
        bytes_unknown=outcome.bytes_unknown,
        assumptions=list(outcome.assumptions),
        notes=list(outcome.notes),
    )


def plain_document(document: WhatIfDocument) -> dict[str, Any]:
    """The fields of a document with its schema, in their order: a step begins with its name and events, an event with
    its text."""
    fields = msgspec.to_builtins(document)
    for position, step in enumerate(fields["steps"]):
        timeline = [{"text": event["text"], **event} for event in step["timeline"]]
        fields["steps"][position] = {"name": step["name"], "timeline": timeline} | step | {"timeline": timeline}
    return {"schema": SCHEMA, **fields}


def _operation(operation: Operation) -> OperationRecord:
    fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(operation).items()
    }
    return OperationRecord(operation.text(), **fields)


def _health(health: ClusterHealth) -> HealthRecord:
    counts: dict[str, Any] = health.counts()
    return HealthRecord(
        **counts,
        registered_brokers=int(health.registered.sum()),
        leader_skew=health.leader_skew,
        replica_skew=health.replica_skew,
    )


def _step(step: StepOutcome, cluster: ClusterState | ClusterMetadata) -> StepRecord:
    response = None if step.response is None else _response(step.response, cluster)
    timeline = [timeline_event.record() for timeline_event in step.events]
    counts: Mapping[str, Any] = step.counts
    return StepRecord(**counts, name=step.name, timeline=timeline, response=response)


def _response(response: ControllerResponse, cluster: ClusterState | ClusterMetadata) -> ResponseRecord:
    """A ControlledShutdown response counts remaining partitions; others count errors and name some partitions."""
    names = response.named
    if names is None:
        named = response.rows if response.codes is None else response.rows[response.codes != ErrorCode.NONE]
        names = tuple(cluster.name(row) for row in named[:NAMES_MAX].tolist())
    record = ResponseRecord(error=response.error.name, named=list(names[:NAMES_MAX]))
    if response.codes is None:
        record.remaining = len(response.rows)
    else:
        setattr(record, response.unit, response.counts())
    return record
