"""Read the whole tree of a live cluster in bulk and convert it to a snapshot, without writing.

The tree may change during a reading. The snapshot is consistent if two readings agree on every node, or if the zxid is
the same before and after a reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

import numpy as np

from kframe.plugin import SnapshotError, ZnodeError
from kframe.plugin.cluster import NO_LEADER, NO_STATE, ZERO_TOPIC_ID, RecoveryState, TopicTable
from kframe.plugin.columns import Bool, Int32, Int64, offsets_of, positions_within, ragged_positions
from kframe.plugin.live import Progress
from kframe.plugin.snapshot import (
    BrokerFacts,
    CaptureFacts,
    PartitionFacts,
    Snapshot,
    Source,
    TopicFacts,
    check_snapshot,
    named_brokers,
)
from kframe.plugin.znodes import is_controller_only, number_of
from kframe_zookeeper.bulk.nodes import ReadNode, read_children, read_nodes
from kframe_zookeeper.bulk.states import PathNames, StateRows, read_states
from kframe_zookeeper.loading.states import decode_unparsed
from kframe_zookeeper.session.requests import NO_NODE
from kframe_zookeeper.session.session import Session
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import decode_broker
from kframe_zookeeper.znodes.cluster import decode_cluster_id, decode_controller, decode_controller_epoch
from kframe_zookeeper.znodes.configs import decode_config
from kframe_zookeeper.znodes.topics import StoredTopic, decode_topic, table_of

#: How often the tree is read until two readings agree.
PASSES_MAX: Final = 4
#: Changed paths that the manifest lists.
CHANGED_PATHS_MAX: Final = 1_000
#: States that are read between two progress reports.
STATES_AT_A_TIME: Final = 100_000
#: Contradictory objects that are left out before the whole capture fails.
CONTRADICTIONS_MAX: Final = 1_000

_DEFAULTS: Final = paths.config_path("brokers", paths.DEFAULT_ENTITY)
_SINGLE: Final = (paths.CLUSTER_ID, paths.CONTROLLER, paths.CONTROLLER_EPOCH, _DEFAULTS)
_TOPIC_CONFIGS: Final = f"{paths.CONFIG}/topics"
_LISTS: Final = (paths.BROKER_IDS, paths.TOPICS, paths.DELETE_TOPICS, _TOPIC_CONFIGS, paths.INSTANCES)
_ASSIGNMENT: Final = frozenset({"replicas", "adding_replicas", "removing_replicas"})

Value = TypeVar("Value")


def capture(session: Session, where: str, progress: Progress) -> Snapshot:
    """Read until two readings agree, at most PASSES_MAX times. ``where`` names the cluster in messages.

    Raises SnapshotError where there is no cluster.
    """
    reader = ClusterReader(session, where, progress)
    last, passes = reader.read(), 1
    consistent, count = last.unchanged, 0
    changed_paths: tuple[str, ...] = ()
    while not consistent and passes < PASSES_MAX:
        tree = reader.read()
        count, changed_paths = (0, ()) if tree.unchanged else tree.changes_since(last)
        last, passes, consistent = tree, passes + 1, count == 0
    snapshot, broken = SnapshotConverter(last, where).snapshot()
    facts = CaptureFacts(passes, consistent, last.zxid, count, changed_paths, broken)
    return replace(snapshot, capture=facts)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One reading of the tree.

    ``nodes``: nodes by path, None where missing. ``states``: the states of the partitions of ``table``, row by row.
    ``topic_count``: number of topics, read or not. ``unchanged``: no transaction happened during the reading.
    """

    nodes: dict[str, ReadNode | None]
    table: TopicTable
    states: StateRows
    broken: dict[str, str]
    topic_count: int
    zxid: int
    unchanged: bool

    def changes_since(self, before: Tree) -> tuple[int, tuple[str, ...]]:
        """The number of changes since ``before``, and the first CHANGED_PATHS_MAX changed paths."""
        names = sorted(self.nodes.keys() | before.nodes.keys())
        changed_paths = [path for path in names if _zxids(self.nodes.get(path)) != _zxids(before.nodes.get(path))]
        here, there = _common_rows(self.table, before.table)
        changed: Bool = self.states.code[here] != before.states.code[there]
        changed |= self.states.version[here] != before.states.version[there]
        states = [self.state_path(int(row)) for row in here[changed][:CHANGED_PATHS_MAX]]
        return len(changed_paths) + int(changed.sum()), (*changed_paths, *states)[:CHANGED_PATHS_MAX]

    def state_path(self, row: int) -> str:
        """Path of the state of one row."""
        ends = np.cumsum(self.table.partition_counts)
        topic = int(np.searchsorted(ends, row, side="right"))
        first = int(ends[topic]) - int(self.table.partition_counts[topic])
        return paths.state_path(self.table.names[topic], row - first)


