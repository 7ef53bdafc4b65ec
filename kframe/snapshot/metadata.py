"""A snapshot of what brokers answer to Metadata and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kframe.model.brokers import Endpoint
from kframe.model.events import TopicPartition
from kframe.snapshot.administration import Moving
from kframe.snapshot.assemble import Assembly
from kframe.snapshot.checks import check_snapshot
from kframe.snapshot.facts import BrokerFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.snapshot import Snapshot, named_brokers

_ABSENT: Final = "brokers do not tell it"
_ABSENT_COLUMNS: Final = (
    "brokers.broker_epoch", "topics.deleting", "topics.configs", "topics.topic_id", "partitions.controller_epoch",
    "partitions.zk_version", "partitions.leader_recovery_state", "cluster.controller_epoch",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Described:
    """One partition as Metadata has it; ``leader`` is -1 for none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Answers that belong together."""

    where: str
    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, tuple[str, int, str | None]]
    """Host, port and rack by id."""
    partitions: Sequence[Described]
    moving: Mapping[TopicPartition, Moving] = field(default_factory=dict)


def snapshot_of(told: ClusterDescription) -> Snapshot:
    """Put the answers in tables. Raises SnapshotError where they make no sense."""
    numbers, lists = ("leader", "leader_epoch"), ("isr", "adding", "removing")
    assembly = Assembly(lambda number: f"{told.where} partition {number}", numbers, lists)
    for number, one in enumerate(told.partitions):
        moving = told.moving.get((one.topic, one.partition), Moving((), (), ()))
        assembly.partition(
            assembly.topic_named(one.topic, number), one.partition, number, one.replicas, leader=one.leader,
            leader_epoch=one.leader_epoch, isr=one.isr, adding=moving.adding, removing=moving.removing,
        )  # fmt: skip
    assembled = assembly.finish()
    partitions = PartitionFacts(
        replicas=assembled.replicas, leader=assembled.numbers["leader"], isr=assembled.lists["isr"],
        leader_epoch=assembled.numbers["leader_epoch"], adding_replicas=assembled.lists["adding"],
        removing_replicas=assembled.lists["removing"],
    )  # fmt: skip
    provenance = dict.fromkeys(_ABSENT_COLUMNS, _ABSENT)
    provenance["brokers.endpoints"] = "the listener that was asked; it is taken to be PLAINTEXT"
    snapshot = Snapshot(
        _brokers(told, partitions),
        TopicFacts(assembled.topics.names, assembled.topics.partition_counts),
        partitions,
        Source("metadata", told.where),
        cluster_id=told.cluster_id,
        controller_id=told.controller_id if told.controller_id >= 0 else None,
        provenance=provenance,
    )
    check_snapshot(snapshot, assembled.locate)
    return snapshot


def _brokers(told: ClusterDescription, partitions: PartitionFacts) -> tuple[BrokerFacts, ...]:
    """Those that live, and as not registered those that only partitions name."""
    found = {
        one: BrokerFacts(one, True, endpoints=(Endpoint("PLAINTEXT", host, port),), rack=rack)
        for one, (host, port, rack) in told.brokers.items()
    }
    for broker_id in named_brokers(partitions).tolist():
        found.setdefault(broker_id, BrokerFacts(broker_id, registered=False))
    return tuple(found[broker_id] for broker_id in sorted(found))
