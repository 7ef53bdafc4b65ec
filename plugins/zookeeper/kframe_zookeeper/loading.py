"""Load the cluster for a new controller with few round trips.

Independent reads are sent together, and states are requested while topics are decoded. The server answers a session in
order and takes most of the time; decoding overlaps with it.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import UNKNOWN_ZXID, ClusterState, Registration
from kframe.plugin.columns import Int32, Int64, positions_within
from kframe.plugin.store import BrokersLoaded, Event, IsrChangesNotified, LogDirEventsNotified, reload
from kframe.plugin.znodes import is_controller_only
from kframe_zookeeper import paths
from kframe_zookeeper.connection import Connection
from kframe_zookeeper.foreign import refuse_own_id, warn_of_registrations
from kframe_zookeeper.memory import CachedBroker, Memory
from kframe_zookeeper.multiread import PathNames, Results, StateRead, state_reads, state_rows
from kframe_zookeeper.states import stored_of, stored_states
from kframe_zookeeper.topic_calls import begin_settings, settings_in
from kframe_zookeeper.topicread import TopicPart, read_parts, warn_of_duplicates
from kframe_zookeeper.watches import Arming, Watched
from kframe_zookeeper.znodes.brokers import decode_broker

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
        registered, broker_paths = registrations(memory, broker_ids, brokers)
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


def begin_registrations(connection: Connection, broker_ids: Sequence[str]) -> Iterator[tuple[int, Results]]:
    """Request the registrations of brokers. The first requests are sent at once."""
    return connection.results([f"{paths.BROKER_IDS}/{name}" for name in broker_ids])


def reread_registrations(connection: Connection, memory: Memory) -> tuple[tuple[Registration, ...], list[str]]:
    """``registrations`` of all present brokers. Watches the list.

    Known brokers are requested together with the list, which usually saves a round trip.
    """
    known = [path.rpartition("/")[2] for path in memory.brokers]
    listing, responses = connection.watches.begin_lists([paths.BROKER_IDS]), begin_registrations(connection, known)
    (names,) = connection.await_lists([paths.BROKER_IDS], listing)
    if set(names) <= set(known):
        return registrations(memory, known, responses)
    deque(responses, 0)
    return registrations(memory, names, begin_registrations(connection, names))


def registrations(
    memory: Memory, broker_ids: Sequence[str], responses: Iterator[tuple[int, Results]]
) -> tuple[tuple[Registration, ...], list[str]]:
    """The registrations in these nodes by broker id, and the paths of all brokers' nodes, to be watched.

    A registration that has become malformed keeps its last content: the broker lives while its znode exists.
    """
    broker_paths, current, owners = [], dict[str, CachedBroker](), dict[str, int]()
    nodes = (results.node(i) for _, results in responses for i in range(len(results.code)))
    for name, node in zip(broker_ids, nodes, strict=True):
        path = f"{paths.BROKER_IDS}/{name}"
        if node is None or is_controller_only(node.data):
            continue  # Deleted meanwhile, which the watch on the list reports; or no broker.
        broker_paths.append(path)
        owners[path] = node.owner
        known = memory.brokers.get(path)
        if known is not None and known.registration.broker_epoch == node.czxid:
            current[path] = known
            if known.data == node.data:
                memory.repair(path)
                continue
        try:
            registration = decode_broker(name, node.data, node.czxid)
            refuse_own_id(memory, registration)
            current[path] = CachedBroker(node.data, registration)
            memory.repair(path)
        except ZnodeError as error:
            memory.quarantine(path, error, "keeps its last valid value" if path in current else "is left out")
    for path in [
        path for path in memory.broken if path.startswith(f"{paths.BROKER_IDS}/") and path not in broker_paths
    ]:
        memory.repair(path)
    memory.brokers = current
    loaded = tuple(sorted((broker.registration for broker in current.values()), key=lambda broker: broker.broker_id))
    warn_of_registrations(memory, loaded, owners)
    return loaded, broker_paths


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
