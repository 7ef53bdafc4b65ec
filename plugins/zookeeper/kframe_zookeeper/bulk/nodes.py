"""Read many nodes by few requests, as data with their stat.

A multiRead (ZooKeeper 3.6 and later) answers thousands of reads, each with its own result or error. Older servers are
read by pipelined single requests. A request stays below half of the server's ``jute.maxbuffer`` (1 MiB). The number of
its operations keeps the response at about the same length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import GetChildren, GetData

from kframe.plugin import StoreError, counted
from kframe.plugin.columns import Int32, Int64, UInt8
from kframe_zookeeper.kernels._jute_read import split_reads
from kframe_zookeeper.session.fence import Fence
from kframe_zookeeper.session.requests import NO_NODE, MultiRead, MultiResponse, error_name, get_children, get_data
from kframe_zookeeper.session.session import Session

REQUEST_BYTES_MAX: Final = 512 * 1024
STATES_MAX: Final = 4000
#: Single requests in flight at a server without multiRead.
SINGLE_IN_FLIGHT: Final = 2000
#: Operations of the first request for nodes of unknown length. The longest node so far determines later requests.
NODES_FIRST: Final = 16
RESPONSE_BYTES: Final = 512 * 1024
NODE_BYTES_MIN: Final = 128


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
            reply.data,
            reply.start,
            results.code,
            results.data_offset,
            results.data_length,
            results.version,
            results.czxid,
            results.mzxid,
            results.owner,
        )
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


_STAT_COLUMNS: Final = (
    ("version", "version"),
    ("czxid", "czxid"),
    ("mzxid", "mzxid"),
    ("owner", "ephemeralOwner"),
)


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
