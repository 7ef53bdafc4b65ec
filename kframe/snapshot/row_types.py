"""The types of the rows and of the summary of a snapshot."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from kframe.snapshot.content import Mode
from kframe.snapshot.summary import Summary


class SummaryRecord(Summary, frozen=True):
    """A snapshot in numbers: ``kframe snapshot show``. Null is unknown."""

    source: str
    mode: Mode
    cluster_id: str | None
    controller_id: int | None
    controller_epoch: int | None
    controllers: list[int]
    """Ids of instances of kframe, which are no brokers."""
    provenance: dict[str, str]
    assumptions: list[str]
    metadata_version: str | UnsetType | None = UNSET
    features: dict[str, int] | UnsetType | None = UNSET
    offset: int | UnsetType | None = UNSET
    voters: list[int] | UnsetType | None = UNSET
    fenced_brokers: int | UnsetType | None = UNSET
    elr_partitions: int | UnsetType | None = UNSET
    other_records: dict[str, int] | UnsetType | None = UNSET
    observers: int | UnsetType = UNSET


class SnapshotBroker(Struct):
    """A broker of a snapshot and its load: ``kframe snapshot show --list brokers``. Null is unknown."""

    broker_id: int
    registered: bool | None
    rack: str | None
    leaders: int | None
    preferred_leaders: int | None
    replicas: int | None
    in_sync_replicas: int | None
    broker_epoch: int | None
    endpoints: list[str] | None
    fenced: bool | UnsetType | None = UNSET
    in_controlled_shutdown: bool | UnsetType | None = UNSET
    log_dirs: list[str] | UnsetType | None = UNSET
    cordoned_log_dirs: list[str] | UnsetType | None = UNSET
    incarnation_id: str | UnsetType | None = UNSET
    features: dict[str, list[int]] | UnsetType | None = UNSET


class SnapshotTopic(Struct):
    """A topic of a snapshot: ``kframe snapshot show --list topics``. Null is unknown."""

    topic: str
    partition_count: int
    replication_factor: int | None
    offline: int | None
    under_replicated: int | None
    deleting: bool | None
    topic_id: str | None
    configs: dict[str, str] | None


class SnapshotPartition(Struct):
    """A partition of a snapshot: ``kframe snapshot show --list partitions``. Leader -1 is none, null is unknown."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int | None
    controller_epoch: int | None
    partition_epoch: int | None
    leader_recovery_state: int | None
    replicas: list[int]
    isr: list[int] | None
    adding_replicas: list[int] | None
    removing_replicas: list[int] | None
    elr: list[int] | None
    last_known_elr: list[int] | None
    directories: list[str] | UnsetType | None = UNSET
    observers: list[int] | UnsetType = UNSET
