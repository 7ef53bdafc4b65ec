"""Read a ZooKeeper dump: a line with one JSON object for every znode, with its data and its stat.

    {"path": "/brokers/ids/1", "data": "{...}", "version": 1, "czxid": 119, ...}

It is the only source with everything that a controller reads at a failover (paths and schemas: Kafka 3.9 ``ZkData``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

import numpy as np
from msgspec import UNSET

from kframe.errors import SnapshotError, ZnodeError
from kframe.model.arrays import Int32
from kframe.model.ids import NO_STATE
from kframe.model.lists import distinct_values
from kframe.model.texts import short_repr
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.assemble import Assembled, Assembly
from kframe.snapshot.checks import check_snapshot
from kframe.snapshot.content import named_brokers
from kframe.snapshot.decode import decode, refuse_repeated_keys, topic_id_bytes
from kframe.snapshot.facts import BrokerFacts, PartitionFacts, Source
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, read_lines
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.states import DumpedStates
from kframe.snapshot.znode_lines import LineGroup, LineKind, ZnodeLines
from kframe.snapshot.znodes import (
    BROKER_DECODER,
    CLUSTER_ID_DECODER,
    CONTROLLER_DECODER,
    TOPIC_DECODER,
    ZNODE_DECODER,
    Znode,
    configs_of,
    endpoints_of,
    is_controller_only,
    number_of,
    rack_of,
)

#: Nodes that every broker creates before it registers: a dump without them is incomplete.
EXPECTED_PATHS: Final = ("/brokers/ids", "/brokers/topics", "/config/topics", "/admin/delete_topics")

_STATE_PATH: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/([^/]+)/state")
#: The path in a line that is no valid znode, and the topic or the broker in such a path.
_PATH_TEXT: Final = re.compile(rb'"path"\s*:\s*"([^"\\]+)"')
_TOPIC_PATH: Final = re.compile(r"/(?:brokers/topics|config/topics|admin/delete_topics)/([^/]+)(?:/.*)?")
_BROKER_PATH: Final = re.compile(r"/brokers/ids/([0-9]{1,10})")
#: The keys of a line that a reader takes.
_LINE_KEYS: Final = (b'"path"', b'"data"', b'"version"', b'"czxid"')
#: Znodes whose data is taken as it is: a second one would replace the first.
_CONTENT_PATH: Final = re.compile(r"/config/topics/[^/]+|/config/brokers/<default>|/cluster/id|/controller(?:_epoch)?")
_ASSIGNMENT_LISTS: Final = ("adding_replicas", "removing_replicas")


def read_zookeeper(path: InputFile, progress: Progress = ignore_progress, faults: Faults = REFUSE) -> Snapshot:
    """Read a dump of the whole tree. Raises SnapshotError, always for a truncated dump."""
    dump = _Dump(path, faults)
    for number, line in read_lines(path, progress, dump.take_lines):
        dump.take_line(line, number)
    return dump.finish()


class _Dump:
    """The content of the lines read so far."""

    def __init__(self, path: InputFile, faults: Faults) -> None:
        self._path = path
        self._faults = faults
        self._unreadable_line = 0
        """The number of the first line whose path is unreadable, or 0."""
        self._unreadable_brokers: set[int] = set()
        self._assembly = Assembly(self._location, lists=_ASSIGNMENT_LISTS)
        self._states = DumpedStates(self._location)
        self._lines = ZnodeLines()
        self._brokers: dict[int, BrokerFacts] = {}
        self._instances: set[int] = set()
        self._configs: dict[str, dict[str, str]] = {}
        self._content_lines: dict[str, int] = {}
        """The lines of znodes that may not occur again."""
        self._deleting: set[str] = set()
        self._default_configs: dict[str, str] | None = None
        self._expected = set(EXPECTED_PATHS)
        self._cluster_id: str | None = None
        self._controller_id: int | None = None
        self._controller_epoch: int | None = None

    def take_lines(self, block: bytes, start: int, number: int) -> tuple[int, int]:
        """Note the lines of a block up to the first that is no JSON object, most of them as the kernel reads them."""
        end = self._lines.read(block, start)
        topics: list[tuple[int, int, int]] = []
        states: list[tuple[str, int]] = []
        for group in self._lines.groups():
            if group.kind == LineKind.STATES:
                states.append((group.name(block), group.rows))
            elif group.kind == LineKind.TOPIC:
                topics.append((self._topic_of(group, block, number), number + group.line, group.rows))
            else:
                self.take_line(group.text(block), number + group.line)
        self._states.take_lines(self._lines, states, number)
        if topics:
            self._take_assignments(*np.array(topics, np.int32).T)
        return end, self._lines.line_count

    def _topic_of(self, group: LineGroup, block: bytes, number: int) -> int:
        """The number of a topic that the kernel has read; -1 for a topic at fault."""
        try:
            topic = self._assembly.topic(group.name(block), number + group.line)
        except SnapshotError as fault:
            self.take_fault(fault, group.text(block), number + group.line)
            return -1
        if (topic_id := group.topic_id(block)) is not None:
            self._assembly.topic_ids[topic] = topic_id
        return topic

    def _take_assignments(self, topics: Int32, lines: Int32, counts: Int32) -> None:
        """Add the partitions that the kernel has read: those of each topic, its line and how many they are."""
        partition, widths, replicas = self._lines.assignments()
        topic, line = np.repeat(topics, counts), np.repeat(lines, counts)
        if topics.min() < 0:
            valid = topic >= 0
            replicas = replicas[np.repeat(valid, widths)]
            topic, line, partition, widths = topic[valid], line[valid], partition[valid], widths[valid]
        none = np.zeros_like(widths), np.empty(0, np.int32)
        lists = {"replicas": (widths, replicas), **dict.fromkeys(_ASSIGNMENT_LISTS, none)}
        self._assembly.partitions(topic, partition, line, {}, lists)

    def take_line(self, line: bytes, number: int) -> None:
        """Note a line in any form. Raises SnapshotError, always if the file ends in it."""
        try:
            znode = decode(ZNODE_DECODER, line, self._location(number))
            if any(line.count(key) > 1 for key in _LINE_KEYS):
                refuse_repeated_keys(line, self._location(number))
            self.take(znode, number)
        except SnapshotError as fault:
            if not line.endswith(b"\n"):
                raise  # the file is truncated
            self.take_fault(fault, line, number)

    def take(self, znode: Znode, number: int) -> None:
        """Note one znode. Znodes that no controller reads are ignored."""
        if match_ := _STATE_PATH.fullmatch(znode.path):
            self._states.take(match_[1], match_[2], znode, number)
            return
        if not znode.path.startswith("/"):
            raise SnapshotError(f"{self._location(number)} field path", short_repr(znode.path), "a path from / on")
        self._expected.discard(znode.path)
        where = f"{self._location(number)} data of {znode.path}"
        if _CONTENT_PATH.fullmatch(znode.path):
            self._check_repeated(znode, number, where)
        match znode.path.split("/"):
            case ["", "brokers", "topics", topic]:
                self._take_topic(topic, znode.data, number, where)
            case ["", "brokers", "ids", broker_id]:
                self._take_broker(broker_id, znode, where)
            case ["", "kframe", "instances", instance_id]:
                with suppress(ZnodeError):  # No controller reads it.
                    self._instances.add(number_of(instance_id, where))
            case ["", "config", "topics", topic]:
                self._configs[topic] = configs_of(znode.data, where)
            case ["", "config", "brokers", "<default>"]:
                self._default_configs = configs_of(znode.data, where)
            case ["", "admin", "delete_topics", topic]:
                self._deleting.add(topic)
            case ["", "cluster", "id"]:
                self._cluster_id = decode(CLUSTER_ID_DECODER, znode.data or "", where).id
            case ["", "controller"]:
                self._controller_id = decode(CONTROLLER_DECODER, znode.data or "", where).brokerid
            case ["", "controller_epoch"]:
                self._controller_epoch = number_of(znode.data or "", where)

    def _check_repeated(self, znode: Znode, number: int, where: str) -> None:
        """Raise SnapshotError for a path that was read before, and for an object that has a key twice."""
        if znode.path in self._content_lines:
            first = self._location(self._content_lines[znode.path])
            raise SnapshotError(where, f"{znode.path} again", f"each znode once (first at {first})")
        self._content_lines[znode.path] = number
        if znode.data is not None and znode.data.startswith("{"):
            refuse_repeated_keys(znode.data, where, ZnodeError)

    def take_fault(self, fault: SnapshotError, line: bytes, number: int) -> None:
        """Note a line with no valid znode. Also the topic or broker that its path names."""
        path_match = _PATH_TEXT.search(line)
        path = "" if path_match is None else path_match[1].decode(errors="replace")
        topic, broker = _TOPIC_PATH.fullmatch(path), _BROKER_PATH.fullmatch(path)
        if state := _STATE_PATH.fullmatch(path):
            self._states.take_unreadable(state[1], state[2])
        self._faults(fault, None if topic is None else topic[1])
        if broker is not None:
            self._unreadable_brokers.add(int(broker[1]))
        elif topic is None and path_match is None:
            self._unreadable_line = self._unreadable_line or number
        self._expected.discard(path)

    def finish(self) -> Snapshot:
        """The snapshot, checked."""
        if self._expected:
            missing = ", ".join(sorted(self._expected))
            raise SnapshotError(str(self._path), f"no znode {missing}", "a dump of the whole tree (is it truncated?)")
        for topic, configs in self._configs.items():
            if (ordinal := self._assembly.find(topic)) is not None:
                self._assembly.configs[ordinal] = configs
        # The controller also drops a marker whose topic does not exist.
        self._assembly.deleting |= {
            known for topic in self._deleting if (known := self._assembly.find(topic)) is not None
        }
        assembled = self._assembly.finish(self._faults)
        partitions, state_lines = self._states.finish(assembled, self._faults)
        for topic in sorted(self._faults.topics):
            if not self._assembly.partitions_of(topic):  # its assignment cannot be read: its states name the partitions
                self._faults.count_excluded(topic, self._states.state_count(topic))
        controllers = tuple(sorted(self._instances - self._brokers.keys()))
        for broker_id in sorted({*named_brokers(partitions).tolist(), *self._unreadable_brokers}):
            unreadable = self._unreadable_line or broker_id in self._unreadable_brokers
            self._brokers.setdefault(broker_id, BrokerFacts(broker_id, registered=None if unreadable else False))
        if self._unreadable_line:
            self._leave_out_stateless(assembled, partitions)
        snapshot = Snapshot(
            tuple(self._brokers[broker_id] for broker_id in sorted(self._brokers)),
            assembled.topics,
            partitions,
            Source("zookeeper", self._path.name),
            self._cluster_id,
            self._controller_id,
            self._controller_epoch,
            self._default_configs,
            self._provenance(),
            controllers=controllers,
        )
        return check_snapshot(snapshot, self._locate(assembled, state_lines), self._faults)

    def _leave_out_stateless(self, assembled: Assembled, partitions: PartitionFacts) -> None:
        """Leave out topics with a partition without state: the unreadable line may hold that state."""
        assert partitions.partition_epoch is not None
        stateless = np.flatnonzero(partitions.partition_epoch == NO_STATE)
        topics = assembled.topics
        for topic in distinct_values(topics.topic_of_rows()[stateless]).tolist():
            name = topics.names[topic]
            actual = f"no state of a partition of topic {name}"
            self._faults(
                SnapshotError(self._location(self._unreadable_line), actual, "one, perhaps in this unreadable line"),
                name,
            )

    def _take_topic(self, name: str, data: str | None, number: int, where: str) -> None:
        topic = self._assembly.topic(name, number)
        if data is None:
            return
        znode = decode(TOPIC_DECODER, data, where)
        lists = len(znode.partitions) + len(znode.adding_replicas) + len(znode.removing_replicas)
        if data.count("[") != lists:
            refuse_repeated_keys(data, where)
        if znode.topic_id is not UNSET:
            self._assembly.topic_ids[topic] = topic_id_bytes(znode.topic_id, f"{where} field topic_id")
        for column in _ASSIGNMENT_LISTS:
            if unassigned := getattr(znode, column).keys() - znode.partitions.keys():
                raise SnapshotError(
                    f"{where} field {column}", f"partition {min(unassigned)}", "partitions of the topic"
                )
        self._assembly.assignment(
            topic,
            number,
            znode.partitions,
            adding_replicas=znode.adding_replicas,
            removing_replicas=znode.removing_replicas,
        )

    def _take_broker(self, text: str, znode: Znode, where: str) -> None:
        broker_id = number_of(text, where)
        if broker_id in self._brokers:
            raise SnapshotError(where, f"broker id {broker_id} again", "each broker once")
        if is_controller_only(znode.data):
            self._instances.add(broker_id)
            return
        registration = decode(BROKER_DECODER, znode.data or "", where)
        refuse_repeated_keys(znode.data or "", where)
        endpoints = tuple(endpoints_of(registration, where))
        self._brokers[broker_id] = BrokerFacts(broker_id, True, znode.czxid, endpoints, rack_of(registration))

    def _provenance(self) -> dict[str, str]:
        absent = {
            "cluster.cluster_id": (self._cluster_id, "/cluster/id"),
            "cluster.controller_id": (self._controller_id, "/controller"),
            "cluster.controller_epoch": (self._controller_epoch, "/controller_epoch"),
        }
        return {column: f"no {path} in the dump" for column, (value, path) in absent.items() if value is None}

    def _location(self, number: int) -> str:
        return f"{self._path}:{number}"

    def _locate(self, assembled: Assembled, state_lines: Int32) -> Callable[[Literal["topic", "row"], int, str], str]:
        def locate(kind: Literal["topic", "row"], index: int, column: str) -> str:
            if kind == "row" and column != "replicas" and column not in _ASSIGNMENT_LISTS:
                name = assembled.topics.name_of_row(index)
                return f"{self._location(int(state_lines[index]))} ({name}) field {column}"
            return assembled.locate(kind, index, column)

        return locate
