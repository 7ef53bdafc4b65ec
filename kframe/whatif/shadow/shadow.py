"""Follow a running controller through storage, and compare its decisions with those of a replica."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from kframe.core.state import stored_states
from kframe.model.arrays import Bool, Int32
from kframe.model.brokers import Registration
from kframe.model.changes import StoredStates
from kframe.model.cluster import ClusterState
from kframe.model.config import UNCLEAN, ControllerConfig
from kframe.model.events import (
    BrokerDefaultsChanged,
    BrokersChanged,
    DeletionsMarked,
    Event,
    PreferredElectionStored,
    ReassignmentsStored,
    Reelect,
    SessionExpired,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.model.ids import NO_LEADER, NO_STATE, ReplicaFlag
from kframe.model.lists import distinct_values, same_lists
from kframe.ports.store import Store
from kframe.ports.store_requests import (
    Load,
    ReadBrokers,
    ReadConfigs,
    ReadController,
    ReadDeletions,
    ReadPreferredElection,
    ReadReassignments,
    ReadStates,
    ReadTopicNames,
    ReadTopics,
    ReadTopicSettings,
    Reply,
    StoreRead,
)
from kframe.whatif.shadow.comparison import Comparison, compare
from kframe.whatif.shadow.inputs import (
    ControllerElected,
    ControllerLost,
    Input,
    IsrsChanged,
    PartitionsAdded,
    RegistrationsChanged,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)

#: The settings that a controller uses.
_CONTROLLER_SETTINGS = (UNCLEAN, "min.insync.replicas")
_UNDER_REASSIGNMENT = np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)


class Shadow:
    """Follows a controller through its storage, which it only reads.

    One thread calls ``poll`` periodically, and ``compare`` once the states are stable. All methods raise StoreError if
    storage is unreachable.
    """

    def __init__(self, store: Store, config: ControllerConfig) -> None:
        """``store`` is not open yet."""
        self._store = store
        self._config = config
        self._events: deque[Event] = deque()
        self._base = ClusterState()
        self._inputs: list[Input] = []
        self._excluded: set[str] = set()
        self._states: StoredStates | None = None
        self._registrations: tuple[Registration, ...] = ()
        self._controller = NO_LEADER
        self._expired = False

    @property
    def unsettled(self) -> bool:
        """Whether there are changes since the last comparison."""
        return bool(self._inputs) or bool(self._differs().any())

    @property
    def connected(self) -> bool:
        """Whether the session is alive."""
        return self._store.connected()

    @property
    def controller(self) -> int:
        """The id of the last known controller. -1 if there is none."""
        return self._controller

    def open(self) -> None:
        """Connect, and take the stored states as correct."""
        self._store.open(self._events.append)
        self._begin(self._read(Load()))

    def close(self) -> None:
        """Disconnect."""
        self._store.close()

    def poll(self) -> bool:
        """Record changes. Returns whether there are any since the last call."""
        before, known = len(self._inputs), self._states
        events = [self._events.popleft() for _ in range(len(self._events))]
        if self._expired or SessionExpired() in events:
            return self._on_session_expired(events)
        self._read_states()
        self._follow_controller(events)
        for event in dict.fromkeys(events):
            self._note(event)
        written = known is None or self._states is None or _any_written(known, self._states)
        return written or len(self._inputs) > before

    def compare(self) -> Comparison | None:
        """Compare the expected states with the stored ones, and restart from these.

        Returns None without a controller or session.
        """
        if self._expired or self._read(ReadController()).controller_id == NO_LEADER:
            return None
        real = self._read(Load())
        self._note_brokers(_registrations(real))
        self._note_topics(frozenset(name for name in real.topics.names if name in real.topics))
        self._excluded |= (
            self._read(ReadDeletions()) | _topics_under_reassignment(real) | _topics_under_reassignment(self._base)
        )
        comparison = compare(self._base, self._inputs, real, self._config, self._excluded)
        self._begin(real)
        return comparison

    def _read(self, request: StoreRead[Reply]) -> Reply:
        """The only access to storage after ``open``: type checkers refuse requests that write."""
        return self._store.perform(request)

    def _begin(self, real: ClusterState) -> None:
        """Take ``real`` as correct, and set the watches that loading does not."""
        self._base, self._inputs, self._excluded = real, [], _topics_under_reassignment(real)
        self._states, self._registrations = None, _registrations(real)
        self._controller = self._read(ReadController()).controller_id
        self._excluded |= self._read(ReadDeletions())
        self._read(ReadPreferredElection())
        self._read(ReadReassignments())
        self._read_states()

    def _on_session_expired(self, events: Iterable[Event]) -> bool:
        """Handle the end of the session. Changes were missed, so restart once there is a new one."""
        self._expired = True
        if Reelect() in events and self._store.connected():
            self._expired = False
            self._begin(self._read(Load()))
        return True

    def _read_states(self) -> None:
        """Read all states. Leaders change ISRs themselves. Without other changes such an ISR is taken as correct."""
        p, before = self._base.partitions, self._states
        rows = np.flatnonzero(p.topic >= 0).astype(np.int32)
        self._states = states = self._read(ReadStates(self._base, rows))
        if before is None:
            same, isr = ~self._differs(), p.lists("isr", rows)
        else:
            same = (states.leader == before.leader) & (states.leader_epoch == before.leader_epoch) & before.exists
            isr = before.isr
        changed = np.flatnonzero(same & states.exists & ~same_lists(states.isr, isr)).astype(np.int32)
        if len(changed) == 0:
            return
        if not self._inputs and not self._differs()[changed].any():
            stored_states.reload(self._base, _take_states(states, changed))
            return
        ids, names = self._base.brokers.ids, (self._base.view(row) for row in rows[changed].tolist())
        isrs = (tuple(ids[states.isr[position]].tolist()) for position in changed.tolist())
        self._inputs.append(
            IsrsChanged(tuple((view.topic, view.partition, isr) for view, isr in zip(names, isrs, strict=True)))
        )

    def _differs(self) -> Bool:
        """Whether the leader or leader epoch differs from the base, for each state last read."""
        if self._states is None:
            return np.zeros(0, np.bool_)
        states, p = self._states, self._base.partitions
        other = (states.leader != p.leader[states.rows]) | (states.leader_epoch != p.leader_epoch[states.rows])
        differs: Bool = (other & states.exists) | (states.exists != (p.partition_epoch[states.rows] != NO_STATE))
        return differs

    def _follow_controller(self, events: Iterable[Event]) -> None:
        controller, is_released = self._read(ReadController()).controller_id, Reelect() in events
        if (is_released or controller != self._controller) and self._controller != NO_LEADER:
            self._inputs.append(ControllerLost())
            self._controller = NO_LEADER
        if controller != self._controller:
            self._note_brokers(self._read(ReadBrokers()))
            self._inputs.append(ControllerElected())
            self._controller = controller

    def _note(self, event: Event) -> None:
        match event:
            case BrokersChanged():
                self._note_brokers(self._read(ReadBrokers()))
            case TopicsChanged():
                self._note_topics(self._read(ReadTopicNames()))
            case TopicModified(topic=name):
                self._note_topic(name)
            case TopicSettingsChanged(topic=name):
                self._note_settings(name)
            case BrokerDefaultsChanged():
                self._note_settings(None)
            case DeletionsMarked():
                self._excluded |= self._read(ReadDeletions())
            case PreferredElectionStored():
                self._read(ReadPreferredElection())
            case ReassignmentsStored():
                reassignments = self._read(ReadReassignments())
                self._excluded |= set() if reassignments is None else set(reassignments.names)
            case _:
                pass  # the controller and ISRs are checked on every call

    def _note_brokers(self, registrations: tuple[Registration, ...]) -> None:
        known = {registration.broker_id: registration.broker_epoch for registration in self._registrations}
        if known != {registration.broker_id: registration.broker_epoch for registration in registrations}:
            self._inputs.append(RegistrationsChanged(registrations))
        self._registrations = registrations

    def _note_topics(self, names: frozenset[str]) -> None:
        known = {name for name in self._base.topics.names if name in self._base.topics}
        for change in self._inputs:
            known |= set(change.table.names) if isinstance(change, TopicsCreated) else set()
            known -= set(change.names) if isinstance(change, TopicsDeleted) else set()
        if known - names:
            self._inputs.append(TopicsDeleted(tuple(sorted(known - names))))
        table = self._read(ReadTopics(tuple(sorted(names - known))))
        if len(table):
            self._inputs.append(TopicsCreated(table, self._read(ReadTopicSettings(table.names))))

    def _note_topic(self, name: str) -> None:
        """Record new partitions of a topic. Exclude it during a reassignment."""
        table, topic = self._read(ReadTopics((name,))), self._base.topics.find(name)
        if len(table) == 0:
            return
        rows = np.empty(0, np.int32) if topic is None else self._base.topics.rows_of(topic)
        count = int(table.partition_counts[0])
        now, was = table.replicas.take(np.arange(min(len(rows), count))), self._base.replica_ids(rows[:count])
        if topic is None or table.flags.any() or not same_lists(now, was).all():
            self._excluded.add(name)
        elif count > len(rows):
            self._inputs.append(PartitionsAdded(table))

    def _note_settings(self, topic: str | None) -> None:
        config = self._read(ReadConfigs(topic))
        self._inputs.append(SettingsChanged(topic, {key: config[key] for key in _CONTROLLER_SETTINGS if key in config}))


def _registrations(cluster: ClusterState) -> tuple[Registration, ...]:
    brokers = cluster.brokers
    registered = (brokers.registrations[index] for index in np.flatnonzero(brokers.registered).tolist())
    return tuple(
        sorted(
            (registration for registration in registered if registration is not None),
            key=lambda registration: registration.broker_id,
        )
    )


def _topics_under_reassignment(cluster: ClusterState) -> set[str]:
    """Topics with a partition under reassignment."""
    p, topics = cluster.partitions, cluster.topics
    rows = np.flatnonzero(p.topic >= 0)
    flagged = np.repeat(rows, p.replica_count[rows])[p.are_flagged(p.slots_of(rows), _UNDER_REASSIGNMENT)]
    return {topics.names[topic] for topic in distinct_values(p.topic[flagged]).tolist()}


def _take_states(states: StoredStates, chosen: Int32) -> StoredStates:
    return StoredStates(
        states.rows[chosen],
        states.exists[chosen],
        states.leader[chosen],
        states.leader_epoch[chosen],
        states.controller_epoch[chosen],
        states.partition_epoch[chosen],
        states.recovery[chosen],
        states.isr.take(chosen),
    )


def _any_written(before: StoredStates, now: StoredStates) -> bool:
    """Whether any state was written in between."""
    return not np.array_equal(before.partition_epoch, now.partition_epoch)
