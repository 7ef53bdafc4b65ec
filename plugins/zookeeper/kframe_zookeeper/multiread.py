"""Many nodes read by few requests: states straight into columns, anything else as data with its stat.

A multiRead (ZooKeeper 3.6 and later) answers thousands of reads at once, each with its own result or error; servers
before that are read by single requests, many at a time. A request is bounded twice: its own bytes stay below half of
the server's ``jute.maxbuffer`` (1 MiB), and so many operations that the answer is about as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from kazoo.exceptions import EXCEPTIONS, NoNodeError
from kazoo.protocol.serialization import GetChildren, GetData

from kframe.errors import StoreError
from kframe.model.columns import Bool, Int32, Int64, Ragged, UInt8, offsets_of
from kframe_zookeeper._jute_read import parse_states, split_reads
from kframe_zookeeper._jute_write import write_reads
from kframe_zookeeper.fence import Fence
from kframe_zookeeper.requests import MultiRead, Reply, get_children, get_data
from kframe_zookeeper.session import IN_FLIGHT, Session

REQUEST_BYTES_MOST: Final = 512 * 1024
STATES_MOST: Final = 4000
#: Single requests in flight, where there is no multiRead.
SINGLE_IN_FLIGHT: Final = 2000
#: Reads of nodes of unknown length begin with so few at once; the longest seen tells how many the next may be.
NODES_FIRST: Final = 16
ANSWER_BYTES: Final = 512 * 1024
NODE_BYTES_LEAST: Final = 128

NO_NODE: Final = NoNodeError.code
#: Bytes of a getData operation beside the topic's name, at most.
_OPERATION_BYTES: Final = 9 + 4 + len("/partitions//state") + 10 + 1


@dataclass(frozen=True, slots=True)
class PathNames:
    """How topics are named in paths: ``root`` is the path of all topics with a slash at its end, the chroot included;
    topic ``i`` is ``names[at[i]:at[i + 1]]``, in UTF-8."""

    root: UInt8
    at: Int32
    names: UInt8

    @staticmethod
    def of(root: str, wire_names: tuple[Int32, bytes]) -> PathNames:
        """From ``Topics.wire_names()``."""
        at, names = wire_names
        return PathNames(np.frombuffer(root.encode(), np.uint8), at, np.frombuffer(names, np.uint8))

    def topic_path(self, topic: int) -> str:
        """Path of a topic."""
        return (self.root.tobytes() + self.names[self.at[topic] : self.at[topic + 1]].tobytes()).decode()

    def partition_path(self, topic: int, partition: int) -> str:
        """Path of the parent of a state."""
        return f"{self.topic_path(topic)}/partitions/{partition}"


@dataclass(frozen=True, slots=True)
class Node:
    """One node as it was read. ``owner`` is the session that it is ephemeral in, 0 if in none."""

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    owner: int


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What ``k`` reads gave: an error code each (0: none), where the data stands in ``reply``, and of the stat what we
    need; see ``_jute_read.split_reads``."""

    reply: UInt8
    code: Int32
    data_at: Int64
    data_length: Int32
    version: Int32
    czxid: Int64
    mzxid: Int64
    owner: Int64

    @staticmethod
    def room(reply: UInt8, count: int) -> Results:
        """For ``count`` results."""
        ints = [np.empty(count, np.int32) for _ in range(3)]
        longs = [np.empty(count, np.int64) for _ in range(4)]
        return Results(reply, ints[0], longs[0], ints[1], ints[2], *longs[1:])

    @staticmethod
    def split(reply: Reply, count: int) -> Results:
        """Of a multiRead of ``count`` operations. Raises StoreError if the answer is not one to it."""
        results = Results.room(reply.data, count)
        found = split_reads(
            reply.data, reply.start, results.code, results.data_at, results.data_length, results.version,
            results.czxid, results.mzxid, results.owner,
        )  # fmt: skip
        if found != count:
            raise StoreError(f"ZooKeeper's answer to {count} reads has {found} results")
        return results

    @staticmethod
    def of_singles(answers: Sequence[tuple[bytes | None, Any] | None]) -> Results:
        """Of single getData requests; None where there was no node."""
        datas = [b"" if one is None or one[0] is None else one[0] for one in answers]
        results = Results.room(np.frombuffer(b"".join(datas), np.uint8), len(answers))
        lengths = [len(data) for data in datas]
        results.data_at[:] = np.cumsum([0, *lengths])[: len(answers)]
        for i, one in enumerate(answers):
            stat = None if one is None else one[1]
            results.code[i] = NO_NODE if stat is None else 0
            results.data_length[i] = -1 if one is None or one[0] is None else lengths[i]
            for column, name in _STAT_COLUMNS:
                getattr(results, column)[i] = -1 if stat is None else getattr(stat, name)
        return results

    def data(self, index: int) -> bytes | None:
        """The data of one node, or the bytes of one list of children; None where it is null."""
        length = int(self.data_length[index])
        start = int(self.data_at[index])
        return None if length < 0 else self.reply[start : start + length].tobytes()

    def node(self, index: int) -> Node | None:
        """One node; None if there is none. Raises StoreError if it could not be read."""
        if not self.found(index):
            return None
        stat = (int(column[index]) for column in (self.version, self.czxid, self.mzxid, self.owner))
        return Node(self.data(index), *stat)

    def found(self, index: int) -> bool:
        """Whether there is a node. Raises StoreError if it could not be read."""
        code = int(self.code[index])
        if code not in (0, NO_NODE):
            raise StoreError(f"ZooKeeper refused a read: {error_name(code)}")
        return code == 0


