"""A snapshot from the responses of brokers: Metadata, DescribeTopicPartitions, DescribeConfigs and the like."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kframe.model.arrays import Ragged
from kframe.model.brokers import Endpoint
from kframe.model.events import TopicPartition
from kframe.model.lists import members
from kframe.model.texts import counted
from kframe.snapshot.assemble import Assembled, Assembly
from kframe.snapshot.checks import check_snapshot
from kframe.snapshot.content import named_brokers
from kframe.snapshot.controllers import controller_note, only_brokers
from kframe.snapshot.facts import BrokerFacts, KraftFacts, PartitionFacts, Source
from kframe.snapshot.snapshot import Snapshot

_ABSENT: Final = "not in Metadata responses"
_ABSENT_COLUMNS: Final = (
    "brokers.broker_epoch",
    "topics.deleting",
    "topics.configs",
    "topics.topic_id",
    "partitions.controller_epoch",
    "partitions.partition_epoch",
    "partitions.leader_recovery_state",
    "cluster.controller_epoch",
)


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """An ongoing reassignment: all replicas, and those of them that are being added and removed (broker ids)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


_NO_REASSIGNMENT: Final = PartitionReassignment((), (), ())


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """One partition; ``leader`` is -1 for none. Only KRaft clusters have eligible leader replicas."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int] = ()
    last_known_elr: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Responses of one cluster. Values that it refuses to return are None; ``absent`` has the reasons by column."""

    where: str
    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, tuple[str, int, str | None]]
    """Host, port and rack by id."""
    partitions: Sequence[DescribedPartition]
    reassignments: Mapping[TopicPartition, PartitionReassignment] | None = field(default_factory=dict)
    """The ongoing reassignments."""
    protocol: str = "PLAINTEXT"
    """The security protocol of the listener whose hosts and ports ``brokers`` has."""
    fenced: Collection[int] | None = ()
    """Brokers that are registered but not active; None in a KRaft cluster that does not report them."""
    features: Mapping[str, int] | None = None
    """The finalized levels of features in KRaft mode; None in ZooKeeper mode."""
    voters: Collection[int] | None = None
    """The controllers of the quorum in KRaft mode. ``controller_id`` is the one that leads."""
    has_elr: bool = False
    """Whether ``partitions`` have eligible leader replicas."""
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] | None = None
    """The own settings of each topic that has any."""
    broker_defaults: Mapping[str, str] | None = None
    """Cluster-wide settings of brokers."""
    controllers: Collection[int] = ()
    """Nodes among ``brokers`` that are instances of kframe."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Further notes by ``table.column``."""


def snapshot_of(description: ClusterDescription) -> Snapshot:
    """Convert the responses to tables. Raises SnapshotError for contradictory responses."""
    assembled = _assembled(description)
    lists = assembled.lists
    adding, removing = lists["adding"], lists["removing"]
    isr = _without_removed(lists["isr"], assembled.replicas)
    partitions = PartitionFacts(
        replicas=assembled.replicas,
        leader=assembled.numbers["leader"],
        isr=isr,
        leader_epoch=assembled.numbers["leader_epoch"],
        adding_replicas=None if description.reassignments is None else adding,
        removing_replicas=None if description.reassignments is None else removing,
        elr=lists["elr"] if description.has_elr else None,
        last_known_elr=lists["last_known_elr"] if description.has_elr else None,
    )
    topics = replace(
        assembled.topics,
        topic_ids=assembled.topics.topic_ids if description.topic_ids else None,
        deleting=None,
        configs=None if description.configs is None else assembled.topics.configs,
    )
    voters = None if description.voters is None else tuple(sorted(description.voters))
    kraft = None if description.features is None else KraftFacts(features=description.features, voters=voters)
    # Without the quorum, brokers in KRaft mode name any broker as the controller.
    is_known = description.controller_id >= 0 and (kraft is None or voters is not None)
    snapshot = Snapshot(
        _brokers(description, partitions),
        topics,
        partitions,
        Source("metadata", description.where),
        cluster_id=description.cluster_id,
        controller_id=description.controller_id if is_known else None,
        broker_default_configs=description.broker_defaults,
        kraft=kraft,
        controllers=tuple(sorted(description.controllers)),
    )
    removed = len(lists["isr"].values) - len(isr.values)
    snapshot = replace(snapshot, provenance=_provenance(snapshot, description, removed))
    check_snapshot(snapshot, assembled.locate)
    return snapshot


