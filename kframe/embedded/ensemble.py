"""The storage that embedded controllers and brokers share: records, stored states, registrations; and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kframe.embedded.admin import config_entity, encode_partitions, encode_targets
from kframe.embedded.layout import (
    BROKERS,
    CONFIG_CHANGES,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    NOTIFICATIONS,
    PREFERRED_ELECTION,
    PRODUCER_IDS,
    REASSIGN_PARTITIONS,
    broker_path,
    encode_registration,
    read_registrations,
)
from kframe.embedded.records import Create, Delete, Operation, RecordCode, RecordTree, SetData, StoredRecordError
from kframe.embedded.states import StateColumns
from kframe.embedded.store import MemoryStore
from kframe.embedded.topics import StoredTopics, topic_path
from kframe.errors import InputError
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.tables import Targets, TopicTable


class MemoryEnsemble:
    """The shared storage of controllers: the records, the stored states, and the broker registrations.

    ::

        ensemble = MemoryEnsemble.from_cluster(cluster)
        store = ensemble.connect()
        store.open(events.append)
        controller_epoch = store.perform(Claim(controller_id=1000))
    """

    def __init__(self, states: StateColumns, controller_epoch: int = 0) -> None:
        """Start with these states and no registered broker. ``controller_epoch`` is that of the last controller: the
        first claim gets the next one."""
        self.records = RecordTree()
        self.states = states
        self._operator = self.records.open_session(lambda _event: None)
        for path in (BROKERS, *NOTIFICATIONS, DELETE_TOPICS, CONFIG_CHANGES, PRODUCER_IDS):
            self.records.ensure(self._operator, path)
        self.topics = StoredTopics(self.records, states, self._operator)
        topics = states.cluster.topics
        self.mark_for_deletion(topics.names[index] for index in topics.deleting.nonzero()[0])
        topics.deleting[:] = 0
        self.records.create(self._operator, CONTROLLER_EPOCH, str(controller_epoch).encode())

    @classmethod
    def from_cluster(cls, cluster: ClusterState, controller_epoch: int = 0, *, copy: bool = True) -> MemoryEnsemble:
        """Store the topics, states and deletion marks of ``cluster``, and register its brokers with their epochs.

        With ``copy`` False the ensemble takes ownership of ``cluster``: the caller must not use it any more.
        """
        brokers = cluster.brokers
        registrations = [
            brokers.registrations[index] or Registration(int(brokers.ids[index]), int(brokers.broker_epoch[index]))
            for index in brokers.registered.nonzero()[0]
        ]
        ensemble = cls(StateColumns(cluster, copy=copy), controller_epoch)
        ensemble.register_brokers(registrations)
        return ensemble

    def connect(self) -> MemoryStore:
        """A new session for one controller, not open yet."""
        return MemoryStore(self.records, self.states, self.topics)

    def expire(self, store: MemoryStore) -> None:
        """Expire the session of a controller: its ephemeral records are deleted. The controller receives
        SessionExpired, gets a new session, and then receives Reelect."""
        store.lose_session()

    def stored(self) -> ClusterState:
        """The present content of storage. Read-only."""
        return self.states.cluster

    def settle(self) -> None:
        """Do nothing: all changes here are notified immediately."""

    def drop_controller(self) -> None:
        """Delete ``/controller``, as an operator does to move the role. Its holder keeps its session. Raises InputError
        if there is no controller."""
        try:
            self.records.delete(self._operator, CONTROLLER)
        except StoredRecordError as error:
            raise InputError(CONTROLLER, "no controller", "one to depose") from error

    # -- brokers

    def register_brokers(self, registrations: Iterable[Registration]) -> tuple[int, ...]:
        """Register brokers at once and return their broker epochs.

        A registration with broker epoch NO_BROKER_EPOCH gets the zxid; others keep theirs. Raises InputError, and
        registers no broker, if one of them is already registered.
        """
        new = tuple(registrations)
        self._change_brokers(_create(registration) for registration in new)
        self.states.name_brokers(registration.broker_id for registration in new)
        return self._broker_epochs(registration.broker_id for registration in new)

    def unregister_brokers(self, broker_ids: Iterable[int]) -> None:
        """Delete registrations at once. Raises InputError, and changes nothing, if one is missing."""
        self._change_brokers(Delete(broker_path(broker_id)) for broker_id in broker_ids)

    def bounce_brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Replace registrations at once by equal ones with new broker epochs; return the epochs. Raises InputError, and
        changes nothing, if one is missing."""
        bounced = tuple(broker_ids)
        now = {registration.broker_id: registration for registration in self.registrations()}
        operations: list[Operation] = []
        for broker_id in bounced:
            registration = now.get(broker_id, Registration(broker_id, NO_BROKER_EPOCH))
            operations += [Delete(broker_path(broker_id)), _create(replace(registration, broker_epoch=NO_BROKER_EPOCH))]
        self._change_brokers(operations)
        return self._broker_epochs(bounced)

    def modify_broker(self, registration: Registration) -> None:
        """Replace the content of a registration; its broker epoch remains. Raises InputError if it is missing."""
        self._change_brokers([SetData(broker_path(registration.broker_id), encode_registration(registration))])

    def registrations(self) -> tuple[Registration, ...]:
        """All present registrations, by broker id."""
        return read_registrations(self.records, self._operator, watch=False)

    def _change_brokers(self, operations: Iterable[Operation]) -> None:
        try:
            self.records.multi(self._operator, list(operations))
        except StoredRecordError as error:
            actual, expected = "none", "a registration"
            if error.code is RecordCode.NODE_EXISTS:
                actual, expected = expected, actual
            raise InputError(error.path, actual, expected) from error

    def _broker_epochs(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        paths = (broker_path(broker_id) for broker_id in broker_ids)
        return tuple(self.records.get(self._operator, path)[1].czxid for path in paths)

    # -- requests and notifications of operators and brokers

    def request_reassignments(self, targets: Targets) -> None:
        """Write a reassignment request, as Kafka's tools before 2.4 do."""
        self.records.create(self._operator, REASSIGN_PARTITIONS, encode_targets(targets))

    def request_preferred_election(self, partitions: Iterable[TopicPartition]) -> None:
        """Write a preferred election request."""
        self.records.create(self._operator, PREFERRED_ELECTION, encode_partitions(tuple(partitions)))

    def mark_for_deletion(self, names: Iterable[str]) -> None:
        """Mark topics for deletion at once."""
        self.records.multi(self._operator, [Create(f"{DELETE_TOPICS}/{name}") for name in names])

    def notify_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Write notifications of ISRs that leaders have changed in storage."""
        data = encode_partitions(tuple(partitions))
        self.records.create(self._operator, f"{ISR_CHANGES}/isr_change_", data, sequential=True)

    def notify_log_dir_event(self, broker_id: int) -> None:
        """Write a notification of a broker that lost a log directory."""
        data = str(broker_id).encode()
        self.records.create(self._operator, f"{LOG_DIR_EVENTS}/log_dir_event_", data, sequential=True)

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic, and write a config change notification."""
        self.topics.configure(name, config)
        self.records.create(self._operator, f"{CONFIG_CHANGES}/config_change_", config_entity(name), sequential=True)

    def configure_brokers(self, config: Mapping[str, str]) -> None:
        """Change settings of all brokers, and write a config change notification."""
        self.topics.broker_defaults.update(config)
        self.records.create(self._operator, f"{CONFIG_CHANGES}/config_change_", config_entity(None), sequential=True)

    # -- topics and states

    def write_topics(self, table: TopicTable) -> None:
        """Replace the assignments of topics without the controller, as brokers and tools do."""
        self.topics.assign(table)
        for name in table.names:
            self.records.set(self._operator, topic_path(name), b"")

    def write_state(
        self,
        topic: str,
        partition: int,
        *,
        leader: int | None = None,
        isr: Sequence[int] | None = None,
        leader_epoch: int | None = None,
        controller_epoch: int | None = None,
        recovery: int | None = None,
    ) -> int:
        """Write a state without the controller, as a broker with an old inter-broker protocol does. Return its new
        version. Brokers are ids; omitted values remain. Raises InputError if there is no such partition."""
        return self.states.overwrite(
            topic,
            partition,
            leader=leader,
            isr=isr,
            leader_epoch=leader_epoch,
            controller_epoch=controller_epoch,
            recovery=recovery,
            zxid=self.records.zxid,
        )


def _create(registration: Registration) -> Create:
    return Create(
        broker_path(registration.broker_id),
        encode_registration(registration),
        ephemeral=True,
        czxid=None if registration.broker_epoch == NO_BROKER_EPOCH else registration.broker_epoch,
    )
