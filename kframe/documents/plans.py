"""The documents about reassignment plans, and about elections and reassignments of live clusters."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kframe.documents.whatif import ReassignmentRecord
from kframe.plans.check.findings import Check, Severity
from kframe.plans.execute.entries import Goal, RunResult
from kframe.plans.generate.unmet import Unmet
from kframe.whatif.results.health import Skew
from kframe.whatif.results.outcome import Impact


class PlanRecord(Struct):
    """The size of a plan."""

    name: str
    topics: int
    partitions: int
    replicas: int


class PlanSnapshot(Struct):
    """The snapshot that a plan is compared with."""

    format: str
    name: str
    brokers: int
    topics: int
    partitions: int


class SeverityCounts(Struct):
    """Findings of each severity."""

    error: int
    warning: int
    info: int


class ChangeKinds(Struct):
    """Partitions of each kind of change."""

    none: int
    order: int
    grow: int
    shrink: int
    move: int


class PlanBroker(Struct):
    """Replicas and preferred leaders of a broker, before the plan and after it."""

    broker_id: int
    replicas_before: int
    copied: int
    deleted: int
    replicas_after: int
    preferred_leaders_before: int
    preferred_leaders_after: int


class PlanMoves(Struct):
    """What a plan moves; ``not_valid`` partitions stay as they are."""

    partitions: ChangeKinds
    not_valid: int
    replicas_copied: int
    replicas_deleted: int
    replica_skew_before: Skew
    replica_skew_after: Skew
    preferred_skew_before: Skew
    preferred_skew_after: Skew
    brokers: list[PlanBroker]


class GeneratedPartitions(Struct):
    """Partitions in scope, partitions that change, partitions left out because they are being reassigned, and
    partitions that no allowed broker can take a replica of. ``unmet`` are not as requested after the plan.
    ``leaderless`` receive replicas that cannot be copied before the partition has a leader."""

    scope: int
    changed: int
    reassigning: int
    unassignable: int
    unmet: int
    leaderless: int


class GeneratedMoves(Struct):
    """What a generated plan copies. ``cost`` and ``bound`` are in ``unit``: no plan costs less than the bound. The unit
    is ``replicas``, ``bytes``, or that of the goal. ``term_cost`` is the part of the cost that cost terms add.

    ``gap`` is the part of the bound by which the cost exceeds it; null where the request is not met. ``exact``: the
    solver has proven the bound, or that no plan meets the targets. ``leaders`` counts the partitions whose preferred
    leader changes.
    """

    replicas: int
    unit: str
    cost: int
    term_cost: int
    bound: int
    gap: float | None
    exact: bool
    leaders: int


class CrowdedPartitions(Struct):
    """Partitions that span fewer racks than they could; null where no broker has a rack."""

    crowded_before: int | None
    crowded_after: int | None


class UnmetPartition(Struct):
    """A partition that is not as requested after a generated plan. ``lacks`` says what, ``reason`` says why."""

    topic: str
    partition: int
    replicas: list[int]
    lacks: list[Unmet]
    reason: str


class DivertedReplica(Struct):
    """A replica of the broker ``replaced`` that ``receivers`` receive, and not the requested ``replacement``."""

    topic: str
    partition: int
    replaced: int
    replacement: int
    receivers: list[int]
    reason: str


class GeneratedBroker(Struct):
    """A broker before and after a generated plan. ``receives``: the plan may give it replicas. ``received`` are copied
    to it. Bytes are null without weights, the weights of the goal without a goal."""

    broker_id: int
    rack: str | None
    receives: bool
    replicas_before: int
    received: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_before: int | None
    bytes_after: int | None
    goal_before: int | None
    goal_after: int | None


class GeneratedPlanDocument(Struct):
    """The report of a generated plan: ``kframe plan generate``. ``targets_met``: the plan does all that is requested,
    and the loads of brokers are within their limits. ``proof`` says why no plan copies
    less than the bound. ``skew`` is of the brokers that receive replicas. ``goal`` and ``cost_terms`` name what plugins
    have contributed. ``warnings`` are to be read before the plan is executed."""

    snapshot: PlanSnapshot
    summary: str
    proof: str
    partitions: GeneratedPartitions
    moves: GeneratedMoves
    goal: str | None
    cost_terms: list[str]
    targets_met: bool
    racks: CrowdedPartitions
    skew: dict[str, Skew]
    brokers: list[GeneratedBroker]
    unmet: list[UnmetPartition]
    diverted: list[DivertedReplica]
    warnings: list[str]
    notes: list[str]


class PlanFinding(Struct):
    """A finding about a plan; ``error`` is Kafka's name of the error that a controller would return."""

    severity: Severity
    check: Check
    error: str | None
    topic: str | None
    partition: int | None
    detail: str


class PlanCheckDocument(Struct):
    """A checked plan: ``kframe plan check``. ``rules`` (which decide), ``snapshot`` and ``moves`` are null without
    ``--snapshot``. ``notes`` say what is not checked."""

    rules: str | None
    plan: PlanRecord
    snapshot: PlanSnapshot | None
    valid: bool
    counts: SeverityCounts
    moves: PlanMoves | None
    findings: list[PlanFinding]
    notes: list[str]
    assumptions: list[str]


class PlannedPartition(Struct):
    """A partition of a plan, as it is and as planned: ``kframe plan show`` and ``diff``. Null is unknown."""

    topic: str
    partition: int
    change: Literal["none", "order", "grow", "shrink", "move", "unknown"] | None
    replicas: list[int] | None
    target: list[int]
    adding: list[int] | None
    removing: list[int] | None
    leader: int | None
    valid: bool


class PartitionCode(Struct):
    """The response for a partition by the name of Kafka's error: ``kframe elect``, ``reassign`` and ``plan`` with
    ``--execute``."""

    topic: str
    partition: int
    error: str


class ReassigningPartition(Struct):
    """A partition under reassignment: ``kframe reassign list``."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]


class ExecutionStage(Struct):
    """A stage of an execution: its partitions, those that have arrived, and what is copied. Null: sizes are unknown."""

    stage: int
    partitions: int
    settled: int
    copies: int
    bytes: int | None


class ExecutionProblem(Struct):
    """A partition that was not moved, and why: Kafka's error, or another client's reassignment."""

    topic: str
    partition: int
    error: str


class ExecutionEffect(Struct):
    """The expected effect of a plan when all its partitions move at once, as ``kframe whatif reassign`` predicts it."""

    rules: str
    impact: Impact
    reassignment: ReassignmentRecord
    assumptions: list[str]


class ExecutionDocument(Struct):
    """An execution by its journal: ``kframe plan execute``, ``resume``, ``rollback``, ``pause``, ``abort``, ``status``;
    and ``kframe reassign start``.

    ``executed`` is false for a dry run. ``result`` is null until a run has ended. Partitions, bytes and stages are
    those of the direction: ``rolls_back``. ``not_restored`` are configurations that are not restored yet.
    """

    plan: str
    journal: str
    cluster_id: str | None
    executed: bool
    goal: Goal
    rolls_back: bool
    result: RunResult | None
    reason: str
    partitions: int
    started: int
    settled: int
    bytes: int | None
    settled_bytes: int | None
    throttle: int | None
    concurrency: int
    max_under_replicated: int
    offline_before: int
    under_replicated_before: int
    not_restored: list[str]
    stages: list[ExecutionStage]
    problems: list[ExecutionProblem]
    effect: ExecutionEffect | None
    """That of a plan without ``--execute``; null for any other command, and where the journal exists."""
