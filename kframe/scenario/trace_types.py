"""The documents of ``kframe scenario``: traces, steps and checks."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType


class StoredPartition(Struct):
    """A partition as stored; the last six fields are null without a state."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]
    leader: int | None
    isr: list[int] | None
    leader_epoch: int | None
    controller_epoch: int | None
    leader_recovery_state: int | None
    partition_epoch: int | None


class LeaderAndIsrPartition(Struct):
    """A partition of a LeaderAndIsr request."""

    leader: int
    leader_epoch: int
    isr: list[int]
    partition_epoch: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]
    is_new: bool
    leader_recovery_state: int


class MetadataPartition(Struct):
    """A partition of an UpdateMetadata request; leader -2 is a topic under deletion."""

    leader: int
    leader_epoch: int
    isr: list[int]
    partition_epoch: int
    replicas: list[int]
    offline_replicas: list[int]


class StoppedPartition(Struct):
    """A partition of a StopReplica request."""

    leader_epoch: int
    delete_partition: bool


class LeaderAndIsrEntry(Struct, tag_field="api", tag="LeaderAndIsr"):
    """A LeaderAndIsr request to a broker."""

    broker: int
    controller_epoch: int
    live_leaders: list[int]
    partitions: dict[str, LeaderAndIsrPartition]


class UpdateMetadataEntry(Struct, tag_field="api", tag="UpdateMetadata"):
    """An UpdateMetadata request to a broker."""

    broker: int
    controller_epoch: int
    live_brokers: list[int]
    partitions: dict[str, MetadataPartition]


class StopReplicaEntry(Struct, tag_field="api", tag="StopReplica"):
    """A StopReplica request to a broker."""

    broker: int
    controller_epoch: int
    partitions: dict[str, StoppedPartition]


RequestEntry: TypeAlias = LeaderAndIsrEntry | UpdateMetadataEntry | StopReplicaEntry


class TraceStep(Struct):
    """A step as in the scenario, what was stored and sent, and the response to a request."""

    step: dict[str, Any]
    partitions: dict[str, StoredPartition]
    topics_deleted: list[str]
    requests: list[RequestEntry]
    response: dict[str, Any] | None


class TraceDocument(Struct):
    """What a controller did in a scenario: ``kframe scenario run`` and its ``--trace``."""

    scenario: str
    controller: str
    steps: list[TraceStep]


class TracedRecord(Struct):
    """A record as ``kafka-dump-log`` prints it, with symbolic names."""

    type: str
    version: int
    data: dict[str, Any]


class TracedBatch(Struct):
    """A batch of the metadata log; ``control`` marks batches of control records."""

    offset: int
    epoch: int
    records: list[TracedRecord]
    control: bool | UnsetType = UNSET


class TracedSnapshot(Struct):
    """A snapshot of everything before ``offset``."""

    offset: int
    records: list[TracedRecord]


class KraftTraceStep(Struct):
    """A step as in the scenario, what was committed in it, and the response to a request."""

    step: dict[str, Any]
    batches: list[TracedBatch]
    response: Any
    broker_epochs: dict[str, int] | UnsetType = UNSET
    snapshot: TracedSnapshot | UnsetType = UNSET
    messages: dict[str, str] | UnsetType = UNSET


class KraftTraceDocument(Struct):
    """What a KRaft controller did in a scenario, and the metadata that its records add up to."""

    scenario: str
    controller: str
    default_features: dict[str, list[int]]
    steps: list[KraftTraceStep]
    image: dict[str, Any]


class ScenarioCheckRow(Struct):
    """A scenario file that can be played, or the reason why not: ``kframe scenario check``."""

    file: str
    playable: bool
    steps: int | None
    problem: str | None
