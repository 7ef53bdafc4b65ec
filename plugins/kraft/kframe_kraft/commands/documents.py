"""The types of the JSON documents of ``kframe log`` and ``kframe kraft``."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from kframe.plugin.snapshot import SummaryRecord


class LogRow(Struct):
    """A record or batch of the log, and its fields as ``kafka-dump-log`` prints them. ``committed`` null is unknown."""

    offset: int
    time: str
    epoch: int
    type: str
    key: str
    summary: str
    version: int | None
    batch: int
    transaction: Literal["committed", "aborted", "open"] | None
    committed: bool | None
    fields: dict[str, Any]


class LogClusterDocument(SummaryRecord, frozen=True, kw_only=True):
    """The cluster at an offset or time of the log. ``at`` is the time of the last record."""

    at: str | None


class DifferenceRow(Struct):
    """A value that differs between two offsets; ``before`` and ``after`` are null where there is no value.

    Lists have broker ids, or directory ids as ``kafka-dump-log`` prints them.
    """

    kind: str
    name: str
    change: str
    before: bool | int | str | list[int | str] | None
    after: bool | int | str | list[int | str] | None
    topic: str | None
    brokers: list[int]


class DifferenceCount(Struct):
    """The number of differences, and of each kind of change."""

    changes: int
    by_change: dict[str, int]


class TopicDifferences(DifferenceCount):
    """The differences of a topic."""

    topic: str


class BrokerDifferences(DifferenceCount):
    """The differences about a broker, by its id as text."""

    broker: str


class RackDifferences(DifferenceCount):
    """The differences about the brokers of a rack."""

    rack: str


class LeaderCauseDocument(Struct):
    """Why a partition has its leader. ``snapshot_offset`` has a value if only a snapshot names the leader.

    ``not_elected`` has the reason for each other replica, by broker id. A null ``event`` is unknown.
    """

    partition: str
    leader: int
    leader_epoch: int
    snapshot_offset: int | None
    offset: int | None
    time: str | None
    record: str | None
    before: str | None
    event: str | None
    event_offset: int | None
    rule: str | None
    not_elected: dict[str, str]
    other_events: list[str]


class ReplicaRow(Struct):
    """The metadata log of a controller beside the others. ``can_lead`` null depends on replicas that are missing.

    Of a damaged log, only its identity and the damage in ``detail`` are known.
    """

    directory: str
    node_id: int | None
    cluster_id: str | None
    start: int | None
    end: int | None
    last_epoch: int | None
    state: Literal["reference", "equal", "behind", "stale tail", "diverged", "no overlap", "damaged"]
    first_difference: int | None
    can_lead: bool | None
    snapshot_end: int | None
    quorum_epoch: int | None
    leader_id: int | None
    voted_id: int | None
    torn_bytes: int | None
    committed_at_least: int | None
    detail: str | None


class FormatDocument(Struct):
    """The directories that were formatted now, and those that were formatted before."""

    cluster_id: str
    node_id: int
    quorum: Literal["static", "dynamic"]
    features: dict[str, int]
    scram_users: list[str]
    formatted: list[str]
    left: list[str]


class RecoveryDocument(Struct):
    """The recovery of a lost quorum from the directory of a node. ``written`` is the copy, null if none.

    ``node_id`` is the only voter, ``source_node_id`` the node of the directory.
    """

    directory: str
    cluster_id: str
    node_id: int
    source_node_id: int
    former_voters: list[int]
    kraft_version: int
    log_end: int
    last_time: str | None
    last_epoch: int
    committed_at_least: int
    new_epoch: int
    brokers: int
    topics: int
    partitions: int
    risks: list[str]
    written: str | None
