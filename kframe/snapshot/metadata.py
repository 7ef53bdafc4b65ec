"""A snapshot from the responses to Metadata and ListPartitionReassignments."""

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

_ABSENT: Final = "not in Metadata responses"
_ABSENT_COLUMNS: Final = (
    "brokers.broker_epoch", "topics.deleting", "topics.configs", "topics.topic_id", "partitions.controller_epoch",
    "partitions.zk_version", "partitions.leader_recovery_state", "cluster.controller_epoch",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Described:
    """One partition as Metadata has it. ``leader`` is -1 for none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Responses of one cluster."""

    where: str
    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, tuple[str, int, str | None]]
    """Host, port and rack by id."""
    partitions: Sequence[Described]
    moving: Mapping[TopicPartition, Moving] = field(default_factory=dict)


def snapshot_of(description: ClusterDescription) -> Snapshot:
    """Convert the responses to tables. Raises SnapshotError for contradictory responses."""
    numbers, lists = ("leader", "leader_epoch"), ("isr", "adding", "removing")
    assembly = Assembly(lambda number: f"{description.where} partition {number}", numbers, lists)
    for number, partition in enumerate(description.partitions):
        moving = description.moving.get((partition.topic, partition.partition), Moving((), (), ()))
        assembly.partition(
            assembly.topic_named(partition.topic, number), partition.partition, number, partition.replicas,
            leader=partition.leader, leader_epoch=partition.leader_epoch, isr=partition.isr, adding=moving.adding,
            removing=moving.removing,
        )  # fmt: skip
    assembled = assembly.finish()
    partitions = PartitionFacts(
        replicas=assembled.replicas, leader=assembled.numbers["leader"], isr=assembled.lists["isr"],
        leader_epoch=assembled.numbers["leader_epoch"], adding_replicas=assembled.lists["adding"],
        removing_replicas=assembled.lists["removing"],
    )  # fmt: skip
    provenance = dict.fromkeys(_ABSENT_COLUMNS, _ABSENT)
    provenance["brokers.endpoints"] = "the listener that answered, assumed to be PLAINTEXT"
    snapshot = Snapshot(
        _brokers(description, partitions),
        TopicFacts(assembled.topics.names, assembled.topics.partition_counts),
        partitions,
        Source("metadata", description.where),
        cluster_id=description.cluster_id,
        controller_id=description.controller_id if description.controller_id >= 0 else None,
        provenance=provenance,
    )
    check_snapshot(snapshot, assembled.locate)
    return snapshot


def _brokers(description: ClusterDescription, partitions: PartitionFacts) -> tuple[BrokerFacts, ...]:
    """The live brokers, and as unregistered the brokers that only partitions name."""
    brokers = {
        broker_id: BrokerFacts(broker_id, True, endpoints=(Endpoint("PLAINTEXT", host, port),), rack=rack)
        for broker_id, (host, port, rack) in description.brokers.items()
    }
    for broker_id in named_brokers(partitions).tolist():
        brokers.setdefault(broker_id, BrokerFacts(broker_id, registered=False))
    return tuple(brokers[broker_id] for broker_id in sorted(brokers))
