"""Many writes by few requests, each of which first checks that we are still controller.

Kafka sends a multi of its own for every node, a check of ``/controller_epoch`` and one write (3.9
``KafkaZkClient.retryRequestsUntilConnected``). Here some hundreds of writes share one check. ZooKeeper does all of a
multi or nothing, so one refused write holds the others of its batch up: the answer names it, it is set aside, and the
caller decides what of the rest is tried again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from kazoo.exceptions import BadVersionError, KazooException, RolledBackError, RuntimeInconsistency
from numpy.typing import NDArray

from kframe.plugin import ControllerFenced, StoreError
from kframe.plugin.columns import Int32, Int64, UInt8, ragged_positions
from kframe_zookeeper._jute_read import split_results
from kframe_zookeeper.multiread import REQUEST_BYTES_MOST, cut, error_name
from kframe_zookeeper.requests import MultiWrite, Reply
from kframe_zookeeper.session import IN_FLIGHT, RequestLost, Session

#: Writes that share one check: more are not faster, and hold more up when one of them is refused.
WRITES_MOST: Final = 500
#: Batches that may be on their way behind others: enough that the server has work while the others are made use of.
BEHIND_IN_FLIGHT: Final = 32
#: How often what was not tried is tried again.
ROUNDS_MOST: Final = 1000

#: Fates beside ZooKeeper's own codes, which are 0 or negative.
LOST: Final = 1
"""The connection broke: it may have been done."""
UNTRIED: Final = 2
"""Not done, because another write of its batch was refused, or because the session was not certain to live."""


@dataclass(frozen=True, slots=True, eq=False)
class Writes:
    """``k`` writes of ``operations[i]`` operations each; the bytes of write ``i`` are ``data[at[i]:at[i + 1]]``."""

    data: UInt8
    at: Int64
    operations: Int32

    def __len__(self) -> int:
        return len(self.operations)

    @staticmethod
    def of(writes: Sequence[Sequence[bytes]]) -> Writes:
        """From the operations of each write, which are done together or not at all."""
        encoded = [b"".join(operations) for operations in writes]
        at = np.zeros(len(writes) + 1, np.int64)
        np.cumsum([len(operations) for operations in encoded], out=at[1:])
        return Writes(
            np.frombuffer(b"".join(encoded), np.uint8),
            at,
            np.array([len(operations) for operations in writes], np.int32),
        )

    def take(self, chosen: NDArray[Any]) -> Writes:
        """The writes numbered ``chosen``."""
        lengths = np.diff(self.at)[chosen]
        at = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=at[1:])
        return Writes(self.data[ragged_positions(self.at[:-1][chosen], lengths)], at, self.operations[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class WriteOutcomes:
    """What became of ``k`` writes.

    ``code``: 0 done, LOST, UNTRIED, or ZooKeeper's error; ``operation``: which operation of a refused write was
    refused; ``version`` and ``mzxid``: of the last operation where it was a setData (0 and -1 after a create).
    """

    code: Int32
    operation: Int32
    version: Int32
    mzxid: Int64

    @staticmethod
    def unknown(count: int) -> WriteOutcomes:
        """Before anything was tried."""
        ints = np.full(count, UNTRIED, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32)
        return WriteOutcomes(*ints, np.full(count, -1, np.int64))

    def take(self, chosen: NDArray[Any]) -> WriteOutcomes:
        """The fates of the writes numbered ``chosen``."""
        return WriteOutcomes(self.code[chosen], self.operation[chosen], self.version[chosen], self.mzxid[chosen])

    def put(self, rows: NDArray[Any], other: WriteOutcomes) -> None:
        """Take over ``other`` at ``places``."""
        for name in ("code", "operation", "version", "mzxid"):
            getattr(self, name)[rows] = getattr(other, name)


class Sending:
    """Writes that are tried once each, batch by batch, some batches at a time. They leave in their order."""

    def __init__(self, session: Session, guard: bytes, writes: Writes) -> None:
        """``guard`` is the check operation that every batch begins with, or empty for writes that anybody may do."""
        self._session, self._guard, self._writes = session, guard, writes
        self._outcomes = WriteOutcomes.unknown(len(writes))
        self._left = deque(cut(np.diff(writes.at).astype(np.int32), REQUEST_BYTES_MOST, WRITES_MOST))
        self._waiting: deque[tuple[int, int, Any]] = deque()

    def begin(self, in_flight: int = IN_FLIGHT) -> bool:
        """Send what there is room for without waiting; whether all have left. Raises SessionOver."""
        while self._left and len(self._waiting) < in_flight:
            first, last = self._left.popleft()
            data = self._writes.data[self._writes.at[first] : self._writes.at[last]]
            count = int(self._writes.operations[first:last].sum()) + bool(self._guard)
            request = MultiWrite(b"".join((self._guard, data.data)), count, self._session.fence)
            self._waiting.append((first, last, self._session.submit(request)))
        return not self._left

    def finish(self, behind: Sending | None = None) -> WriteOutcomes:
        """Wait for all answers; ``behind`` begins as soon as the last of ours has left.

        Raises ControllerFenced when the check fails, SessionOver, and StoreError when a whole batch is refused.
        """
        while True:
            if self.begin() and behind is not None:
                behind.begin(BEHIND_IN_FLIGHT)
            if not self._waiting:
                return self._outcomes
            self._settle(*self._waiting.popleft())

    def _settle(self, first: int, last: int, result: Any) -> None:
        """Wait for the answer to one batch, and note the fates of its writes."""
        part, operations, outcomes = slice(first, last), self._writes.operations[first:last], self._outcomes
        try:
            (reply,) = self._session.wait(result)
        except RequestLost:
            outcomes.code[part] = LOST
            return
        except KazooException as error:
            raise StoreError(f"ZooKeeper refused {last - first} writes: {error!r}") from error
        fenced = bool(self._guard)
        results = _results(reply, int(operations.sum()) + fenced, fenced=fenced)
        if results is None:
            return  # the request left empty; its answer proves that the session lives
        code, version, mzxid = results
        ends = np.cumsum(operations) + fenced
        refused = np.flatnonzero(code)
        if len(refused) == 0:
            outcomes.code[part] = 0
            if len(code):
                outcomes.version[part], outcomes.mzxid[part] = version[ends - 1], mzxid[ends - 1]
            return
        index = int(refused[0])
        culprit = int(np.searchsorted(ends, index, side="right"))
        outcomes.code[first + culprit] = code[index]
        outcomes.operation[first + culprit] = index - (int(ends[culprit]) - int(operations[culprit]))


def write_once(session: Session, guard: bytes, writes: Writes) -> WriteOutcomes:
    """Try each write once; see ``Sending``."""
    return Sending(session, guard, writes).finish()


def _results(reply: Reply, count: int, *, fenced: bool) -> tuple[Int32, Int32, Int64] | None:
    """Codes (0 where it is not this operation that was refused), versions and transactions of ``count`` operations.

    None if the request was sent without operations (``MultiWrite``)."""
    code, version, mzxid = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int64)
    results_read = split_results(reply.data, reply.start, code, version, mzxid)
    if results_read == 0 and count:
        return None
    if results_read != count:
        raise StoreError(f"ZooKeeper's answer to {count} writes has {results_read} results")
    code[(code == RolledBackError.code) | (code == RuntimeInconsistency.code)] = 0  # another one was refused
    if fenced and code[0]:
        if code[0] == BadVersionError.code:
            raise ControllerFenced("another controller has claimed the role")
        raise StoreError(f"the controller epoch cannot be checked: {error_name(int(code[0]))}")
    return code, version, mzxid


def write_all(session: Session, guard: bytes, writes: Writes) -> tuple[WriteOutcomes, NDArray[np.bool_]]:
    """Try writes until each is done or refused by itself; return their fates, and a mask of those that were once lost.

    A write that was lost is tried again, and may then be refused because it had been done: only for writes that are
    the same done twice, or whose caller looks. Raises ControllerFenced and StoreError.
    """
    outcomes, unverified = write_once(session, guard, writes), np.zeros(len(writes), np.bool_)
    for _ in range(ROUNDS_MOST):
        lost = outcomes.code == LOST
        if lost.any():
            unverified |= lost
            session.await_connection()
        left = np.flatnonzero(outcomes.code > 0)
        if len(left) == 0:
            return outcomes, unverified
        outcomes.put(left, write_once(session, guard, writes.take(left)))
    raise StoreError(f"{len(left)} writes could not be finished in {ROUNDS_MOST} rounds")


def require(outcomes: WriteOutcomes, *tolerated: int) -> None:
    """Raise StoreError for the first write that was refused with a code that is not ``tolerated``."""
    for code in np.unique(outcomes.code):
        if code and code not in tolerated:
            raise StoreError(f"ZooKeeper refused a write: {error_name(int(code))}")
