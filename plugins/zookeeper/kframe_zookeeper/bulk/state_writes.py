"""Create or compare-and-set partition states in bulk, with an outcome for each row.

The response to a batch names the first refused row. Before the other rows are sent again, the writer reads their states
once. That finds every other row that would be refused, and every row that was written although its response was lost
(KAFKA-1382).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.cluster import NO_STATE
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8, same_lists
from kframe.plugin.store import WriteCode, WriteResult
from kframe_zookeeper.bulk.nodes import read_nodes
from kframe_zookeeper.bulk.states import PathNames, StateRows, read_states
from kframe_zookeeper.bulk.writes import LOST, UNTRIED, Sending, WriteOutcomes, Writes, require, write_all
from kframe_zookeeper.kernels._jute_write import write_states
from kframe_zookeeper.session.requests import BAD_VERSION, NO_NODE, NODE_EXISTS, create
from kframe_zookeeper.session.session import RequestLost, Session

#: Maximum rounds of reading rows back and sending them again; each round means a concurrent write.
ROUNDS_MAX: Final = 16
#: Maximum bytes of JSON and operation headers of a row, without its path, ISR and ACL.
_FIXED_BYTES: Final = (
    9 + 4 + 4 + 4 + len('{"controller_epoch":,"leader":,"version":1,"leader_epoch":,"isr":[]}') + 33 + 27
)
_NUMBER_BYTES: Final = 11
_PATH_BYTES: Final = len("/partitions//state") + _NUMBER_BYTES
_CODES: Final = {
    0: WriteCode.OK,
    BAD_VERSION: WriteCode.STALE,
    NO_NODE: WriteCode.MISSING,
    NODE_EXISTS: WriteCode.EXISTS,
}


@dataclass(frozen=True, slots=True, eq=False)
class NewStates:
    """States to store for ``k`` partitions; brokers are ids. ``expected`` is NO_STATE to create a state."""

    names: PathNames
    topic: Int32
    partition: Int32
    leader: Int32
    leader_epoch: Int32
    recovery: UInt8
    isr: Ragged
    expected: Int32
    controller_epoch: int

    def take(self, rows: NDArray[Any]) -> NewStates:
        """The rows numbered ``rows``."""
        return NewStates(
            self.names,
            self.topic[rows],
            self.partition[rows],
            self.leader[rows],
            self.leader_epoch[rows],
            self.recovery[rows],
            self.isr.take(rows),
            self.expected[rows],
            self.controller_epoch,
        )

    def encode(self, acl: bytes, parent: UInt8) -> Writes:
        """A write for each row. Where ``parent`` is 1 it creates the parent of the state first."""
        names = self.names
        path_bytes = names.offsets[self.topic + 1] - names.offsets[self.topic] + len(names.root) + _PATH_BYTES
        sizes = path_bytes * (1 + parent) + _FIXED_BYTES + self.isr.counts * (_NUMBER_BYTES + 1)
        sizes += (parent.astype(np.int32) + (self.expected == NO_STATE)) * (len(acl) + 21)
        out, offsets = np.empty(int(sizes.sum()), np.uint8), np.empty(len(self.topic) + 1, np.int64)
        written = write_states(
            self.topic,
            self.partition,
            names.offsets,
            names.names,
            names.root,
            np.frombuffer(acl, np.uint8),
            self.leader,
            self.leader_epoch,
            self.recovery,
            self.isr.offsets,
            self.isr.values,
            self.expected,
            parent,
            self.controller_epoch,
            offsets,
            out,
        )
        return Writes(out[:written], offsets, parent.astype(np.int32) + 1)

    @property
    def keys(self) -> Int64:
        """A unique number for each partition, made of topic and partition."""
        keys: Int64 = (self.topic.astype(np.int64) << 32) | self.partition
        return keys

    def same_as(self, other: NewStates) -> Bool:
        """Mask of the rows whose new state equals that of the same row of ``other``."""
        same: Bool = (
            (self.expected == other.expected)
            & (self.leader == other.leader)
            & (self.leader_epoch == other.leader_epoch)
            & (self.recovery == other.recovery)
            & same_lists(self.isr, other.isr)
            & (self.controller_epoch == other.controller_epoch)
        )
        return same

    def equal(self, stored: StateRows) -> Bool:
        """Mask of the rows that are stored with these values, at the version after the expected one."""
        same: Bool = (
            stored.is_parsed
            & (stored.version == self.expected + 1)
            & (stored.leader == self.leader)
            & (stored.leader_epoch == self.leader_epoch)
            & (stored.controller_epoch == self.controller_epoch)
            & (stored.recovery == self.recovery)
            & same_lists(stored.isr, self.isr)
        )
        return same


@dataclass(frozen=True, slots=True, eq=False)
class Pipelined:
    """States that were sent before ``write`` was called for them."""

    states: NewStates
    sending: Sending

    def shared(self, requested: NewStates) -> tuple[Int64, Int64]:
        """Indexes of the rows that are equal here and in ``requested``, in both."""
        if np.array_equal(self.states.keys, requested.keys):
            here = there = np.arange(len(requested.topic))
        else:
            _, here, there = np.intersect1d(self.states.keys, requested.keys, assume_unique=True, return_indices=True)
        same = self.states.take(here).same_as(requested.take(there))
        return here[same], there[same]


class StateWriter:
    """Writes states in one session, under one claim."""

    def __init__(self, session: Session, guard: bytes, acl: bytes) -> None:
        """``guard`` is the check of the controller epoch. ``acl`` the ACL of new znodes."""
        self._session = session
        self._guard = guard
        self._acl = acl
        self._with_partitions: set[str] = set()
        """Paths of topics whose ``partitions`` znode exists."""
        self._pipelined: Pipelined | None = None

    def write(self, states: NewStates, following: NewStates | None = None) -> WriteResult:
        """Store each row. Raises ControllerFenced and StoreError.

        The writes of ``following``, other rows that have a state, are sent behind these. A later call for the same
        states returns their outcomes.
        """
        codes = np.full(len(states.topic), WriteCode.FAILED, np.uint8)
        versions = np.full(len(codes), NO_STATE, np.int32)
        creating = states.expected == NO_STATE
        parent, unverified = creating.astype(np.uint8), np.zeros(len(codes), np.bool_)
        remaining = np.arange(len(codes), dtype=np.int32)
        if creating.any():
            deleted_topics = self._make_parents(states, np.unique(states.topic[creating]))
            missing_topic = creating & np.isin(states.topic, deleted_topics)
            codes[missing_topic] = WriteCode.MISSING
            remaining = np.flatnonzero(~missing_topic).astype(np.int32)
        for _ in range(ROUNDS_MAX):
            if len(remaining) == 0:
                return WriteResult(codes, versions)
            outcomes, following = self._send_once(states.take(remaining), parent[remaining], following), None
            unverified[remaining] |= outcomes.code == LOST
            remaining = self._record_outcomes(states, outcomes, remaining, codes, versions, parent, unverified)
            if len(remaining):
                remaining = self._compare_with_storage(states, remaining, codes, versions, parent, unverified)
        if unverified[remaining].any():
            raise RequestLost(f"the outcome of {int(unverified[remaining].sum())} writes is not known")
        return WriteResult(codes, versions)

    def _send_once(self, states: NewStates, parent: UInt8, following: NewStates | None) -> WriteOutcomes:
        """Send each row once, then ``following``. For rows that were sent already, only wait."""
        outcomes, remaining = WriteOutcomes.unknown(len(states.topic)), np.arange(len(states.topic))
        pipelined = self._pipelined
        if pipelined is not None:
            here, there = pipelined.shared(states)
            if len(there) or following is not None:
                outcomes.put(there, pipelined.sending.finish().take(here))
                self._pipelined, remaining = None, np.delete(remaining, there)
        sending = self._sending(states.take(remaining), parent[remaining])
        sending.begin()  # The server works while the following rows are encoded.
        following_sending: Sending | None = None
        if following is not None:
            following_sending = self._sending(following, np.zeros(len(following.topic), np.uint8))
            self._pipelined = Pipelined(following, following_sending)
        outcomes.put(remaining, sending.finish(following_sending))
        return outcomes

    def _sending(self, states: NewStates, parent: UInt8) -> Sending:
        return Sending(self._session, self._guard, states.encode(self._acl, parent))

    def _record_outcomes(
        self,
        states: NewStates,
        outcomes: WriteOutcomes,
        rows: Int32,
        codes: UInt8,
        versions: Int32,
        parent: UInt8,
        unverified: Bool,
    ) -> Int32:
        """Record the certain outcomes of ``rows``. Return the rows that are still open."""
        code = outcomes.code
        done = code == 0
        codes[rows[done]], versions[rows[done]] = WriteCode.OK, outcomes.version[done]
        undecided = (code == LOST) | (code == UNTRIED)
        for index in np.flatnonzero(~done & ~undecided).tolist():
            row = rows[index]
            if parent[row] and outcomes.operation[index] == 0 and code[index] == NODE_EXISTS:
                parent[row] = 0
            elif not unverified[row]:
                codes[row] = _CODES.get(int(code[index]), WriteCode.FAILED)
                continue
            undecided[index] = True
        remaining: Int32 = rows[undecided]
        return remaining

    def _compare_with_storage(
        self, states: NewStates, rows: Int32, codes: UInt8, versions: Int32, parent: UInt8, unverified: Bool
    ) -> Int32:
        """Compare ``rows`` with storage and record the outcomes. Return the rows to send again."""
        self._session.await_connection()
        requested = states.take(rows)
        stored = read_states(self._session, states.names, requested.topic, requested.partition)
        exists, creating = stored.code == 0, requested.expected == NO_STATE
        done = requested.equal(stored) & unverified[rows]
        codes[rows[done]], versions[rows[done]] = WriteCode.OK, stored.version[done]
        resent = np.where(creating, ~exists, stored.version == requested.expected) & ~done
        codes[rows[~done & ~resent]] = WriteCode.STALE
        codes[rows[~done & ~resent & creating]] = WriteCode.EXISTS
        codes[rows[~done & ~resent & ~exists]] = WriteCode.MISSING
        retried: Int32 = rows[resent]
        parentless = retried[parent[retried] != 0]
        path = states.names.partition_path
        paths = [path(int(states.topic[row]), int(states.partition[row])) for row in parentless]
        parent[parentless] = [node is None for node in read_nodes(self._session, paths)]
        return retried

    def _make_parents(self, states: NewStates, topics: Int32) -> list[int]:
        """Create missing ``.../partitions`` znodes of topics. Return the topics that do not exist."""
        name = {topic: states.names.topic_path(topic) for topic in topics.tolist()}
        unknown = [topic for topic in name if name[topic] not in self._with_partitions]
        nodes = read_nodes(self._session, [f"{name[topic]}/partitions" for topic in unknown])
        missing = [topic for topic, node in zip(unknown, nodes, strict=True) if node is None]
        writes = Writes.of([[create(f"{name[topic]}/partitions", None, self._acl)] for topic in missing])
        outcomes, _ = write_all(self._session, self._guard, writes)
        require(outcomes, NODE_EXISTS, NO_NODE)
        deleted_topics = [topic for topic, code in zip(missing, outcomes.code.tolist(), strict=True) if code == NO_NODE]
        self._with_partitions.update(name[topic] for topic in unknown if topic not in deleted_topics)
        return deleted_topics

    def forget(self, names: tuple[str, ...]) -> None:
        """These topics (paths) were deleted; a topic of the same name has no ``partitions`` znode."""
        self._with_partitions.difference_update(names)
