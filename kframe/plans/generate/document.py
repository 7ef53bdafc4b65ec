"""The document of a generated plan."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kframe.plans.check.document import PlanSnapshot
from kframe.whatif.results.health import Skew


class Unmet(StrEnum):
    """What a partition lacks of the request."""

    REMOVAL = "removal"
    """A broker that its replicas were to leave retains one."""
    REPLICATION_FACTOR = "replication-factor"
    RACKS = "racks"
    """It is spread over racks less evenly than it could be, and ``fix_racks`` is requested."""
    ONE_RACK = "one-rack"
    """Its replicas are in more than one rack, and ``one_rack`` requests one."""
    LEADER = "leader"
    """Its preferred leader is on a demoted broker or in a demoted log directory, or no leader selector elects it."""


class GeneratedPartitions(Struct):
    """Partitions in scope, partitions that change, partitions left out because they are being reassigned, and
    partitions that no allowed broker can take a replica of. ``unmet`` are not as requested after the plan.
    ``leaderless`` receive replicas that cannot be copied before the partition has a leader. ``observers`` are those of
    the partitions that change, as many as before."""

    scope: int
    changed: int
    reassigning: int
    unassignable: int
    unmet: int
    leaderless: int
    observers: int


class GeneratedMoves(Struct):
    """What a generated plan copies. ``cost`` and ``bound`` are in ``unit``: no plan costs less than the bound. The unit
    is ``replicas``, ``bytes``, or that of the goal. ``term_cost`` is the part of the cost that cost terms add.

    ``gap`` is the part of the bound by which the cost exceeds it; null where the request is not met. ``exact``: the
    solver has proven the bound, or that no plan meets the targets. ``leaders`` counts the partitions whose preferred
    leader changes. ``seconds`` is the expected duration of all copies at once; null without a rate.
    """

    replicas: int
    unit: str
    cost: int
    term_cost: int
    bound: int
    gap: float | None
    exact: bool
    leaders: int
    seconds: float | None


class CrowdedPartitions(Struct):
    """Partitions that are spread over racks less evenly than they could be: they span fewer racks, or have two replicas
    more in a rack than in another. Those that are to be in one rack count while they are in more. Null where no broker
    has a rack."""

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
