"""The document of a checked plan, and the rows of its partitions."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from kframe.plans.check.findings import Check, Severity
from kframe.snapshot import Snapshot
from kframe.whatif.results.health import Skew
from kframe.whatif.results.release import ReleaseRecord

Change: TypeAlias = Literal["none", "order", "grow", "shrink", "move", "unknown"]


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

    @staticmethod
    def of(snapshot: Snapshot) -> PlanSnapshot:
        """The record of a snapshot."""
        sizes = len(snapshot.brokers), len(snapshot.topics), len(snapshot)
        return PlanSnapshot(snapshot.source.format, snapshot.source.name, *sizes)


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
    """What a plan moves; ``not_valid`` partitions stay as they are.

    ``bytes_copied`` is null without sizes. ``expected_seconds`` is the duration of all copies at once; null without
    sizes and a rate, and if the plan names log directories: the sizes do not say which replicas are in them.
    """

    partitions: ChangeKinds
    not_valid: int
    replicas_copied: int
    replicas_deleted: int
    bytes_copied: int | None
    expected_seconds: float | None
    replica_skew_before: Skew
    replica_skew_after: Skew
    preferred_skew_before: Skew
    preferred_skew_after: Skew
    brokers: list[PlanBroker]


class PlanFinding(Struct):
    """A finding about a plan; ``error`` is Kafka's name of the error that a controller would return."""

    severity: Severity
    check: Check
    error: str | None
    topic: str | None
    partition: int | None
    detail: str


class PlanCheckDocument(Struct, kw_only=True):
    """A checked plan: ``kframe plan check``. ``rules`` (which decide), ``snapshot`` and ``moves`` are null without
    ``--snapshot``. ``notes`` say what is not checked."""

    rules: str | None
    release: ReleaseRecord | UnsetType = UNSET
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
    change: Change | None
    replicas: list[int] | None
    target: list[int]
    adding: list[int] | None
    removing: list[int] | None
    leader: int | None
    valid: bool