def _assembled(description: ClusterDescription) -> Assembled:
    numbers, lists = ("leader", "leader_epoch"), ("isr", "adding", "removing", "elr", "last_known_elr")
    assembly = Assembly(lambda number: f"{description.where} partition {number}", numbers, lists)
    configs, reassignments = description.configs or {}, description.reassignments or {}
    for number, partition in enumerate(description.partitions):
        reassignment = reassignments.get((partition.topic, partition.partition), _NO_REASSIGNMENT)
        topic = assembly.topic_named(partition.topic, number)
        assembly.partition(
            topic,
            partition.partition,
            number,
            partition.replicas,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            adding=reassignment.adding,
            removing=reassignment.removing,
            elr=partition.elr,
            last_known_elr=partition.last_known_elr,
        )
        if partition.partition == 0:
            assembly.configs[topic] = configs.get(partition.topic, {})
            if topic_id := description.topic_ids.get(partition.topic):
                assembly.topic_ids[topic] = topic_id
    return assembly.finish()


def _without_removed(isr: Ragged, replicas: Ragged) -> Ragged:
    """The ISRs without brokers that are no longer replicas.

    The controller in ZooKeeper mode announces the replicas of a completed reassignment with the former ISR, and then
    shrinks the ISR (Kafka 3.9 ``KafkaController.onPartitionReassignment``, phase B). An ISR without any replica is
    contradictory: it is returned as it is, for the check that follows.
    """
    remaining = members(isr, replicas)
    return isr.keep(remaining | ~isr.any(remaining)[isr.owners])


def _provenance(snapshot: Snapshot, description: ClusterDescription, removed: int) -> dict[str, str]:
    """Why columns are unknown, what endpoints are, and how many ISR members were left out."""
    topics = snapshot.topics
    known = {
        f"topics.{name}"
        for name, column in (("configs", topics.configs), ("topic_id", topics.topic_ids))
        if column is not None
    }
    provenance = {column: _ABSENT for column in _ABSENT_COLUMNS if column not in known}
    provenance["brokers.endpoints"] = f"the listener that answered, by {description.protocol}"
    if any(broker.registered is None for broker in snapshot.brokers):
        provenance["brokers.registered"] = "fenced" if description.fenced else "not active, which may mean fenced"
    if removed:
        provenance["partitions.isr"] = (
            f"without {counted(removed, 'replica')} that completed reassignments have just removed"
        )
    if not snapshot.is_kraft and snapshot.controller_id not in snapshot.controllers:
        provenance |= controller_note(snapshot.controller_id, snapshot.partitions)
    return provenance | dict(description.absent)


def _brokers(description: ClusterDescription, partitions: PartitionFacts) -> tuple[BrokerFacts, ...]:
    """The active brokers as registered, fenced brokers as unknown, and those that only partitions name."""
    protocol, fenced = description.protocol, description.fenced or ()
    brokers = {
        broker_id: BrokerFacts(
            broker_id,
            None if broker_id in fenced else True,
            endpoints=(Endpoint(protocol, host, port, protocol),),
            rack=rack,
        )
        for broker_id, (host, port, rack) in description.brokers.items()
    }
    for broker_id in named_brokers(partitions).tolist():
        brokers.setdefault(broker_id, BrokerFacts(broker_id, registered=None if description.fenced is None else False))
    return only_brokers(brokers.values(), description.controllers, partitions)
