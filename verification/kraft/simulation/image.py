"""The metadata of a cluster as plain objects, record by record: the model that the controller is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from uuid import UUID

from kframe.plugin.kraft import directory_ids, records
from verification.kraft.simulation.soft_state import SoftState

#: A partition by topic id and number.
PartitionKey: TypeAlias = tuple[UUID, int]
ELR_FEATURE: Final = "eligible.leader.replicas.version"
TOPIC: Final = 2
BROKER: Final = 4
MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition. ``directories`` has the order of ``replicas``."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovery: int = 0
    directories: tuple[UUID, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory_of(self, broker_id: int) -> UUID:
        """The directory of a replica."""
        return self.directories[self.replicas.index(broker_id)]

    def has_role(self, broker_id: int) -> bool:
        """Whether a broker leads, or is in the ISR with others."""
        return self.leader == broker_id or (broker_id in self.isr and len(self.isr) > 1)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A registration. ``cordoned`` is None until the broker has named its cordoned directories."""

    broker_epoch: int
    incarnation_id: UUID
    directories: tuple[UUID, ...]
    fenced: bool = True
    in_shutdown: bool = False
    rack: str | None = None
    cordoned: tuple[UUID, ...] | None = None
    end_points: tuple[records.BrokerEndpoint, ...] = ()
    features: tuple[records.BrokerFeature, ...] = ()

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead and join ISRs."""
        return not self.fenced and not self.in_shutdown

    @property
    def takes_replicas(self) -> bool:
        """Whether a directory is not cordoned."""
        return not self.directories or not set(self.directories) <= {*(self.cordoned or ())}

    def has_online(self, directory: UUID) -> bool:
        """Whether a replica in this directory can be read."""
        if directory in (directory_ids.UNASSIGNED, directory_ids.MIGRATING) or not self.directories:
            return True
        return directory in self.directories


@dataclass(slots=True)
class Image:
    """The metadata of all records so far. ``changed`` are the partitions that changed since it was emptied."""

    soft: SoftState = field(default_factory=SoftState)
    """That of the active controller. Other copies of the metadata have none."""

    refuses_cordoned: bool = True
    """Whether the controller's release refuses assignments to brokers whose directories are all cordoned."""
    topics: dict[str, UUID] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)
    partitions: dict[PartitionKey, PartitionState] = field(default_factory=dict)
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    controllers: dict[int, records.RegisterControllerRecord] = field(default_factory=dict)
    next_producer_id: int = 0
    changed: set[PartitionKey] = field(default_factory=set)

    def has_replica(self, key: PartitionKey, broker_id: int) -> bool:
        """Whether a broker has a replica of a partition, which may not exist."""
        state = self.partitions.get(key)
        return state is not None and broker_id in state.replicas

    def may_assign(self, broker_id: int) -> bool:
        """Whether an administrator may assign a replica to a broker."""
        broker = self.brokers.get(broker_id)
        return broker is not None and (broker.takes_replicas or not self.refuses_cordoned)

    def min_isr(self, topic_id: UUID) -> int:
        """``min.insync.replicas`` as the controller takes it: at most the replicas of partition 0."""
        return min(self.configured_min_isr(topic_id), len(self.partitions[topic_id, 0].replicas))

    def configured_min_isr(self, topic_id: UUID) -> int:
        """``min.insync.replicas`` of a topic; the settings of the nodes' own files are Kafka's defaults."""
        settings = (
            self.configs.get((TOPIC, self.names[topic_id]), {}),
            self.configs.get((BROKER, ""), {}),
        )
        return next((int(each[MIN_ISR]) for each in settings if MIN_ISR in each), 1)

    def is_unclean(self, topic_id: UUID) -> bool:
        """Whether elections outside the ISR are allowed."""
        settings = self.configs.get((TOPIC, self.names[topic_id]), {}), self.configs.get((BROKER, ""), {})
        return next((each[UNCLEAN] for each in settings if UNCLEAN in each), "false") == "true"

    def default_directory(self, broker_id: int) -> UUID:
        """The directory of a new replica: the only one of its broker. A broker with several chooses one itself."""
        directories = self.brokers[broker_id].directories
        if not directories:
            return directory_ids.MIGRATING
        return directories[0] if len(directories) == 1 else directory_ids.UNASSIGNED

    def partitions_of(self, topic_id: UUID) -> Iterator[PartitionKey]:
        """The partitions of a topic."""
        number = 0
        while (topic_id, number) in self.partitions:
            yield topic_id, number
            number += 1

    def apply(self, record: records.MetadataRecord) -> None:
        """Apply a record of the log, which fits the metadata."""
        match record:
            case records.TopicRecord():
                self.topics[record.name], self.names[record.topic_id] = record.topic_id, record.name
            case records.RemoveTopicRecord():
                self._remove_topic(record.topic_id)
            case records.PartitionRecord():
                self._set(record.topic_id, record.partition_id, state_of(record))
            case records.PartitionChangeRecord():
                key = record.topic_id, record.partition_id
                self._set(*key, merged(self.partitions[key], record))
            case records.ClearElrRecord():
                for key in list(self.partitions):
                    if record.topic_name in ("", self.names[key[0]]):
                        self._clear_elr(key)
            case records.ConfigRecord():
                settings = self.configs.setdefault((record.resource_type, record.resource_name), {})
                settings.pop(record.name, None)
                if record.value is not None:
                    settings[record.name] = record.value
            case records.FeatureLevelRecord():
                self.features[record.name] = record.feature_level
            case records.RegisterControllerRecord():
                self.controllers[record.controller_id] = record
            case records.UnregisterControllerRecord():
                del self.controllers[record.controller_id]
            case records.ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case _:
                self.apply_to_brokers(record)

    def apply_to_brokers(self, record: records.MetadataRecord) -> None:
        """Apply a record if it is of a broker's registration."""
        match record:
            case records.RegisterBrokerRecord():
                self.brokers[record.broker_id] = BrokerState(
                    record.broker_epoch,
                    record.incarnation_id,
                    record.log_dirs,
                    record.fenced,
                    record.in_controlled_shutdown,
                    record.rack,
                    record.cordoned_log_dirs,
                    record.end_points,
                    record.features,
                )
            case records.UnregisterBrokerRecord():
                del self.brokers[record.broker_id]
            case records.BrokerRegistrationChangeRecord():
                broker = self.brokers[record.broker_id]
                if record.fenced:
                    broker = replace(broker, fenced=record.fenced == records.FencingChange.FENCE)
                if record.in_controlled_shutdown:
                    broker = replace(broker, in_shutdown=True)
                if record.log_dirs:
                    broker = replace(broker, directories=record.log_dirs)
                if record.cordoned_log_dirs is not None:
                    broker = replace(broker, cordoned=record.cordoned_log_dirs)
                self.brokers[record.broker_id] = broker

    def _set(self, topic_id: UUID, partition: int, state: PartitionState) -> None:
        self.partitions[topic_id, partition] = state
        self.changed.add((topic_id, partition))

    def _clear_elr(self, key: PartitionKey) -> None:
        state = self.partitions[key]
        if state.elr or state.last_known_elr:
            cleared = replace(state, elr=(), last_known_elr=(), partition_epoch=state.partition_epoch + 1)
            self._set(*key, cleared)

    def _remove_topic(self, topic_id: UUID) -> None:
        name = self.names[topic_id]
        for key in list(self.partitions_of(topic_id)):
            del self.partitions[key]
            self.changed.add(key)
        del self.topics[name]
        self.configs.pop((TOPIC, name), None)