class ClusterReader:
    """Reads the tree of a cluster."""

    def __init__(self, session: Session, where: str, progress: Progress) -> None:
        self._session, self._where, self._progress = session, where, progress
        self._root: str = session.client.chroot

    def read(self, quick: bool = False) -> Tree:
        """Read everything once. With ``quick`` all but topics, their states and settings.

        Raises SnapshotError where there is no cluster.
        """
        begun = self._zxid()
        nodes = self._nodes(_SINGLE)
        lists = read_children(self._session, [self._root + path for path in _LISTS])
        brokers, names, marks, configs, instances = (children or () for children in lists)
        topics, marks = ((), ()) if quick else (names, marks)
        if lists[0] is None or lists[1] is None:
            raise SnapshotError(self._where, f"no {paths.BROKER_IDS} or {paths.TOPICS}", "the tree of a Kafka cluster")
        nodes |= self._nodes([f"{paths.BROKER_IDS}/{name}" for name in brokers])
        nodes |= dict.fromkeys(f"{paths.INSTANCES}/{name}" for name in instances)  # Only their names count.
        nodes |= self._nodes([f"{paths.DELETE_TOPICS}/{name}" for name in marks])
        nodes |= self._nodes([f"{_TOPIC_CONFIGS}/{name}" for name in sorted(set(configs) & set(topics))])
        assigned = self._nodes([paths.topic_path(name) for name in topics])
        table, broken = _decoded(topics, assigned)
        states = self._states(table)
        ended = self._zxid()
        return Tree(nodes | assigned, table, states, broken, len(names), ended, begun == ended)

    def _zxid(self) -> int:
        """The zxid of the last transaction that the server has performed."""
        read_nodes(self._session, ["/"])
        return int(self._session.client.last_zxid)

    def _nodes(self, node_paths: Sequence[str]) -> dict[str, ReadNode | None]:
        return dict(zip(node_paths, read_nodes(self._session, [self._root + path for path in node_paths]), strict=True))

    def _states(self, table: TopicTable) -> StateRows:
        names = PathNames.of_names(f"{self._root}{paths.TOPICS}/", table.names)
        counts = table.partition_counts
        topic, partition = np.repeat(np.arange(len(table), dtype=np.int32), counts), positions_within(counts)
        parts = []
        for first in range(0, max(len(topic), 1), STATES_AT_A_TIME):
            part = slice(first, first + STATES_AT_A_TIME)
            self._progress(first, len(topic))
            parts.append(read_states(self._session, names, topic[part], partition[part]))
        self._progress(len(topic), len(topic))
        return StateRows.chain(parts)


def _decoded(names: Sequence[str], nodes: Mapping[str, ReadNode | None]) -> tuple[TopicTable, dict[str, str]]:
    """Topics by name, and why others are left out."""
    topics: list[StoredTopic] = []
    broken = {}
    for name in sorted(names):
        node = nodes[paths.topic_path(name)]
        if node is None:
            continue
        try:
            topics.append(decode_topic(name, node.data))
        except ZnodeError as error:
            broken[paths.topic_path(name)] = str(error)
    return table_of(topics), broken


