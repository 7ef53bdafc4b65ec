"""Compare the states that a replica of the controller would store with the stored ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from kframe.model.arrays import Bool, Int16, Int32
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.whatif.shadow.inputs import Input, IsrsChanged, text
from kframe.whatif.shadow.replica import ShadowController

#: The largest number of registered brokers that are assumed to have requested controlled shutdown.
LEAVING_MAX = 3


class ShadowState(Struct):
    """The compared part of a partition's state."""

    leader: int
    leader_epoch: int
    isr: list[int]


class DisagreementRecord(Struct):
    """A partition whose stored state differs from what kframe would have stored; null is no state."""

    at: str
    topic: str
    partition: int
    before: ShadowState | None
    expected: ShadowState | None
    actual: ShadowState | None
    causes: list[str]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A partition whose stored state differs from the expected one. None means no state."""

    topic: str
    partition: int
    before: ShadowState | None
    expected: ShadowState | None
    actual: ShadowState | None
    causes: tuple[str, ...]
    """The preceding changes, in order."""

    def record(self, at: str) -> DisagreementRecord:
        """As data, with the time of the comparison."""
        states = self.before, self.expected, self.actual
        return DisagreementRecord(at, self.topic, self.partition, *states, list(self.causes))

    def line(self) -> str:
        """One line of text."""
        after = "; ".join(self.causes) or "nothing that storage shows"
        expected, actual = _state_text(self.expected), _state_text(self.actual)
        return f"{self.topic}-{self.partition}: expected {expected}, found {actual}, after {after}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of one comparison."""

    compared: int
    """Compared partitions."""
    skipped: int
    """Partitions of topics that are new or under reassignment or deletion."""
    disagreements: tuple[Disagreement, ...]


def compare(
    base: ClusterState,
    inputs: Sequence[Input],
    real: ClusterState,
    config: ControllerConfig,
    excluded: Collection[str] = (),
) -> Comparison:
    """Apply ``inputs`` to a replica of ``base`` and compare it with ``real``, except for topics in ``excluded``.

    Requests leave no trace in storage, so a partition may have any of several states. The first is the state after the
    inputs alone. The second is the state with a controlled shutdown of brokers that are unregistered or lost leaders.
    If the preferred replica leads, the state after a preferred election on top of either, with the stored ISR, is valid
    too. The engine computes each of them.
    """
    abrupt, graceful = ShadowController(base, config), ShadowController(base, config)
    abrupt.apply(inputs)
    graceful.apply(inputs, controlled=True)
    rows = _comparable_rows(real, abrupt.stored, excluded)
    differing = rows[~_agree(abrupt.stored, real, rows)]
    leaving = _leaving_brokers(base, real, differing)
    graceful.shut_down(leaving)
    differing = differing[~_agree(graceful.stored, real, differing)]
    preferred = _partitions(real, differing[_led_by_preferred(real, differing)])
    for replica in (abrupt, graceful):
        replica.apply([IsrsChanged(tuple((*item, _live_isr(real, item)) for item in preferred))])
        replica.elect(preferred)
        differing = differing[~_agree(replica.stored, real, differing)]
    causes = tuple(text(item) for item in inputs)
    plain = ShadowController(base, config)
    plain.apply(inputs)
    disagreements = tuple(
        Disagreement(*name, _state(base, *name), _state(plain.stored, *name), _state(real, *name), causes)
        for name in _partitions(real, differing)
    )
    return Comparison(len(rows), int(np.count_nonzero(real.partitions.topic >= 0)) - len(rows), disagreements)


def same_leadership(known: ClusterState, real: ClusterState, rows: Int32) -> tuple[Int32, Bool]:
    """Rows of ``known`` that are the partitions ``rows`` of ``real``, -1 for none. Also whether leader and leader epoch
    are the same, or neither has a state."""
    known_rows, p, q = _rows_in(known, real, rows), known.partitions, real.partitions
    leader, epoch = np.append(_ids(known, p.leader), -2)[known_rows], np.append(p.leader_epoch, -2)[known_rows]
    stated = np.append(p.partition_epoch, NO_STATE)[known_rows] != NO_STATE
    equal = (leader == _ids(real, q.leader[rows])) & (epoch == q.leader_epoch[rows])
    has_state = q.partition_epoch[rows] != NO_STATE
    same: Bool = (known_rows >= 0) & (stated == has_state) & (equal | ~has_state)
    return known_rows, same


