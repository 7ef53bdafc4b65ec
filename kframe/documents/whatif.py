"""The documents of what-ifs: ``kframe.whatif/v1``, ``kframe.sweep/v1`` and ``kframe.explanation/v1``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from kframe.snapshot.row_types import Mode
from kframe.whatif.results.explanation import Explanation
from kframe.whatif.results.health import Skew
from kframe.whatif.results.outcome import Impact, RecordCount, Verb
from kframe.whatif.results.timeline import TopicAction
from kframe.whatif.results.topic_results import TopicStatus

__all__ = ["Explanation", "SweepDocument", "WhatIfDocument"]

ApiName: TypeAlias = Literal["LeaderAndIsr", "UpdateMetadata", "StopReplica"]


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


class FindingCounts(Struct, rename="kebab"):
    """What ``--fail-on`` looks for: partitions, or failures that bring some. Null is unknown."""

    offline: int | None
    under_min_isr: int | None
    data_loss: int | None
    possible_data_loss: int | None


class PartitionConditions(Struct):
    """Partitions in each condition; null is unknown."""

    offline: int
    under_min_isr: int | None
    at_min_isr: int | None
    under_replicated: int
    needs_unclean_election: int


class HealthRecord(PartitionConditions):
    """The cluster before or after the operation."""

    registered_brokers: int
    leader_skew: Skew
    replica_skew: Skew


class ElectionEvent(Struct, tag_field="what", tag="election"):
    """An election; ``unclean`` of the ``elected`` leaders are from outside the ISR."""

    text: str
    kind: str
    partitions: int
    elected: int
    unclean: int


class StatesEvent(Struct, tag_field="what", tag="partition states written"):
    """A write of partition states."""

    text: str
    partitions: int
    created: int
    elected: int
    shrunk: int
    leaderless: int
    refused: int
    grown: int


class RequestsEvent(Struct, tag_field="what", tag="requests"):
    """Requests of one kind; ``bytes`` is null where the snapshot lacks content of them."""

    text: str
    api: ApiName
    brokers: int
    requests: int
    partitions: int
    entries: int
    bytes: int | None


class TopicsEvent(Struct, tag_field="what", tag="topics"):
    """Records of topics were written; ``adding`` and ``removing`` count replicas."""

    text: str
    action: TopicAction
    topics: int
    adding: int
    removing: int


class ElrEvent(Struct, tag_field="what", tag="elr"):
    """Eligible leader replicas of a KRaft cluster changed; the ``elected`` ones left because they lead now."""

    text: str
    partitions: int
    entered: int
    left: int
    elected: int


class RecordsEvent(Struct, tag_field="what", tag="records"):
    """The controller of a KRaft cluster wrote records."""

    text: str
    records: int
    types: dict[str, int]
    bytes: int


class ResponseRecord(Struct):
    """The controller's response: an error by Kafka's name, counts by error, and at most 20 names that got one."""

    error: str
    named: list[str]
    partitions: dict[str, int] | UnsetType = UNSET
    topics: dict[str, int] | UnsetType = UNSET
    remaining: int | UnsetType = UNSET


class StepRecord(PartitionConditions):
    """A step of the operation: its events in order, and the partitions in each condition after it."""

    name: str
    timeline: list[ElectionEvent | StatesEvent | RequestsEvent | TopicsEvent | ElrEvent | RecordsEvent]
    response: ResponseRecord | None


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


class TopicOutcomeRecord(Struct):
    """The outcome of the creation or deletion of a topic."""

    topic: str
    status: TopicStatus
    error: str
    partitions: int
    replicas: int
    waiting_for: list[int]
    reason: str | None


class BrokerRecord(Struct):
    """The load of a broker before and after, and the requests that it is sent in ZooKeeper mode. Null is unknown."""

    broker_id: int
    rack: str | None
    registered_before: bool
    registered_after: bool
    leaders_before: int
    leaders_after: int
    preferred_leaders: int
    replicas_before: int
    replicas: int
    in_sync_replicas_before: int
    in_sync_replicas_after: int
    requests: int | UnsetType = UNSET
    bytes: int | UnsetType | None = UNSET
    leader_and_isr_requests: int | UnsetType = UNSET
    leader_and_isr_partitions: int | UnsetType = UNSET
    leader_and_isr_bytes: int | UnsetType | None = UNSET
    update_metadata_requests: int | UnsetType = UNSET
    update_metadata_partitions: int | UnsetType = UNSET
    update_metadata_bytes: int | UnsetType | None = UNSET
    stop_replica_requests: int | UnsetType = UNSET
    stop_replica_partitions: int | UnsetType = UNSET
    stop_replica_bytes: int | UnsetType | None = UNSET


class ChangedPartition(Struct):
    """A partition whose state or assignment changes; leader -1 is none, null is unknown."""

    topic: str
    partition: int
    leader_before: int
    leader_after: int
    leader_epoch_before: int | None
    leader_epoch_after: int | None
    partition_epoch_before: int | None
    partition_epoch_after: int | None
    went_offline: bool
    came_online: bool
    unclean: bool
    isr_before: list[int]
    isr_after: list[int]
    replicas_before: list[int]
    replicas_after: list[int]
    elr_before: list[int] | UnsetType = UNSET
    elr_after: list[int] | UnsetType = UNSET
    last_known_elr_before: list[int] | UnsetType = UNSET
    last_known_elr_after: list[int] | UnsetType = UNSET


class WhatIfDocument(Struct):
    """The outcome of an operation on a snapshot: ``kframe whatif``; ``kframe elect`` without ``--execute``; and
    ``outcome.json`` of ``--out``, which has no ``partitions``."""

    operation: OperationRecord
    snapshot: SnapshotRecord
    rules: str
    changed: bool
    impact: Impact
    findings: FindingCounts
    before: HealthRecord
    after: HealthRecord
    steps: list[StepRecord]
    brokers: list[BrokerRecord]
    bytes_unknown: str | None
    """Why sizes of requests are unknown."""
    assumptions: list[str]
    notes: list[str]
    reassignment: ReassignmentRecord | UnsetType = UNSET
    records: list[RecordCount] | UnsetType = UNSET
    topics: list[TopicOutcomeRecord] | UnsetType = UNSET
    partitions: list[ChangedPartition] | UnsetType = UNSET


class SweepSnapshot(Struct):
    """The snapshot of a sweep."""

    format: str
    name: str
    mode: Mode
    partitions: int


class FailureKinds(Struct):
    """Failures of each kind."""

    broker: int
    pair: int
    rack: int
    directory: int | UnsetType = UNSET


class SweepBefore(Struct):
    """Partitions in each condition before any failure."""

    offline: int
    under_min_isr: int | None
    at_min_isr: int | None
    needs_unclean_election: int
    leader_skew: Skew
    may_lose_data: int | UnsetType = UNSET


class FailureRow(Struct):
    """A failure and its effects, in partitions; null is unknown."""

    kind: Literal["broker", "pair", "rack", "directory"]
    brokers: list[int]
    rack: str | None
    offline: int
    newly_offline: int
    under_min_isr: int | None
    newly_under_min_isr: int | None
    at_min_isr: int | None
    unclean_elections: int
    needs_unclean_election: int
    leaders_moved: int
    newly_may_lose_data: int
    leaders_max: int
    leaders_mean: float | None
    leader_skew: float | None


class SweepRow(FailureRow):
    """A failure in a sweep. Only rows of KRaft clusters have ``directory`` and ``may_lose_data``."""

    directory: str | UnsetType | None = UNSET
    may_lose_data: int | UnsetType = UNSET


class SweepDocument(Struct):
    """Every failure of one broker, two brokers, one rack, and in KRaft mode one log directory, the worst first:
    ``kframe whatif sweep``."""

    rules: str
    snapshot: SweepSnapshot
    registered_brokers: int
    failures: FailureKinds
    before: SweepBefore
    findings: FindingCounts
    assumptions: list[str]
    rows: list[SweepRow]


class ElrFailureRow(Struct):
    """A failure in a KRaft cluster without and with eligible leader replicas, in partitions; null is unknown."""

    kind: Literal["broker", "pair", "rack", "directory"]
    brokers: list[int]
    rack: str | None
    directory: str | None
    offline_elr_off: int
    offline_elr_on: int
    may_lose_data_elr_off: int
    may_lose_data_elr_on: int
    under_min_isr_elr_off: int | None
    under_min_isr_elr_on: int | None
    unclean_elections_elr_off: int
    unclean_elections_elr_on: int
    needs_unclean_election_elr_off: int
    needs_unclean_election_elr_on: int


class ElrRules(Struct):
    """The rules that decided, in words."""

    elr_off: str
    elr_on: str


class ElrSweepDocument(Struct):
    """Every failure in a KRaft cluster with ELR off and on: ``kframe whatif sweep --elr both``."""

    rules: ElrRules
    assumptions: list[str]
    rows: list[ElrFailureRow]
