"""Batch many writes into a few multi requests that each check the controller epoch first.

Kafka sends a multi for every znode: a check of ``/controller_epoch`` and a write (Kafka 3.9
``KafkaZkClient.retryRequestsUntilConnected``). Here up to 500 writes share a check. ZooKeeper performs all operations
of a multi or none, so a refused write blocks its batch. The response names that write; the caller decides which of the
others to try again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from kazoo.exceptions import KazooException, RolledBackError, RuntimeInconsistency
from numpy.typing import NDArray

from kframe.plugin import ControllerFenced, StoreError, counted
from kframe.plugin.columns import Int32, Int64, UInt8, ragged_positions
from kframe_zookeeper.bulk.nodes import REQUEST_BYTES_MAX, split_batches
from kframe_zookeeper.kernels._jute_read import split_results
from kframe_zookeeper.session.requests import BAD_VERSION, MultiResponse, MultiWrite, error_name
from kframe_zookeeper.session.session import IN_FLIGHT, RequestLost, Session

#: Writes that share a check. More are not faster, and a refused write blocks more of them.
WRITES_MAX: Final = 500
#: Batches in flight of a following write: enough to keep the server busy while earlier responses are processed.
FOLLOWING_IN_FLIGHT: Final = 32
#: Maximum attempts for writes that were not performed.
ROUNDS_MAX: Final = 1000

#: Codes in addition to ZooKeeper's, which are 0 or negative.
LOST: Final = 1
"""The connection broke. The write may have been performed."""
UNTRIED: Final = 2
"""Not performed: another write of its batch was refused, or the fence of the session was closed."""


@dataclass(frozen=True, slots=True, eq=False)
class Writes:
    """``k`` writes of ``operations[i]`` operations each.

    The bytes of write ``i`` are ``data[offsets[i]:offsets[i + 1]]``.
    """

    data: UInt8
    offsets: Int64
    operations: Int32

    def __len__(self) -> int:
        return len(self.operations)

    @staticmethod
    def of(writes: Sequence[Sequence[bytes]]) -> Writes:
        """From the operations of each write. ZooKeeper performs them together or not at all."""
        encoded = [b"".join(operations) for operations in writes]
        offsets = np.zeros(len(writes) + 1, np.int64)
        np.cumsum([len(operations) for operations in encoded], out=offsets[1:])
        return Writes(
            np.frombuffer(b"".join(encoded), np.uint8),
            offsets,
            np.array([len(operations) for operations in writes], np.int32),
        )

    def take(self, chosen: NDArray[Any]) -> Writes:
        """The writes numbered ``chosen``."""
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Writes(self.data[ragged_positions(self.offsets[:-1][chosen], lengths)], offsets, self.operations[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class WriteOutcomes:
    """The outcomes of ``k`` writes.

    ``code``: 0 for success, LOST, UNTRIED, or ZooKeeper's error. ``operation``: index of the refused operation within
    its write. ``version``: that of the last operation if it was a setData (0 after a create).
    """

    code: Int32
    operation: Int32
    version: Int32

    @staticmethod
    def unknown(count: int) -> WriteOutcomes:
        """``count`` outcomes. All are UNTRIED."""
        return WriteOutcomes(np.full(count, UNTRIED, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32))

    def take(self, chosen: NDArray[Any]) -> WriteOutcomes:
        """The outcomes of the writes numbered ``chosen``."""
        return WriteOutcomes(self.code[chosen], self.operation[chosen], self.version[chosen])

    def put(self, rows: NDArray[Any], other: WriteOutcomes) -> None:
        """Replace the outcomes of ``rows`` by ``other``."""
        for name in ("code", "operation", "version"):
            getattr(self, name)[rows] = getattr(other, name)


class Sending:
    """Sends each write once, in order, with several batches in flight."""

    def __init__(self, session: Session, guard: bytes, writes: Writes) -> None:
        """``guard`` is the check operation that begins every batch. Empty for writes that need no controller."""
        self._session, self._guard, self._writes = session, guard, writes
        self._outcomes = WriteOutcomes.unknown(len(writes))
        self._unsent = deque(split_batches(np.diff(writes.offsets).astype(np.int32), REQUEST_BYTES_MAX, WRITES_MAX))
        self._waiting: deque[tuple[int, int, Any]] = deque()

    def begin(self, in_flight: int = IN_FLIGHT) -> bool:
        """Send up to ``in_flight`` batches without waiting. Return whether all were sent. Raises SessionOver."""
        while self._unsent and len(self._waiting) < in_flight:
            first, last = self._unsent.popleft()
            data = self._writes.data[self._writes.offsets[first] : self._writes.offsets[last]]
            count = int(self._writes.operations[first:last].sum()) + bool(self._guard)
            request = MultiWrite(b"".join((self._guard, data.data)), count, self._session.fence)
            self._waiting.append((first, last, self._session.submit(request)))
        return not self._unsent

    def finish(self, following: Sending | None = None) -> WriteOutcomes:
        """Wait for all responses. ``following`` begins as soon as the last batch was sent.

        Raises ControllerFenced when the check fails, SessionOver, and StoreError when a whole batch is refused.
        """
        while True:
            if self.begin() and following is not None:
                following.begin(FOLLOWING_IN_FLIGHT)
            if not self._waiting:
                return self._outcomes
            self._settle(*self._waiting.popleft())

    def _settle(self, first: int, last: int, result: Any) -> None:
        """Wait for the response to a batch, and record the outcomes of its writes."""
        part, operations, outcomes = slice(first, last), self._writes.operations[first:last], self._outcomes
        try:
            (reply,) = self._session.wait(result)
        except RequestLost:
            outcomes.code[part] = LOST
            return
        except KazooException as error:
            raise StoreError(f"ZooKeeper refused {counted(last - first, 'write')}: {error!r}") from error
        fenced = bool(self._guard)
        results = _results(reply, int(operations.sum()) + fenced, fenced=fenced)
        if results is None:
            return  # The fence was closed, so the request was sent without operations.
        code, version = results
        ends = np.cumsum(operations) + fenced
        refused = np.flatnonzero(code)
        if len(refused) == 0:
            outcomes.code[part] = 0
            if len(code):
                outcomes.version[part] = version[ends - 1]
            return
        index = int(refused[0])
        refused_write = int(np.searchsorted(ends, index, side="right"))
        outcomes.code[first + refused_write] = code[index]
        outcomes.operation[first + refused_write] = index - (int(ends[refused_write]) - int(operations[refused_write]))


def write_once(session: Session, guard: bytes, writes: Writes) -> WriteOutcomes:
    """Send each write once; see ``Sending``."""
    return Sending(session, guard, writes).finish()


def _results(reply: MultiResponse, count: int, *, fenced: bool) -> tuple[Int32, Int32] | None:
    """Codes and versions of ``count`` operations. The code is 0 unless this operation was the refused one.

    None if the request was sent without operations (``MultiWrite``).
    """
    code, version = np.empty(count, np.int32), np.empty(count, np.int32)
    results_read = split_results(reply.data, reply.start, code, version)
    if results_read == 0 and count:
        return None
    if results_read != count:
        raise StoreError(f"ZooKeeper's response to {counted(count, 'write')} has {counted(results_read, 'result')}")
    code[(code == RolledBackError.code) | (code == RuntimeInconsistency.code)] = (
        0  # Rolled back because of another operation.
    )
    if fenced and code[0]:
        if code[0] == BAD_VERSION:
            raise ControllerFenced("another controller has claimed the role")
        raise StoreError(f"the controller epoch cannot be checked: {error_name(int(code[0]))}")
    return code, version


def write_all(session: Session, guard: bytes, writes: Writes) -> tuple[WriteOutcomes, NDArray[np.bool_]]:
    """Send writes until each has succeeded or was refused. Return outcomes, and a mask of writes LOST once.

    A LOST write is sent again, and may then be refused because the first attempt succeeded. So use this for idempotent
    writes, or verify the masked ones. Raises ControllerFenced and StoreError.
    """
    outcomes, unverified = write_once(session, guard, writes), np.zeros(len(writes), np.bool_)
    for _ in range(ROUNDS_MAX):
        lost = outcomes.code == LOST
        if lost.any():
            unverified |= lost
            session.await_connection()
        remaining = np.flatnonzero(outcomes.code > 0)
        if len(remaining) == 0:
            return outcomes, unverified
        outcomes.put(remaining, write_once(session, guard, writes.take(remaining)))
    raise StoreError(f"{counted(len(remaining), 'write')} could not be finished in {ROUNDS_MAX} rounds")


def require(outcomes: WriteOutcomes, *tolerated: int) -> None:
    """Raise StoreError for the first write that was refused with a code that is not ``tolerated``."""
    for code in np.unique(outcomes.code):
        if code and code not in tolerated:
            raise StoreError(f"ZooKeeper refused a write: {error_name(int(code))}")
