"""Read many nodes by few requests: states into columns, other nodes as data with their stat.

A multiRead (ZooKeeper 3.6 and later) answers thousands of reads, each with its own result or error. Older servers are
read by pipelined single requests. A request stays below half of the server's ``jute.maxbuffer`` (1 MiB). The number of
its operations keeps the response at about the same length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import GetChildren, GetData

from kframe.plugin import StoreError, counted
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8, offsets_of
from kframe_zookeeper._jute_read import parse_states, split_reads
from kframe_zookeeper._jute_write import write_reads
from kframe_zookeeper.fence import Fence
from kframe_zookeeper.requests import NO_NODE, MultiRead, MultiResponse, error_name, get_children, get_data
from kframe_zookeeper.session import Session

REQUEST_BYTES_MAX: Final = 512 * 1024
STATES_MAX: Final = 4000
#: Single requests in flight at a server without multiRead.
SINGLE_IN_FLIGHT: Final = 2000
#: Operations of the first request for nodes of unknown length. The longest node so far determines later requests.
NODES_FIRST: Final = 16
RESPONSE_BYTES: Final = 512 * 1024
NODE_BYTES_MIN: Final = 128

#: Maximum bytes of a getData operation, without the topic's name.
_OPERATION_BYTES: Final = 9 + 4 + len("/partitions//state") + 10 + 1


@dataclass(frozen=True, slots=True)
class PathNames:
    """Names of topics for paths.

    ``root`` is the parent of all topics, chroot included, with a slash at its end. The UTF-8 name of topic ``i`` is
    ``names[offsets[i]:offsets[i + 1]]``.
    """

    root: UInt8
    offsets: Int32
    names: UInt8

    @staticmethod
    def of(root: str, wire_names: tuple[Int32, bytes]) -> PathNames:
        """From ``Topics.wire_names()``."""
        offsets, names = wire_names
        return PathNames(np.frombuffer(root.encode(), np.uint8), offsets, np.frombuffer(names, np.uint8))

    @staticmethod
    def of_names(root: str, names: Sequence[str]) -> PathNames:
        """From names."""
        encoded = [name.encode() for name in names]
        return PathNames.of(root, (offsets_of([len(name) for name in encoded]), b"".join(encoded)))

    def topic_path(self, topic: int) -> str:
        """Path of a topic."""
        return (self.root.tobytes() + self.names[self.offsets[topic] : self.offsets[topic + 1]].tobytes()).decode()

    def partition_path(self, topic: int, partition: int) -> str:
        """Path of the parent of a state."""
        return f"{self.topic_path(topic)}/partitions/{partition}"


@dataclass(frozen=True, slots=True)
class ReadNode:
    """A node as it was read. ``owner`` is the session of an ephemeral node, else 0."""

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    owner: int


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The results of ``k`` reads: error codes (0: none), positions of the data in ``reply``, and fields of the stat.

    See ``_jute_read.split_reads``.
    """

    reply: UInt8
    code: Int32
    data_offset: Int64
    data_length: Int32
    version: Int32
    czxid: Int64
    mzxid: Int64
    owner: Int64

    @staticmethod
    def allocate(reply: UInt8, count: int) -> Results:
        """Uninitialised columns for ``count`` results."""
        ints = [np.empty(count, np.int32) for _ in range(3)]
        longs = [np.empty(count, np.int64) for _ in range(4)]
        return Results(reply, ints[0], longs[0], ints[1], ints[2], *longs[1:])

    @staticmethod
    def split(reply: MultiResponse, count: int) -> Results:
        """The results of a multiRead of ``count`` operations. Raises StoreError if the response does not match."""
        results = Results.allocate(reply.data, count)
        results_read = split_reads(
            reply.data, reply.start, results.code, results.data_offset, results.data_length, results.version,
            results.czxid, results.mzxid, results.owner,
        )  # fmt: skip
        if results_read != count:
            raise StoreError(f"ZooKeeper's response to {counted(count, 'read')} has {counted(results_read, 'result')}")
        return results

    @staticmethod
    def of_singles(responses: Sequence[tuple[bytes | None, Any] | None]) -> Results:
        """The results of single getData requests. None is a missing node."""
        datas = [b"" if response is None or response[0] is None else response[0] for response in responses]
        results = Results.allocate(np.frombuffer(b"".join(datas), np.uint8), len(responses))
        lengths = [len(data) for data in datas]
        results.data_offset[:] = np.cumsum([0, *lengths])[: len(responses)]
        for i, response in enumerate(responses):
            stat = None if response is None else response[1]
            results.code[i] = NO_NODE if stat is None else 0
            results.data_length[i] = -1 if response is None or response[0] is None else lengths[i]
            for column, name in _STAT_COLUMNS:
                getattr(results, column)[i] = -1 if stat is None else getattr(stat, name)
        return results

    def data(self, index: int) -> bytes | None:
        """The data of a node, or the bytes of a list of children. None if null."""
        length = int(self.data_length[index])
        start = int(self.data_offset[index])
        return None if length < 0 else self.reply[start : start + length].tobytes()

    def node(self, index: int) -> ReadNode | None:
        """A node; None if it does not exist. Raises StoreError if the read failed."""
        if not self.exists(index):
            return None
        stat = (int(column[index]) for column in (self.version, self.czxid, self.mzxid, self.owner))
        return ReadNode(self.data(index), *stat)

    def exists(self, index: int) -> bool:
        """Whether the node exists. Raises StoreError if the read failed."""
        code = int(self.code[index])
        if code not in (0, NO_NODE):
            raise StoreError(f"ZooKeeper refused a read: {error_name(code)}")
        return code == 0


