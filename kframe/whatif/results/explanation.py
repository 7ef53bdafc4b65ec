"""The result of ``kframe explain``: the leader of a partition, its rule, and why each other replica does not lead."""

from __future__ import annotations

from dataclasses import dataclass

from kframe.whatif.results.release import ReleaseRecord


@dataclass(frozen=True, slots=True)
class CandidateReplica:
    """One assigned replica. It has its position in the assignment from 0, and why it leads or does not."""

    broker_id: int
    position: int
    outcome: str
    """A CandidateStatus, or a KraftCandidateStatus."""
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of a leader, or the lack of one. ``step`` is the what-if's step, None for the snapshot itself."""

    step: str | None
    rule: str
    """A LeaderRule, or a KraftRule."""
    leader: int | None
    text: str
    isr: tuple[int, ...]
    """The ISR that the choice was made from."""
    candidates: tuple[CandidateReplica, ...]
    selector: str | None = None
    """The leader selector in charge, if it is not the built-in rule."""
    elr: tuple[int, ...] | None = None
    """The eligible leader replicas that the choice was made from; None in ZooKeeper mode."""
    last_known_elr: tuple[int, ...] | None = None
    """The last leader of a partition without ISR and ELR; None in ZooKeeper mode."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything decided about one partition: what the snapshot shows, then each election of the what-if."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    before: Decision
    elections: tuple[Decision, ...]
    leader: int | None
    isr: tuple[int, ...]
    assumptions: tuple[str, ...]
    rules: str
    """The rules that decided, in words."""
    release: ReleaseRecord | None = None
    """The release of Kafka whose rules decided; None in ZooKeeper mode."""