class SnapshotConverter:
    """Converts a reading to a snapshot. Malformed and contradictory nodes are left out, each with its reason."""

    def __init__(self, tree: Tree, name: str) -> None:
        self._tree, self._name = tree, name
        self._broken = dict(tree.broken)
        self._first_row = dict(zip(tree.table.names, offsets_of(tree.table.partition_counts).tolist(), strict=False))
        self._stateless: set[int] = set()
        """Rows of the reading whose state is left out."""
        self._rejected: tuple[str, int, str] | None = None
        """The object that the last check has refused."""

    def snapshot(self) -> tuple[Snapshot, dict[str, str]]:
        """The snapshot, and what is left out. Raises SnapshotError."""
        self._read_unparsed_states()
        for _ in range(CONTRADICTIONS_MAX):
            snapshot, self._rejected = self._make(), None
            try:
                check_snapshot(snapshot, self._locate)
            except SnapshotError as error:
                self._leave_out(snapshot, error)
            else:
                return snapshot, dict(sorted(self._broken.items()))
        raise SnapshotError(self._name, f"more than {CONTRADICTIONS_MAX} contradictions", "a cluster")

    def _read_unparsed_states(self) -> None:
        """Read the states that the kernel could not parse with the strict decoder."""
        states = self._tree.states
        for row in np.flatnonzero((states.code != 0) & (states.code != NO_NODE)).tolist():
            self._broken[self._tree.state_path(row)] = f"ZooKeeper's error {int(states.code[row])}"
        isr, errors = decode_unparsed(states, [self._tree.state_path(row) for row in states.unparsed])
        self._broken |= {path: str(error) for path, error in errors.items() if error is not None}
        self._tree = replace(self._tree, states=replace(states, isr=isr))

    def _make(self) -> Snapshot:
        tree, table = self._tree, self._tree.table
        readable = np.array([paths.topic_path(name) not in self._broken for name in table.names], np.bool_)
        table = table.take(np.flatnonzero(readable))
        partitions = self._partitions(table, np.flatnonzero(np.repeat(readable, tree.table.partition_counts)))
        marks = {path.rpartition("/")[2] for path in tree.nodes if path.startswith(f"{paths.DELETE_TOPICS}/")}
        settings = {index: self._config(f"{_TOPIC_CONFIGS}/{name}") for index, name in enumerate(table.names)}
        ids = np.frombuffer(b"".join(topic_id or ZERO_TOPIC_ID for topic_id in table.topic_ids), np.uint8).reshape(
            -1, 16
        )
        deleting = np.array([name in marks for name in table.names], np.uint8)
        configs = {index: config for index, config in settings.items() if config}
        topics = TopicFacts(table.names, table.partition_counts, ids, deleting, configs)
        brokers = self._brokers()
        controllers = tuple(sorted(self._instances().difference(brokers)))
        for broker_id in named_brokers(partitions).tolist():
            brokers.setdefault(broker_id, BrokerFacts(broker_id, registered=False))
        holder = self._value(paths.CONTROLLER, decode_controller)
        return Snapshot(
            tuple(brokers[broker_id] for broker_id in sorted(brokers)),
            topics,
            partitions,
            Source("zookeeper", self._name),
            self._value(paths.CLUSTER_ID, decode_cluster_id),
            None if holder is None else holder.brokerid,
            self._value(paths.CONTROLLER_EPOCH, decode_controller_epoch),
            self._config(_DEFAULTS) if tree.nodes[_DEFAULTS] is not None else None,
            controllers=controllers,
        )

    def _partitions(self, table: TopicTable, rows: Int64) -> PartitionFacts:
        states = self._tree.states
        stored: Bool = states.parsed != 0
        stored[list(self._stateless)] = False
        stored = stored[rows]
        isr = states.isr.take(rows)

        def column(name: str, absent: int) -> Int32:
            return np.where(stored, getattr(states, name)[rows], absent).astype(np.int32)

        return PartitionFacts(
            replicas=table.replicas,
            leader=column("leader", NO_LEADER),
            isr=isr.keep(np.repeat(stored, isr.counts)),
            leader_epoch=column("leader_epoch", -1),
            controller_epoch=column("controller_epoch", -1),
            partition_epoch=column("version", NO_STATE),
            leader_recovery_state=column("recovery", RecoveryState.RECOVERED),
            adding_replicas=table.adding,
            removing_replicas=table.removing,
        )

    def _brokers(self) -> dict[int, BrokerFacts]:
        brokers = {}
        for path, node in self._tree.nodes.items():
            parent, _, name = path.rpartition("/")
            if parent != paths.BROKER_IDS or node is None or is_controller_only(node.data):
                continue
            try:
                registration = decode_broker(name, node.data, node.czxid)
            except ZnodeError as error:
                self._broken[path] = str(error)
            else:
                brokers[registration.broker_id] = BrokerFacts(
                    registration.broker_id, True, registration.broker_epoch, registration.endpoints, registration.rack
                )
        return brokers

    def _instances(self) -> set[int]:
        """Ids of instances of kframe: those with a record, and the registered active controller."""
        ids = set()
        for path, node in self._tree.nodes.items():
            if _is_instance(path, node):
                with suppress(ZnodeError):
                    ids.add(number_of(path.rpartition("/")[2], path))
        return ids

    def _config(self, path: str) -> dict[str, str]:
        return self._value(path, lambda data: decode_config(data, path)) or {}

    def _value(self, path: str, decode: Callable[[bytes | None], Value]) -> Value | None:
        """The decoded content of a node. None if it is missing or left out."""
        node = self._tree.nodes.get(path)
        if node is None or path in self._broken:
            return None
        try:
            return decode(node.data)
        except ZnodeError as error:
            self._broken[path] = str(error)
            return None

    def _locate(self, kind: Literal["topic", "row"], index: int, column: str) -> str:
        self._rejected = kind, index, column
        return f"field {column}"

    def _leave_out(self, snapshot: Snapshot, error: SnapshotError) -> None:
        """Leave out what contradicts the rest: settings, a whole topic, or one state."""
        if self._rejected is None:
            self._broken[_DEFAULTS] = str(error)
            return
        kind, index, column = self._rejected
        if kind == "topic":
            self._broken[f"{_TOPIC_CONFIGS}/{snapshot.topics.names[index]}"] = str(error)
            return
        topic, _, partition = snapshot.topics.name_of_row(index).rpartition("-")
        if column in _ASSIGNMENT:
            self._broken[paths.topic_path(topic)] = f"partition {partition}: {error}"
        else:
            self._broken[paths.state_path(topic, int(partition))] = str(error)
            self._stateless.add(self._first_row[topic] + int(partition))


def _is_instance(path: str, node: ReadNode | None) -> bool:
    parent = path.rpartition("/")[0]
    is_marked = parent == paths.BROKER_IDS and node is not None and is_controller_only(node.data)
    return is_marked or parent == paths.INSTANCES


def _zxids(node: ReadNode | None) -> tuple[int, int] | None:
    return None if node is None else (node.czxid, node.mzxid)


def _common_rows(ours: TopicTable, theirs: TopicTable) -> tuple[Int64, Int64]:
    """The rows of partitions that are in both."""
    indexes = {name: index for index, name in enumerate(theirs.names)}
    common = [(index, indexes[name]) for index, name in enumerate(ours.names) if name in indexes]
    here, there = np.array(common, np.int64).reshape(-1, 2).T
    counts = np.minimum(ours.partition_counts[here], theirs.partition_counts[there])
    starts = offsets_of(ours.partition_counts)[here], offsets_of(theirs.partition_counts)[there]
    return ragged_positions(starts[0], counts), ragged_positions(starts[1], counts)