def state_of(record: records.PartitionRecord) -> PartitionState:
    """The state that a record has."""
    return PartitionState(
        record.replicas,
        record.isr,
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.adding_replicas,
        record.removing_replicas,
        record.leader_recovery_state,
        record.directories or (directory_ids.MIGRATING,) * len(record.replicas),
        record.eligible_leader_replicas or (),
        record.last_known_elr or (),
    )


def merged(state: PartitionState, change: records.PartitionChangeRecord) -> PartitionState:
    """The state after a change (Kafka ``PartitionRegistration.merge``)."""
    replicas = state.replicas if change.replicas is None else change.replicas
    directories = change.directories
    if directories is None:
        stored = dict(zip(state.replicas, state.directories, strict=True))
        directories = tuple(stored.get(replica, directory_ids.MIGRATING) for replica in replicas)
    elects = change.leader != records.NO_LEADER_CHANGE
    recovers = change.leader_recovery_state != records.NO_RECOVERY_CHANGE
    return PartitionState(
        replicas,
        state.isr if change.isr is None else change.isr,
        change.leader if elects else state.leader,
        state.leader_epoch + elects,
        state.partition_epoch + 1,
        state.adding if change.adding_replicas is None else change.adding_replicas,
        state.removing if change.removing_replicas is None else change.removing_replicas,
        change.leader_recovery_state if recovers else state.recovery,
        directories,
        state.elr if change.eligible_leader_replicas is None else change.eligible_leader_replicas,
        state.last_known_elr if change.last_known_elr is None else change.last_known_elr,
    )
