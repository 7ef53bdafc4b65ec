"""The document of a rolling restart."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kframe.plans.check.document import PlanSnapshot
from kframe.whatif.results.release import ReleaseRecord


class LimitingPartition(Struct):
    """A partition that keeps brokers from being down at once: at most ``spare`` of its in-sync replicas may be.
    ``min_isr`` is the effective ``min.insync.replicas``."""

    topic: str
    partition: int
    isr: list[int]
    min_isr: int
    spare: int


class RestartOutcome(Struct):
    """The what-if of a batch: its brokers fail together. Counts are partitions while they are down; null is unknown."""

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


class RestartBatch(Struct):
    """Nodes that restart together. A node that is broker and controller is in both lists. ``outcome`` is null for a
    batch without brokers."""

    number: int
    brokers: list[int]
    controllers: list[int]
    racks: list[str]
    outcome: RestartOutcome | None


class RestartConflict(Struct):
    """Two nodes, or two racks of brokers, that share no batch. ``partitions`` keep them apart; ``example`` is one of
    them, or null for the quorum."""

    nodes: list[int]
    other_nodes: list[int]
    partitions: int
    example: LimitingPartition | None
    reason: str


class BlockedNodes(Struct):
    """Nodes that no batch has. ``cause``: partitions that would go offline or under min ISR, partitions that would be
    at min ISR beyond the limit, or the quorum. ``example`` is one of the partitions, null for the quorum."""

    nodes: list[int]
    cause: Literal["offline", "under-min-isr", "at-min-isr", "quorum"]
    partitions: int
    example: LimitingPartition | None
    reason: str


class RestartPlanDocument(Struct, kw_only=True):
    """A rolling restart: ``kframe plan restarts``. ``complete``: every node has a batch. No order has fewer batches
    than ``bound``; ``gap`` is by how many the batches exceed it, and ``proof`` says why.

    ``conflicts`` are those of the proof, at most 1,000 of them, or with ``--conflicts`` all.
    """

    rules: str
    release: ReleaseRecord | UnsetType = UNSET
    snapshot: PlanSnapshot
    summary: str
    complete: bool
    batches: list[RestartBatch]
    bound: int
    gap: int
    proof: str
    blocked: list[BlockedNodes]
    conflicts: list[RestartConflict]
    assumptions: list[str]
    notes: list[str]
