"""The documents of ``kframe controller``."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kframe.documents.snapshots import QuarantinedPath
from kframe.ports.live_cluster import ControllerKind
from kframe.whatif.shadow.kraft.differences import RecordDifference

__all__ = ["LogShadowDocument", "ResignationRecord", "ShadowDocument", "StatusDocument"]


class StandbyRecord(Struct):
    """An instance of kframe that waits for the role."""

    id: int
    host: str
    pid: int
    started: str


class ChosenSelectorRecord(Struct):
    """A leader selector in force, the kinds of election that it decides, and its options."""

    name: str
    elections: list[str]
    options: dict[str, bool | int | float | str]


class StatusDocument(Struct):
    """A live cluster and its controller: ``kframe controller status``. Null is unknown or absent."""

    controller_id: int | None
    controller_kind: ControllerKind | None
    controller_host: str | None
    controller_pid: int | None
    controller_epoch: int | None
    elected: str | None
    standbys: list[StandbyRecord]
    cluster_id: str | None
    brokers: list[int]
    topics: int
    partitions: int | None
    offline_partitions: int | None
    under_replicated_partitions: int | None
    under_min_isr_partitions: int | None
    topics_to_delete: int | None
    reassigning_partitions: int | None
    queues: dict[str, int] | None
    """Requests that wait, by broker id."""
    queues_unknown: str | None
    """Why ``queues`` is null."""
    selectors: list[ChosenSelectorRecord] | None
    """Leader selectors of the active kframe; none is Kafka's rule. Null if its page cannot be read."""
    quick: bool
    quarantined_by: str
    quarantined: list[QuarantinedPath]
    unreadable: list[QuarantinedPath]
    warnings: list[str]


class ResignationRecord(Struct):
    """The controller that lost the role, and the epoch that ended: ``kframe controller resign``."""

    controller_id: int
    controller_epoch: int


class ShadowState(Struct):
    """The compared part of a partition's state."""

    leader: int
    leader_epoch: int
    isr: list[int]


class DisagreementRecord(Struct):
    """A partition whose stored state differs from what kframe would have stored; null is no state."""

    at: str
    topic: str
    partition: int
    before: ShadowState | None
    expected: ShadowState | None
    actual: ShadowState | None
    causes: list[str]


class ShadowDocument(Struct):
    """The comparison with an active controller: ``kframe controller shadow``."""

    controller_id: int
    rounds: int
    compared: int
    skipped: int
    abandoned: int
    disagreements: int
    records: list[DisagreementRecord] | UnsetType = UNSET


class ShadowedBatch(Struct):
    """A committed batch and its prediction; several batches if a decision was cut."""

    at: str
    offset: int
    records: int
    controller_id: int | None
    controller_epoch: int
    outcome: Literal["equal", "differs", "not predictable"]
    events: list[str]
    reasons: list[str]
    differences: list[RecordDifference]


class LogShadowDocument(Struct):
    """The committed log of a KRaft cluster, compared with its prediction: ``kframe controller shadow``."""

    controller_id: int | None
    controller_epoch: int | None
    end: int
    """The offset after the last batch."""
    batches: int
    equal: int
    disagreements: int
    """Batches that differ."""
    unpredictable: int
    skipped: int
    """Offsets that a snapshot replaced before they were read."""
    records: list[ShadowedBatch]
    """The batches without those of an idle log."""