_STAT_COLUMNS: Final = (
    ("version", "version"), ("czxid", "czxid"), ("mzxid", "mzxid"), ("owner", "ephemeralOwner"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class StateRows:
    """States of ``k`` partitions; brokers are ids. ``code`` is 0 where a state was found, else ZooKeeper's error.

    ``parsed`` is 0 where the data is missing or not what Kafka writes; ``odd`` holds it where it is there.
    """

    code: Int32
    parsed: UInt8
    leader: Int32
    leader_epoch: Int32
    controller_epoch: Int32
    version: Int32
    recovery: UInt8
    isr: Ragged
    odd: dict[int, bytes | None]

    @property
    def found(self) -> Bool:
        """Mask of the states that were read and understood."""
        mask: Bool = self.parsed != 0
        return mask


class _StateRead(MultiRead):
    """Reads the states of rows ``first`` to ``last`` (not included) of a list."""

    def __init__(self, names: PathNames, topic: Int32, partition: Int32, first: int, last: int, fence: Fence) -> None:
        part = slice(first, last)
        out = np.empty(int(_sizes(names, topic[part]).sum()), np.uint8)
        written = write_reads(topic[part], partition[part], names.at, names.names, names.root, out)
        super().__init__(out[:written].data, last - first, fence)
        self.first = first
        self._rows = names, topic, partition

    def halves(self) -> Sequence[MultiRead]:
        """The same rows in two requests; none for a single row."""
        if self.count == 1:
            return ()
        middle, last = self.first + self.count // 2, self.first + self.count
        return tuple(_StateRead(*self._rows, *bounds, self._fence) for bounds in ((self.first, middle), (middle, last)))


def _sizes(names: PathNames, topic: Int32) -> Int32:
    """Bytes that reading the state of one partition of each topic takes at most."""
    sizes: Int32 = names.at[topic + 1] - names.at[topic] + np.int32(len(names.root) + _OPERATION_BYTES)
    return sizes


def cut(sizes: Int32, bytes_most: int, count_most: int) -> list[tuple[int, int]]:
    """Consecutive parts of things of these sizes, each within both bounds unless it is a single thing."""
    ends, parts, first = np.cumsum(sizes, dtype=np.int64), [], 0
    while first < len(sizes):
        begun = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, begun + bytes_most, side="right"))
        last = min(max(last, first + 1), first + count_most)
        parts.append((first, min(last, len(sizes))))
        first = parts[-1][1]
    return parts


