"""Read the states of many partitions into columns by few requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8, offsets_of
from kframe_zookeeper.bulk.nodes import REQUEST_BYTES_MAX, STATES_MAX, Results, get_each, split_batches
from kframe_zookeeper.kernels._jute_read import parse_states
from kframe_zookeeper.kernels._jute_write import write_reads
from kframe_zookeeper.session.fence import Fence
from kframe_zookeeper.session.requests import MultiRead
from kframe_zookeeper.session.session import Session

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


#: The columns of StateRows with a value for each row, in order.
_STATE_COLUMNS: Final = (
    "code",
    "parsed",
    "leader",
    "leader_epoch",
    "controller_epoch",
    "version",
    "recovery",
    "zxid",
)


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
            code=ints[0],
            parsed=np.zeros(count, np.uint8),
            leader=ints[1],
            leader_epoch=ints[2],
            controller_epoch=ints[3],
            version=ints[4],
            recovery=np.zeros(count, np.uint8),
            zxid=np.full(count, -1, np.int64),
            isr=Ragged.empty(count),
            unparsed={},
        )

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


def read_states(session: Session, names: PathNames, topic: Int32, partition: Int32) -> StateRows:
    """Read the states of partitions. Raises StoreError."""
    read = _read_by_multi if session.has_multi_read else _read_by_singles
    return StateRows.chain([state_rows(results) for results in read(session, names, topic, partition)])


def state_reads(session: Session, names: PathNames, topic: Int32, partition: Int32, rows: Int32) -> Iterator[StateRead]:
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
        results.reply,
        results.data_offset,
        results.data_length,
        rows.leader,
        rows.leader_epoch,
        rows.controller_epoch,
        rows.recovery,
        counts,
        isr,
        rows.parsed,
    )
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
