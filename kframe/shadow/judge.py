"""What a copy would have stored, held against what stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kframe.model.cluster import ClusterState
from kframe.model.columns import Bool, Int16, Int32
from kframe.model.config import ControllerConfig
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.shadow.inputs import Input, IsrsAre, text
from kframe.shadow.replica import Replica

#: Brokers that are registered still, but may have asked for controlled shutdown, at most.
LEAVING_MOST = 3
#: The fields of a state that are shown.
_FIELDS = ("leader", "leader_epoch", "isr")

State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A partition that stands otherwise than it would by us; None is no state at all."""

    topic: str
    partition: int
    before: State | None
    expected: State | None
    found: State | None
    causes: tuple[str, ...]
    """What had happened, in order."""

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "topic": self.topic, "partition": self.partition, "before": self.before, "expected": self.expected,
            "found": self.found, "causes": list(self.causes),
        }  # fmt: skip

    def line(self) -> str:
        """For people."""
        after = "; ".join(self.causes) or "nothing that storage shows"
        return f"{self.topic}-{self.partition}: expected {_say(self.expected)}, found {_say(self.found)}, after {after}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one round."""

    judged: int
    """Partitions that were compared."""
    passed_over: int
    """Partitions that were not: of topics that are being moved or deleted, or that came too late."""
    disagreements: tuple[Disagreement, ...]


def judge(
    base: ClusterState, inputs: Sequence[Input], real: ClusterState, config: ControllerConfig,
    left_out: Collection[str] = (),
) -> Verdict:  # fmt: skip
    """Play ``inputs`` on a copy of ``base``, and say where ``real`` stands otherwise, but for topics ``left_out``.

    Requests leave no trace in storage. So each partition may stand as after the inputs alone, or as if those who went,
    or lost leaders, had asked for controlled shutdown first, or, where its preferred replica leads, as if that had been
    elected on top of either, in the ISR that stands. It must stand so: the engine decides what would come of it.
    """
    hard, soft = Replica(base, config), Replica(base, config)
    hard.play(inputs)
    soft.play(inputs, polite=True)
    rows = _judged(real, hard.stored, left_out)
    wrong = rows[~_agree(hard.stored, real, rows)]
    leaving = _losers(base, real, wrong)
    soft.shut_down(leaving)
    wrong = wrong[~_agree(soft.stored, real, wrong)]
    preferred = _partitions(real, wrong[_led_by_preferred(real, wrong)])
    for replica in (hard, soft):
        replica.play([IsrsAre(tuple((*one, _live_isr(real, one)) for one in preferred))])
        replica.elect(preferred)
        wrong = wrong[~_agree(replica.stored, real, wrong)]
    causes = tuple(text(one) for one in inputs)
    plain = Replica(base, config)
    plain.play(inputs)
    found = tuple(
        Disagreement(*name, _state(base, *name), _state(plain.stored, *name), _state(real, *name), causes)
        for name in _partitions(real, wrong)
    )
    return Verdict(len(rows), int(np.count_nonzero(real.partitions.topic >= 0)) - len(rows), found)


def same_leadership(known: ClusterState, real: ClusterState, rows: Int32) -> tuple[Int32, Bool]:
    """Rows of ``known`` that are the partitions ``rows`` of ``real``, -1 for none; and whether the leader and the
    leader epoch are the same, or neither has a state."""
    own, p, q = _rows_in(known, real, rows), known.partitions, real.partitions
    leader, epoch = np.append(_ids(known, p.leader), -2)[own], np.append(p.leader_epoch, -2)[own]
    stated = np.append(p.partition_epoch, NO_STATE)[own] != NO_STATE
    equal = (leader == _ids(real, q.leader[rows])) & (epoch == q.leader_epoch[rows])
    there = q.partition_epoch[rows] != NO_STATE
    same: Bool = (own >= 0) & (stated == there) & (equal | ~there)
    return own, same


def _agree(expected: ClusterState, real: ClusterState, rows: Int32) -> Bool:
    """Whether each row stands as expected. An ISR may be another one, since leaders change it without a controller's
    decision, but nobody who is gone joins it."""
    own, same = same_leadership(expected, real, rows)
    isr = real.partitions.lists("isr", rows)
    gone = isr.any(np.append(real.brokers.registered, 0)[isr.values] == 0) & same
    for place in np.flatnonzero(gone).tolist():
        there, known = _members(real, int(rows[place])), _members(expected, int(own[place]))
        live = set(real.brokers.registered_ids())
        same[place] = not (there - live) - known
    return same


def _judged(real: ClusterState, expected: ClusterState, left_out: Collection[str]) -> Int32:
    topics = real.topics
    wanted = np.array([name not in left_out and name in expected.topics for name in topics.names] + [False])
    rows = np.flatnonzero(wanted[real.partitions.topic]).astype(np.int32)
    return rows[_rows_in(expected, real, rows) >= 0]


def _rows_in(known: ClusterState, real: ClusterState, rows: Int32) -> Int32:
    """The rows of ``known`` that are these partitions of ``real``, -1 where there is none."""
    index = [-1 if (place := known.topics.find(name)) is None else place for name in real.topics.names]
    topic = np.array([*index, -1], np.int32)[real.partitions.topic[rows]]
    found = np.full(len(rows), -1, np.int32)
    there = topic >= 0
    found[there] = known.topics.locate(topic[there], real.partitions.partition[rows[there]])
    return found


def _losers(base: ClusterState, real: ClusterState, rows: Int32) -> list[int]:
    """Brokers that are registered still, and have lost leadership or a place in an ISR of these rows."""
    own = _rows_in(base, real, rows)
    rows, own = rows[own >= 0], own[own >= 0]
    lost: set[int] = set()
    for row, known in zip(rows.tolist(), own.tolist(), strict=True):
        lost |= _members(base, known) - _members(real, row)
        if len(lost) > LEAVING_MOST:
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


def _name(cluster: ClusterState, row: int) -> TopicPartition:
    view = cluster.view(row)
    return view.topic, view.partition


def _partitions(cluster: ClusterState, rows: Int32) -> list[TopicPartition]:
    return [_name(cluster, row) for row in rows.tolist()]


def _state(cluster: ClusterState, topic: str, partition: int) -> State | None:
    row = cluster.row(topic, partition)
    if row is None or cluster.partitions.partition_epoch[row] == NO_STATE:
        return None
    view = cluster.view(row)
    return {"leader": view.leader, "leader_epoch": view.leader_epoch, "isr": list(view.isr)}


def _say(state: State | None) -> str:
    if state is None:
        return "no state"
    leader = "none" if state["leader"] is None else state["leader"]
    return f"leader {leader} epoch {state['leader_epoch']} isr {','.join(map(str, state['isr']))}"
