"""Load the cluster for a new controller with few round trips.

Independent reads are sent together, and states are requested while topics are decoded. The server answers a session in
order and takes most of the time; decoding overlaps with it.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from kframe.plugin.cluster import UNKNOWN_ZXID, ClusterState
from kframe.plugin.columns import Int32, Int64, positions_within
from kframe.plugin.store import BrokersLoaded, Event, IsrChangesNotified, LogDirEventsNotified, reload
from kframe_zookeeper.bulk.nodes import Results
from kframe_zookeeper.bulk.states import PathNames, StateRead, state_reads, state_rows
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.loading.registrations import begin_registrations, decode_registrations
from kframe_zookeeper.loading.settings import begin_settings, settings_in
from kframe_zookeeper.loading.states import stored_of, stored_states
from kframe_zookeeper.loading.topics import TopicPart, read_parts, warn_of_duplicates
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.session.watches import Arming, Watched
from kframe_zookeeper.znodes import paths

#: Lists of children that a controller watches; watched before their nodes are read.
_LISTS: Final = (paths.BROKER_IDS, paths.TOPICS, paths.CONFIG_CHANGES, paths.ISR_CHANGES, paths.LOG_DIR_EVENTS)


def load_cluster(
    connection: Connection, memory: Memory, on_brokers_loaded: BrokersLoaded, notify: Callable[[Event], None]
) -> ClusterState:
    """Read the cluster and arm the watches; malformed znodes are quarantined.

    ``on_brokers_loaded`` is called with the registered brokers while the server reads states. ``notify`` is called if
    brokers have created notifications since ``prepare``, when no watch was armed. Raises StoreError.
    """
    with _no_collection():
        load = _Load(connection, memory, on_brokers_loaded)
    for event in load.pending:
        notify(event)
    return load.cluster


class _Load:
    """A load. Its result is ``cluster``."""

    def __init__(self, connection: Connection, memory: Memory, on_brokers_loaded: BrokersLoaded) -> None:
        self.cluster = ClusterState()
        self._connection, self._memory, self._on_brokers_loaded = connection, memory, on_brokers_loaded
        self._parts: list[TopicPart] = []
        self._waiting: deque[TopicPart] = deque()
        """Topics whose states were requested, but which are not in ``cluster`` yet."""
        self._arming: list[Arming] = []
        # The zxid is taken before the first read, so that no change is missed.
        self._zxid, memory.emits_controller_events = connection.watches.last_zxid(), True
        broker_ids, names, changes, isr_changes, log_dir_events = connection.watched_lists(_LISTS)
        lists = ((isr_changes, IsrChangesNotified()), (log_dir_events, LogDirEventsNotified()))
        self.pending = [event for notifications, event in lists if notifications]
        """The events of notifications that exist already."""
        memory.note_changes(changes)
        names.sort()
        brokers = begin_registrations(connection, broker_ids)
        topics, self._settings = read_parts(connection, memory, names), begin_settings(connection, names)
        self._names = names
        registered, broker_paths = decode_registrations(memory, broker_ids, brokers)
        self._arming.append(connection.watches.begin_arming(broker_paths, Watched.DATA, self._zxid))
        self.cluster.brokers.register(registered)
        self._read_states(topics)
        for arming in self._arming:
            connection.watches.await_armed(arming)
        warn_of_duplicates(self._parts)

    def _read_states(self, topics: Iterator[TopicPart]) -> None:
        """Add topics and their states, response by response, while the server reads the next.

        ``state_zxid`` is known from servers with multiRead only (ZooKeeper 3.6).
        """
        cluster, session = self.cluster, self._connection.session
        written: list[tuple[Int32, Int64]] = []
        if session.has_multi_read:
            responses = session.ask(self._reads(topics))
            self._report_brokers()
            for request, reply in responses:
                results = Results.split(reply, request.count)
                self._add_waiting(int(request.rows[-1]))
                states = state_rows(results)
                reload(cluster, stored_of(self._memory, cluster, request.rows, states))
                written.append((request.rows, states.zxid))
            cluster.state_zxid = np.full(len(cluster), UNKNOWN_ZXID)
            for rows, zxid in written:
                cluster.state_zxid[rows] = zxid
        else:
            self._report_brokers()
            added = [self._add(part) for part in topics]
            self._read_settings()
            all_rows = np.concatenate([np.empty(0, np.int32), *added])
            reload(cluster, stored_states(self._connection, self._memory, cluster, all_rows))

    def _report_brokers(self) -> None:
        self._on_brokers_loaded(
            [registration for registration in self.cluster.brokers.registrations if registration is not None]
        )

    def _reads(self, topics: Iterator[TopicPart]) -> Iterator[StateRead]:
        """The requests for all states, made on demand.

        Other work overlaps with the server's: topics are added when the first of their states arrive, and settings
        after the last request was sent.
        """
        root, session = f"{self._connection.root}{paths.TOPICS}/", self._connection.session
        first = len(self.cluster)
        for part in topics:
            self._waiting.append(part)
            counts = part.table.partition_counts
            topic = np.repeat(np.arange(len(part.table), dtype=np.int32), counts)
            rows = np.arange(first, first + len(topic), dtype=np.int32)
            names = PathNames.of_names(root, part.table.names)
            yield from state_reads(session, names, topic, positions_within(counts), rows)
            first += len(topic)
        self._add_waiting()
        self._read_settings()

    def _add_waiting(self, row: float = math.inf) -> None:
        """Add topics in order until ``row`` exists, or all of them."""
        while self._waiting and len(self.cluster) <= row:
            self._add(self._waiting.popleft())

    def _add(self, part: TopicPart) -> Int32:
        """Add topics after the last row. Return their rows."""
        self._parts.append(part)
        self._arming.append(self._connection.watches.begin_arming(part.existing_paths, Watched.DATA, self._zxid))
        return self.cluster.add_table(part.table)

    def _read_settings(self) -> None:
        topics = self.cluster.topics
        for name, setting in settings_in(self._memory, self._names, self._settings, topics):
            index = topics.find(name)
            topics.unclean[index], topics.min_insync[index] = setting.unclean, setting.min_insync


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable the garbage collector: it would scan the many new objects, none of which is in a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