def _agree(expected: ClusterState, real: ClusterState, rows: Int32) -> Bool:
    """Whether each row has the expected state. Its ISR may differ, because leaders change it themselves, but it must
    not contain new members that are not registered."""
    expected_rows, same = same_leadership(expected, real, rows)
    isr = real.partitions.lists("isr", rows)
    offline = isr.any(np.append(real.brokers.registered, 0)[isr.values] == 0) & same
    for position in np.flatnonzero(offline).tolist():
        stored, known = _members(real, int(rows[position])), _members(expected, int(expected_rows[position]))
        live = set(real.brokers.registered_ids())
        same[position] = not (stored - live) - known
    return same


def _comparable_rows(real: ClusterState, expected: ClusterState, excluded: Collection[str]) -> Int32:
    topics = real.topics
    included = np.array([name not in excluded and name in expected.topics for name in topics.names] + [False])
    rows = np.flatnonzero(included[real.partitions.topic]).astype(np.int32)
    return rows[_rows_in(expected, real, rows) >= 0]


def _rows_in(known: ClusterState, real: ClusterState, rows: Int32) -> Int32:
    """The rows of ``known`` that are these partitions of ``real``, -1 where there is none."""
    index = [-1 if (index_ := known.topics.find(name)) is None else index_ for name in real.topics.names]
    topic = np.array([*index, -1], np.int32)[real.partitions.topic[rows]]
    result = np.full(len(rows), -1, np.int32)
    exists = topic >= 0
    result[exists] = known.topics.locate(topic[exists], real.partitions.partition[rows[exists]])
    return result


def _leaving_brokers(base: ClusterState, real: ClusterState, rows: Int32) -> list[int]:
    """Registered brokers that lost the leadership or ISR membership of these rows."""
    base_rows = _rows_in(base, real, rows)
    rows, base_rows = rows[base_rows >= 0], base_rows[base_rows >= 0]
    lost: set[int] = set()
    for row, known in zip(rows.tolist(), base_rows.tolist(), strict=True):
        lost |= _members(base, known) - _members(real, row)
        if len(lost) > LEAVING_MAX:
            return []
    return sorted(lost)


def _led_by_preferred(real: ClusterState, rows: Int32) -> Bool:
    p = real.partitions
    replicas = p.lists("replica", rows)
    first = np.append(replicas.values, -2)[replicas.offsets[:-1]]
    led: Bool = (p.leader[rows] >= 0) & (p.leader[rows] == first)
    return led


def _ids(cluster: ClusterState, indexes: Int16) -> Int32:
    ids: Int32 = np.append(cluster.brokers.ids, NO_LEADER)[indexes]
    return ids


def _live_isr(cluster: ClusterState, partition: TopicPartition) -> tuple[int, ...]:
    live = set(cluster.brokers.registered_ids())
    return tuple(replica for replica in cluster[partition].isr if replica in live)


def _members(cluster: ClusterState, row: int) -> set[int]:
    return set(cluster.brokers.ids_of(cluster.partitions.isr_of(row)))


def _partitions(cluster: ClusterState, rows: Int32) -> list[TopicPartition]:
    return [(view.topic, view.partition) for view in map(cluster.view, rows.tolist())]


def _state(cluster: ClusterState, topic: str, partition: int) -> ShadowState | None:
    row = cluster.row(topic, partition)
    if row is None or cluster.partitions.partition_epoch[row] == NO_STATE:
        return None
    view = cluster.view(row)
    assert view.leader is not None  # It has a state.
    return ShadowState(view.leader, view.leader_epoch, list(view.isr))


def _state_text(state: ShadowState | None) -> str:
    if state is None:
        return "no state"
    return f"leader {state.leader} epoch {state.leader_epoch} isr {','.join(map(str, state.isr))}"
