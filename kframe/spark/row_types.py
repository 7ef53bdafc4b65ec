"""The rows of ``kframe spark``: the columns of the tables in ``kframe/spark``. Null is unknown."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from kframe.snapshot.content import Mode
from kframe.whatif.results.sweep_records import FailureRow


class LeftOutCluster(Struct, frozen=True):
    """A cluster without rows, or a scenario that a cluster cannot play. ``scenario`` is null for the whole cluster."""

    cluster: str
    scenario: str | None
    reason: str


class FleetFields(Struct):
    """The fields beside the rows of a fleet: clusters that have none, by name."""

    left_out: list[LeftOutCluster]


class ValidationFields(FleetFields):
    """The fields beside the rows of ``kframe spark validate``. ``valid`` names the clusters without violations."""

    valid: list[str]


class FleetSweepRow(FailureRow):
    """A failure in a cluster of a fleet: ``kframe spark sweep``."""

    cluster: str
    rank: int
    directory: str | None
    may_lose_data: int | None
    rules: str


class FleetPlanRow(Struct):
    """The plan of a cluster of a fleet: ``kframe spark plan``. ``cost`` and ``bound`` are in ``unit``: no plan costs
    less than the bound. ``gap`` is null where the targets are not met, ``bytes`` without sizes."""

    cluster: str
    scope: int
    changed: int
    reassigning: int
    unassignable: int
    unmet: int
    leaderless: int
    observers: int
    moves: int
    bytes: int | None
    unit: str
    cost: int
    bound: int
    gap: float | None
    exact: bool
    targets_met: bool
    leader_changes: int
    crowded_before: int | None
    crowded_after: int | None
    summary: str
    proof: str


class IngestRow(Struct):
    """A cluster that was put into a fleet, or the reason for its refusal: ``kframe spark ingest``."""

    cluster: str
    source: str
    status: str
    partitions: int | None
    topics: int | None
    brokers: int | None
    quarantined: int
    reason: str | None
    mode: Mode | None


class ViolationRow(Struct):
    """A broken rule: ``kframe spark validate``."""

    cluster: str
    rule: str
    severity: Literal["error", "warning"]
    topic: str | None
    partition: int | None
    actual: str
    expected: str
    mode: Mode | None


class ImpactRow(Struct):
    """The effects of a scenario on a cluster, in partitions: ``kframe spark failover``."""

    cluster: str
    scenario: str
    leaders_moved: int | None
    newly_offline: int | None
    back_online: int | None
    newly_under_min_isr: int | None
    newly_at_min_isr: int | None
    newly_under_replicated: int | None
    unclean_elections: int | None
    needs_unclean_election: int | None
    states_changed: int | None
    partition_states_written: int | None
    offline: int | None = field(name="found_offline")
    under_min_isr: int | None = field(name="found_under_min_isr")
    data_loss: int | None = field(name="found_data_loss")
    possible_data_loss: int | None = field(name="found_possible_data_loss")
    records: int | None
    record_bytes: int | None
    rules: str


class RequestsRow(Struct):
    """The requests of one kind to a broker in a step of a scenario: ``kframe spark requests``."""

    cluster: str
    scenario: str
    step: int
    batch: int
    broker_id: int
    api: str
    requests: int
    entries: int
    bytes: int | None
    unknown: str | None
    encoded: None


class ClusterReportRow(Struct):
    """A scenario in a cluster: ``kframe spark report``."""

    cluster: str
    scenario: str
    partitions: int | None
    offline: int | None
    under_min_isr: int | None
    at_min_isr: int | None
    under_replicated: int | None
    needs_unclean_election: int | None
    leaders_moved: int | None
    newly_offline: int | None
    back_online: int | None
    newly_under_min_isr: int | None
    newly_at_min_isr: int | None
    newly_under_replicated: int | None
    unclean_elections: int | None
    states_changed: int | None
    partition_states_written: int | None
    records: int | None
    record_bytes: int | None
    leader_skew_before: float | None
    leader_skew_after: float | None
    rules: str


class LoadChange(Struct):
    """Partitions of a broker or rack before and after a scenario, and the requests to it."""

    cluster: str
    scenario: str
    leaders_before: int | None
    leaders_after: int | None
    preferred_leaders_before: int | None
    preferred_leaders_after: int | None
    replicas_before: int | None
    replicas_after: int | None
    in_sync_replicas_before: int | None
    in_sync_replicas_after: int | None
    requests: int | None
    entries: int | None
    bytes: int | None


class BrokerReportRow(LoadChange):
    """A broker in a scenario: ``kframe spark report --by broker``."""

    broker_id: int
    rack: str | None
    registered_before: bool | None
    registered_after: bool | None


class RackReportRow(LoadChange):
    """A rack in a scenario, null for brokers without a rack: ``kframe spark report --by rack``."""

    rack: str | None
    brokers_before: int | None
    brokers_after: int | None


class TopicReportRow(Struct):
    """A topic with changed partitions in a scenario: ``kframe spark report --by topic``."""

    cluster: str
    scenario: str
    topic: str
    changed: int | None
    went_offline: int | None
    came_online: int | None
    leaders_moved: int | None
    unclean: int | None