def read_states(session: Session, names: PathNames, topic: Int32, partition: Int32) -> StateRows:
    """Read the states of partitions. Raises StoreError."""
    count = len(topic)
    rows = StateRows(
        code=np.empty(count, np.int32), parsed=np.zeros(count, np.uint8), leader=np.full(count, -1, np.int32),
        leader_epoch=np.full(count, -1, np.int32), controller_epoch=np.full(count, -1, np.int32),
        version=np.full(count, -1, np.int32), recovery=np.zeros(count, np.uint8),
        isr=Ragged.empty(0), odd={},
    )  # fmt: skip
    isr_counts, members = np.zeros(count, np.int32), [np.empty(0, np.int32)]
    read = _read_at_once if session.has_multi_read else _read_one_by_one
    for first, results in read(session, names, topic, partition):
        part = slice(first, first + len(results.code))
        # A member takes two bytes of JSON at least, a digit and a comma or bracket.
        isr = np.empty(int(np.maximum(results.data_length, 0).sum()) // 2, np.int32)
        used = parse_states(
            results.reply, results.data_at, results.data_length, rows.leader[part], rows.leader_epoch[part],
            rows.controller_epoch[part], rows.recovery[part], isr_counts[part], isr, rows.parsed[part],
        )  # fmt: skip
        members.append(isr[:used].copy())
        rows.code[part], rows.version[part] = results.code, results.version
        for i in np.flatnonzero((results.code == 0) & (rows.parsed[part] == 0)).tolist():
            rows.odd[first + i] = results.data(i)
    isr_lists = Ragged(offsets_of(isr_counts), np.concatenate(members))
    return StateRows(
        rows.code, rows.parsed, rows.leader, rows.leader_epoch, rows.controller_epoch, rows.version, rows.recovery,
        isr_lists, rows.odd,
    )  # fmt: skip


def _read_at_once(session: Session, names: PathNames, topic: Int32, partition: Int32) -> Iterator[tuple[int, Results]]:
    """The first row and the results of each request."""
    parts = cut(_sizes(names, topic), REQUEST_BYTES_MOST, STATES_MOST)
    requests = (_StateRead(names, topic, partition, first, last, session.fence) for first, last in parts)
    for request, reply in session.ask(requests):
        yield request.first, Results.split(reply, request.count)


def _read_one_by_one(
    session: Session, names: PathNames, topic: Int32, partition: Int32
) -> Iterator[tuple[int, Results]]:
    """The same from a server that has no multiRead."""
    for first in range(0, len(topic), STATES_MOST):
        rows = range(first, min(first + STATES_MOST, len(topic)))
        paths = [names.partition_path(int(topic[row]), int(partition[row])) + "/state" for row in rows]
        yield first, Results.of_singles(get_each(session, paths))


def get_each(
    session: Session, paths: Sequence[str], watch: Callable[[Any], None] | None = None
) -> list[tuple[bytes | None, Any] | None]:
    """Data and stat of each node by a request of its own, chroot included in ``paths``; None where there is none."""
    requests = (GetData(path, watch) for path in paths)
    return [answer for _, answer in session.ask(requests, SINGLE_IN_FLIGHT, absent=NoNodeError)]


class _PathRead(MultiRead):
    """Reads ``paths``, data or children."""

    def __init__(self, paths: Sequence[str], operation: Callable[[str], bytes], fence: Fence) -> None:
        super().__init__(b"".join(operation(path) for path in paths), len(paths), fence)
        self._paths, self._operation = paths, operation

    def halves(self) -> Sequence[MultiRead]:
        """The same paths in two requests; none for a single path."""
        middle = self.count // 2
        parts = (self._paths[:middle], self._paths[middle:]) if middle else ()
        return tuple(_PathRead(part, self._operation, self._fence) for part in parts)


def read_nodes(session: Session, paths: Sequence[str]) -> list[Node | None]:
    """Data and stat of nodes, chroot included in ``paths``; None where there is none. Raises StoreError.

    Nodes may be of any length: how many are asked for at once follows from the longest seen so far.
    """
    if not session.has_multi_read:
        results = Results.of_singles(get_each(session, paths))
        return [results.node(i) for i in range(len(paths))]
    nodes: list[Node | None] = []
    most, longest = NODES_FIRST, NODE_BYTES_LEAST
    while len(nodes) < len(paths):
        part = paths[len(nodes) : len(nodes) + most * IN_FLIGHT]
        requests = [_PathRead(part[i : i + most], get_data, session.fence) for i in range(0, len(part), most)]
        for request, reply in session.ask(requests):
            results = Results.split(reply, request.count)
            nodes += [results.node(i) for i in range(request.count)]
            longest = max(longest, int(results.data_length.max(initial=0)))
        most = max(1, min(STATES_MOST, ANSWER_BYTES // (2 * longest)))
    return nodes


def read_children(session: Session, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Names of the children of nodes, sorted; None where there is no node. Raises StoreError."""
    if not session.has_multi_read:
        requests = (GetChildren(path, None) for path in paths)
        lists = (answer for _, answer in session.ask(requests, SINGLE_IN_FLIGHT, absent=NoNodeError))
        return [None if names is None else tuple(sorted(names)) for names in lists]
    found: list[tuple[str, ...] | None] = []
    reads = [_PathRead(paths[i : i + 256], get_children, session.fence) for i in range(0, len(paths), 256)]
    for request, reply in session.ask(reads):
        results = Results.split(reply, request.count)
        found += [names_in(results.data(i)) if results.found(i) else None for i in range(request.count)]
    return found


def names_in(data: bytes | None) -> tuple[str, ...]:
    """The children in a list of them, sorted. Raises StoreError for anything else than such a list, which is what the
    kernel lets through where a server answers with another operation than it was asked for."""
    if data is None:
        raise StoreError("ZooKeeper's answer has no list of children where one was asked for")
    names, at = [], 4
    try:
        for _ in range(int.from_bytes(data[:4], signed=True)):
            if at + 4 > len(data):
                raise StoreError("ZooKeeper's answer has a list of children that breaks off")
            end = at + 4 + max(int.from_bytes(data[at : at + 4], signed=True), 0)
            names.append(data[at + 4 : end].decode())
            at = end
    except UnicodeDecodeError:
        raise StoreError("ZooKeeper's answer names a child in no UTF-8") from None
    return tuple(sorted(names))


def error_name(code: int) -> str:
    """Name of one of ZooKeeper's errors; for messages, so that a code that nobody knows has one too."""
    return EXCEPTIONS[code].__name__ if code in EXCEPTIONS else f"error {code}"
