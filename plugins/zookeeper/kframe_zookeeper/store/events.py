"""Convert fired watches to controller events (Kafka 3.9 ``KafkaController``, its ``ZNodeChangeHandler`` classes)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kazoo.protocol.states import EventType

from kframe.plugin import StoreError, ZnodeError
from kframe.plugin.store import (
    BrokerDefaultsChanged,
    BrokerModified,
    BrokersChanged,
    ControllerChanged,
    DeletionsMarked,
    Event,
    IsrChangesNotified,
    LogDirEventsNotified,
    PreferredElectionStored,
    ReassignmentsStored,
    Reelect,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.session.watches import Watched
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.configs import ConfigNotification, decode_config_change

_log = logging.getLogger("kframe.zookeeper")

#: The event of a change of children.
_LISTS: Final[dict[str, type[Event]]] = {
    paths.BROKER_IDS: BrokersChanged,
    paths.TOPICS: TopicsChanged,
    paths.DELETE_TOPICS: DeletionsMarked,
    paths.ISR_CHANGES: IsrChangesNotified,
    paths.LOG_DIR_EVENTS: LogDirEventsNotified,
}
#: The event of a creation.
_REQUEST_NODES: Final[dict[str, type[Event]]] = {
    paths.REASSIGN_PARTITIONS: ReassignmentsStored,
    paths.PREFERRED_ELECTION: PreferredElectionStored,
}


class WatchEvents:
    """Converts the fired watches of a connection to events. Runs in the store's worker, so it may read ZooKeeper."""

    def __init__(self, connection: Connection, memory: Memory, notify: Callable[[Event], None]) -> None:
        self._connection = connection
        self._memory = memory
        self._notify = notify

    def handle(self, event_type: EventType, path: str) -> None:
        """Emit the event of a fired watch, if it has one."""
        parent, _, name = path.rpartition("/")
        if path == paths.CONTROLLER:
            with suppress(StoreError):  # The session is about to end. Until then writes are fenced.
                self._connection.check_role()
            self._notify(Reelect() if event_type == EventType.DELETED else ControllerChanged())
        elif not self._memory.emits_controller_events:
            return
        elif event_type == EventType.CHILD and path in _LISTS:
            self._notify(_LISTS[path]())
        elif event_type == EventType.CHILD and path == paths.CONFIG_CHANGES:
            self._handle_config_changes()
        elif path in _REQUEST_NODES:
            self._handle_request_node(event_type, path)
        elif event_type == EventType.CHANGED and parent == paths.BROKER_IDS and name.isdecimal():
            self._notify(BrokerModified(int(name)))
        elif event_type == EventType.CHANGED and parent == paths.TOPICS:
            self._handle_topic(name)

    def _handle_request_node(self, event_type: EventType, path: str) -> None:
        """Only creation counts. After a change or deletion, watch for the next creation."""
        if event_type == EventType.CREATED:
            self._notify(_REQUEST_NODES[path]())
            return
        watched = Watched.ABSENT if event_type == EventType.DELETED else Watched.DATA
        self._connection.watches.arm([path], watched, self._connection.watches.last_zxid())

    def _handle_topic(self, name: str) -> None:
        """Emit TopicModified unless the write was our own. Then only watch again."""
        with self._memory.writing_topics:
            node = self._connection.node(paths.topic_path(name))
            known = self._memory.topics.get(name)
        if node is None:
            return
        if known is None or known.version != node.version:
            self._notify(TopicModified(name))
        else:
            self._connection.watches.arm([paths.topic_path(name)], Watched.DATA, node.mzxid)

    def _handle_config_changes(self) -> None:
        """Read the new config change notifications, and watch for the next."""
        try:
            fresh = self._memory.note_changes(self._connection.watched_children(paths.CONFIG_CHANGES))
        except StoreError:
            _log.warning("%s cannot be read; settings are read again at the next change", paths.CONFIG_CHANGES)
            return
        changes = [f"{paths.CONFIG_CHANGES}/{name}" for name in fresh]
        for path, node in zip(changes, self._connection.nodes(changes), strict=True):
            if node is None:
                continue
            try:
                change = decode_config_change(node.data, path)
            except ZnodeError as error:
                self._memory.quarantine(path, error)
                continue
            self._handle_config(change)

    def _handle_config(self, change: ConfigNotification) -> None:
        if change.kind == "topics":
            self._notify(TopicSettingsChanged(change.name))
        elif change == ConfigNotification("brokers", paths.DEFAULT_ENTITY):
            self._notify(BrokerDefaultsChanged())