#: The columns of StateRows with a value for each row, in order.
_STATE_COLUMNS: Final = (
    "code", "parsed", "leader", "leader_epoch", "controller_epoch", "version", "recovery", "zxid",
)  # fmt: skip
_STAT_COLUMNS: Final = (
    ("version", "version"), ("czxid", "czxid"), ("mzxid", "mzxid"), ("owner", "ephemeralOwner"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class StateRows:
    """States of ``k`` partitions; brokers are ids. ``code`` is 0 if the node exists, else ZooKeeper's error.

    ``parsed`` is 0 if the node is missing or the kernel could not parse it; ``unparsed`` has the data by row.
    """

    code: Int32
    parsed: UInt8
    leader: Int32
    leader_epoch: Int32
    controller_epoch: Int32
    version: Int32
    recovery: UInt8
    zxid: Int64
    """The transaction that last wrote the node."""
    isr: Ragged
    unparsed: dict[int, bytes | None]

    @staticmethod
    def allocate(count: int) -> StateRows:
        """Columns for ``count`` states, none of them read."""
        ints = [np.full(count, -1, np.int32) for _ in range(5)]
        return StateRows(
            code=ints[0], parsed=np.zeros(count, np.uint8), leader=ints[1], leader_epoch=ints[2],
            controller_epoch=ints[3], version=ints[4], recovery=np.zeros(count, np.uint8),
            zxid=np.full(count, -1, np.int64), isr=Ragged.empty(count), unparsed={},
        )  # fmt: skip

    @staticmethod
    def chain(parts: Sequence[StateRows]) -> StateRows:
        """The rows of the first part, then those of the next, and so on."""
        parts = [StateRows.allocate(0), *parts]
        starts = np.cumsum([0, *(len(part.code) for part in parts)]).tolist()
        unparsed = {
            start + row: data for start, part in zip(starts, parts, strict=False) for row, data in part.unparsed.items()
        }
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _STATE_COLUMNS}
        return StateRows(**columns, isr=Ragged.chain([part.isr for part in parts]), unparsed=unparsed)

    @property
    def is_parsed(self) -> Bool:
        """Mask of the parsed states."""
        mask: Bool = self.parsed != 0
        return mask


class StateRead(MultiRead):
    """Reads the states of partitions. ``rows`` are their row numbers."""

    def __init__(self, names: PathNames, topic: Int32, partition: Int32, rows: Int32, fence: Fence) -> None:
        out = np.empty(int(_sizes(names, topic).sum()), np.uint8)
        written = write_reads(topic, partition, names.offsets, names.names, names.root, out)
        super().__init__(out[:written].data, len(rows), fence)
        self.rows = rows
        self._targets = names, topic, partition

    def halves(self) -> Sequence[MultiRead]:
        """The same rows in two requests. Empty for a single row."""
        if self.count == 1:
            return ()
        names, topic, partition = self._targets
        parts = (slice(self.count // 2), slice(self.count // 2, None))
        return tuple(StateRead(names, topic[part], partition[part], self.rows[part], self._fence) for part in parts)


def _sizes(names: PathNames, topic: Int32) -> Int32:
    """Maximum bytes of a read of the state of a partition of each topic."""
    sizes: Int32 = names.offsets[topic + 1] - names.offsets[topic] + np.int32(len(names.root) + _OPERATION_BYTES)
    return sizes


def split_batches(sizes: Int32, bytes_max: int, count_max: int) -> list[tuple[int, int]]:
    """Consecutive (first, last) parts of items of these sizes, within both bounds. A single item may exceed them."""
    ends, parts, first = np.cumsum(sizes, dtype=np.int64), [], 0
    while first < len(sizes):
        begun = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, begun + bytes_max, side="right"))
        last = min(max(last, first + 1), first + count_max)
        parts.append((first, min(last, len(sizes))))
        first = parts[-1][1]
    return parts


def read_states(session: Session, names: PathNames, topic: Int32, partition: Int32) -> StateRows:
    """Read the states of partitions. Raises StoreError."""
    read = _read_by_multi if session.has_multi_read else _read_by_singles
    return StateRows.chain([state_rows(results) for results in read(session, names, topic, partition)])


def state_reads(
    session: Session, names: PathNames, topic: Int32, partition: Int32, rows: Int32
) -> Iterator[StateRead]:  # fmt: skip
    """Requests that read the states of partitions with these row numbers."""
    for first, last in split_batches(_sizes(names, topic), REQUEST_BYTES_MAX, STATES_MAX):
        part = slice(first, last)
        yield StateRead(names, topic[part], partition[part], rows[part], session.fence)


def state_rows(results: Results) -> StateRows:
    """The states in a response."""
    rows = StateRows.allocate(len(results.code))
    counts = np.zeros(len(results.code), np.int32)
    # An ISR member takes at least two bytes of JSON. These are a digit and a comma or bracket.
    isr = np.empty(int(np.maximum(results.data_length, 0).sum()) // 2, np.int32)
    used = parse_states(
        results.reply, results.data_offset, results.data_length, rows.leader, rows.leader_epoch, rows.controller_epoch,
        rows.recovery, counts, isr, rows.parsed,
    )  # fmt: skip
    unparsed = {i: results.data(i) for i in np.flatnonzero((results.code == 0) & (rows.parsed == 0)).tolist()}
    return replace(
        rows,
        code=results.code,
        version=results.version,
        zxid=results.mzxid,
        isr=Ragged(offsets_of(counts), isr[:used].copy()),
        unparsed=unparsed,
    )


def _read_by_multi(session: Session, names: PathNames, topic: Int32, partition: Int32) -> Iterator[Results]:
    """The results of each request, in order."""
    rows = np.arange(len(topic), dtype=np.int32)
    for request, reply in session.ask(state_reads(session, names, topic, partition, rows)):
        yield Results.split(reply, request.count)


def _read_by_singles(session: Session, names: PathNames, topic: Int32, partition: Int32) -> Iterator[Results]:
    """The same from a server without multiRead."""
    for first in range(0, len(topic), STATES_MAX):
        rows = range(first, min(first + STATES_MAX, len(topic)))
        paths = [names.partition_path(int(topic[row]), int(partition[row])) + "/state" for row in rows]
        yield Results.of_singles(get_each(session, paths))


def get_each(
    session: Session, paths: Sequence[str], watch: Callable[[Any], None] | None = None
) -> list[tuple[bytes | None, Any] | None]:
    """Data and stat of each node by single requests; None if missing. ``paths`` include the chroot."""
    requests = (GetData(path, watch) for path in paths)
    return [response for _, response in session.ask(requests, SINGLE_IN_FLIGHT, absent=NoNodeError)]


class _PathRead(MultiRead):
    """Reads data or children of ``paths``."""

    def __init__(self, paths: Sequence[str], operation: Callable[[str], bytes], fence: Fence) -> None:
        super().__init__(b"".join(operation(path) for path in paths), len(paths), fence)
        self._paths, self._operation = paths, operation

    def halves(self) -> Sequence[MultiRead]:
        """The same paths in two requests. Empty for a single path."""
        middle = self.count // 2
        parts = (self._paths[:middle], self._paths[middle:]) if middle else ()
        return tuple(_PathRead(part, self._operation, self._fence) for part in parts)


def read_results(
    session: Session, paths: Sequence[str], first: int = NODES_FIRST, *, probe_first: bool = False
) -> Iterator[tuple[int, Results]]:
    """Data and stat of nodes: for each answer the index of its first path and its results, in order.

    ``paths`` include the chroot. The first requests are sent at once. Raises StoreError. The first requests read
    ``first`` nodes each; later ones as many as the longest node seen allows. With ``probe_first`` a single such request
    is sent before the others: an extra round trip, but fewer responses.
    """
    if session.has_multi_read:
        return _GrowingReads(session, paths, first, probe_first=probe_first).results()
    return iter([(0, Results.of_singles(get_each(session, paths)))])


class _GrowingReads:
    """Reads of nodes. Requests grow with the known size of nodes."""

    def __init__(self, session: Session, paths: Sequence[str], first: int, *, probe_first: bool) -> None:
        self._count, self._longest = first, NODE_BYTES_MIN
        self._session, self._paths = session, paths
        requests = self._requests()
        self._responses_to = session.ask(islice(requests, 1) if probe_first else requests)
        self._later: Iterator[_PathRead] = requests if probe_first else iter(())

    def _requests(self) -> Iterator[_PathRead]:
        sent = 0
        while sent < len(self._paths):
            part = self._paths[sent : sent + self._count]
            sent += len(part)
            yield _PathRead(part, get_data, self._session.fence)

    def results(self) -> Iterator[tuple[int, Results]]:
        """The index of the first path and the results of each response."""
        begun = 0
        while response := next(self._responses_to, None):
            request, reply = response
            results = Results.split(reply, request.count)
            self._longest = max(self._longest, int(results.data_length.max(initial=0)))
            self._count = max(1, min(STATES_MAX, RESPONSE_BYTES // (2 * self._longest)))
            if begun == 0:
                self._responses_to = chain(self._responses_to, self._session.ask(self._later))
            yield begun, results
            begun += request.count


def read_nodes(session: Session, paths: Sequence[str]) -> list[ReadNode | None]:
    """Data and stat of nodes, chroot included in ``paths``. None where there is none. Raises StoreError."""
    return [results.node(i) for _, results in read_results(session, paths) for i in range(len(results.code))]


def read_children(session: Session, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Names of the children of nodes, sorted; None where there is no node. Raises StoreError."""
    if not session.has_multi_read:
        requests = (GetChildren(path, None) for path in paths)
        lists = (response for _, response in session.ask(requests, SINGLE_IN_FLIGHT, absent=NoNodeError))
        return [None if names is None else tuple(sorted(names)) for names in lists]
    children: list[tuple[str, ...] | None] = []
    reads = [_PathRead(paths[i : i + 256], get_children, session.fence) for i in range(0, len(paths), 256)]
    for request, reply in session.ask(reads):
        results = Results.split(reply, request.count)
        children += [names_in(results.data(i)) if results.exists(i) else None for i in range(request.count)]
    return children


def names_in(data: bytes | None) -> tuple[str, ...]:
    """The sorted names in a list of children. Raises StoreError for the response to another operation."""
    if data is None:
        raise StoreError("ZooKeeper's response has no list of children where one was asked for")
    names, offset = [], 4
    try:
        for _ in range(int.from_bytes(data[:4], signed=True)):
            if offset + 4 > len(data):
                raise StoreError("ZooKeeper's response has a list of children that breaks off")
            end = offset + 4 + max(int.from_bytes(data[offset : offset + 4], signed=True), 0)
            names.append(data[offset + 4 : end].decode())
            offset = end
    except UnicodeDecodeError:
        raise StoreError("ZooKeeper's response names a child in no UTF-8") from None
    return tuple(sorted(names))
