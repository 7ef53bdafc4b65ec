"""Asking a leader selector, and not believing it: every choice passes the safety rules before it is used.

A selector that is not ours sees an ElectionBatch, copied out of the columns, and writes into an array of ours. What it
chose is then held to the rules below; where it breaks one, and everywhere if it raised or touched what is not its own,
the built-in rule decides. The fault is counted and logged, one line a batch. Nothing that a selector does can make a
dead, leaving or, unless that was allowed, out-of-sync broker the leader.
"""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import _select
from kframe.errors import SelectorFault, ShapeError
from kframe.model.cluster import ClusterState
from kframe.model.columns import REPLICAS_MAX, Int32, Int64, Partitions, Ragged, UInt8
from kframe.model.elections import ElectionBatch, LeaderSelector, NativeCall
from kframe.model.ids import NO_LEADER, ElectionKind

_log = logging.getLogger("kframe.selection")

#: How many partitions a fault names.
SAMPLES: Final = 3
#: How many partitions of a batch its seed is made of, at most.
SEED_ROWS: Final = 32
#: Stands before and after the array that a selector writes into; a selector that wrote there overran it.
_GUARD: Final = np.int32(-0x5AFE5AFE)


class FaultKind(StrEnum):
    """What a selector did wrong. The first two concern its whole batch, the others one partition."""

    RAISED = "raised an exception"
    OVERREACHED = "touched more than its leader array"
    NOT_A_CANDIDATE = "chose a broker that is not a candidate"
    NOT_PREFERRED = "chose another than the preferred replica"
    NOT_ELIGIBLE = "chose a broker that is dead, shutting down or has the log directory offline"
    NOT_IN_SYNC = "chose an out-of-sync replica where that is not allowed"


class BatchFault(SelectorFault):
    """A selector failed for its whole batch: RAISED, or OVERREACHED."""

    def __init__(self, selector: str, fault_kind: FaultKind, problem: str) -> None:
        super().__init__(selector, f"{fault_kind}: {problem}")
        self.fault_kind = fault_kind


class Selection:
    """Chooses leaders by the selectors set for some kinds of election, and by the built-in rule for all else."""

    def __init__(self, selectors: Mapping[ElectionKind, LeaderSelector]) -> None:
        self._selectors = {kind: (selector.name, selector) for kind, selector in selectors.items()}
        self.faults: Counter[tuple[str, FaultKind]] = Counter()
        """Partitions that the built-in rule decided instead, by selector name and fault."""
        self.last_fault: SelectorFault | None = None

    def choose(
        self,
        cluster: ClusterState,
        kind: ElectionKind,
        rows: Int32,
        unclean_allowed: UInt8,
        builtin: Callable[[Int32], Int32],
    ) -> Int32:
        """Choose a leader (broker index or NO_LEADER) for each of ``rows`` (k,); return them as a new array (k,).

        ``unclean_allowed`` (k,) is 1 where an out-of-sync leader is permitted. ``builtin`` is Kafka's rule for this
        kind: given a part of ``rows`` it returns their leaders. It is called where no selector is set and where the
        selector failed, at most once. Raises ShapeError if ``rows`` and ``unclean_allowed`` differ in length.
        """
        if len(rows) != len(unclean_allowed):
            raise ShapeError(f"{len(rows)} rows, {len(unclean_allowed)} unclean_allowed")
        if kind not in self._selectors or not len(rows):
            return builtin(rows)
        name, selector = self._selectors[kind]
        call = getattr(selector, "native", None)
        if isinstance(call, NativeCall):
            leader = np.empty(len(rows), np.int32)
            if choose_natively(call, cluster, kind, rows, unclean_allowed, leader) == 0:
                return leader
            # Some choice is unlawful: asked again for the whole batch it answers the same, and each fault is found.
        batch = election_batch(cluster, kind, rows, unclean_allowed)
        try:
            leader = run_selector(name, selector, _lent(batch))
        except BatchFault as fault:
            self._note(fault, {fault.fault_kind: len(rows)})
            return builtin(rows)
        if count_faults(batch, leader):
            faulty = find_faults(batch, leader)
            problem = _describe(cluster, batch, leader, faulty)
            self._note(SelectorFault(name, problem), {one: len(positions) for one, positions in faulty.items()})
            replaced = np.sort(np.concatenate(list(faulty.values())))
            leader[replaced] = builtin(rows[replaced])
        return leader

    def _note(self, fault: SelectorFault, counts: Mapping[FaultKind, int]) -> None:
        self.last_fault = fault
        for fault_kind, count in counts.items():
            self.faults[fault.selector, fault_kind] += count
        _log.error("%s; the built-in rule decided instead", fault, exc_info=fault.__cause__)


def election_batch(cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> ElectionBatch:
    """Copy what selectors may see of ``rows`` (k,) out of the columns.

    One liveness rule serves every kind: the broker is registered and not shutting down, and the replica's log
    directory is not offline. In a controlled shutdown brokers that are shutting down count as online for other
    purposes, but none of them may lead. Cost O(k * r * r), r being the replicas of a partition.
    """
    partitions, brokers = cluster.partitions, cluster.brokers
    candidates, eligible, in_sync, isr, clean = _gathered(partitions, kind, rows, brokers.live)
    unclean = np.zeros(len(rows), np.uint8)
    if kind == ElectionKind.OFFLINE:
        np.greater(unclean_allowed, clean, out=unclean)
    racks, broker_rack = brokers.racks()
    values = np.empty((4, len(rows)), np.int32)
    _select.copy_rows(
        rows, partitions.topic, partitions.partition, partitions.leader, partitions.leader_epoch, values
    )  # fmt: skip
    topic, partition, leader, leader_epoch = _frozen(values)
    return ElectionBatch(
        kind=kind,
        rows=_frozen(rows.copy()),
        topic=topic,
        partition=partition,
        candidates=Ragged(_frozen(candidates.offsets), _frozen(candidates.values)),
        eligible=_frozen(eligible),
        in_sync=_frozen(in_sync),
        isr=Ragged(_frozen(isr.offsets), _frozen(isr.values)),
        leader=leader,
        leader_epoch=leader_epoch,
        unclean_allowed=_frozen(unclean),
        broker_ids=_frozen(brokers.ids.copy()),
        broker_rack=_frozen(broker_rack.copy()),
        broker_live=_frozen(brokers.live),
        broker_shutting_down=_frozen(brokers.shutting_down.copy()),
        racks=racks,
        topic_names=cluster.topics.all_names(),
        seed=_seed(kind, partitions, rows),
    )


def choose_natively(
    call: NativeCall, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8, leader: Int32
) -> int:
    """Let a native selector choose row by row, and write who it is into ``leader`` (k,); return how many of its choices
    break a safety rule. It sees what ``election_batch`` would have shown it: candidates as copies, the ISR and what a
    row has one of where we keep them, as const, since copying those takes longer than choosing."""
    brokers = cluster.brokers
    allowed = unclean_allowed if kind == ElectionKind.OFFLINE else np.zeros(len(rows), np.uint8)
    numbers, marks = np.empty((2, REPLICAS_MAX), np.int16), np.empty((2, REPLICAS_MAX), np.uint8)
    return _select.choose(
        call.function, call.user_data, int(kind), _seed(kind, cluster.partitions, rows), cluster.partitions,
        brokers.live, (brokers.ids.copy(), brokers.racks()[1].copy(), brokers.live, brokers.shutting_down.copy()), rows,
        allowed, numbers, marks, leader,
    )  # fmt: skip


def run_selector(name: str, selector: LeaderSelector, batch: ElectionBatch) -> Int32:
    """Let a selector choose, and return what it wrote, unchecked, as an array of its own (k,).

    Raises BatchFault if it raises (its exception is the cause), returns something, changes the array's shape or
    dtype, or writes beside it.
    """
    guarded = np.full(len(batch) + 2, NO_LEADER, np.int32)
    guarded[0] = guarded[-1] = _GUARD
    leader = guarded[1:-1]
    try:
        elect: Callable[[ElectionBatch, Int32], object] = selector.elect
        returned = elect(batch, leader)
    except Exception as error:
        raise BatchFault(name, FaultKind.RAISED, f"{type(error).__name__}: {error}") from error
    if returned is not None:
        problem = f"it returned {type(returned).__name__}, expected None and the leaders in the array"
    elif leader.shape != (len(batch),) or leader.dtype != np.int32:
        problem = f"the array is {leader.dtype} {leader.shape} now, expected int32 {(len(batch),)}"
    elif guarded[0] != _GUARD or guarded[-1] != _GUARD:
        problem = "it wrote before the first or after the last partition"
    else:
        return guarded[1:-1].copy()
    raise BatchFault(name, FaultKind.OVERREACHED, problem)


def find_faults(batch: ElectionBatch, leader: Int32) -> dict[FaultKind, Int64]:
    """Positions in the batch whose chosen ``leader`` (k,) breaks a safety rule, ascending, by the first rule broken.

    The rules (invariants I4, I6 and I7): a leader is a candidate (in a PREFERRED election the first one), is eligible,
    and is in sync unless ``unclean_allowed``. NO_LEADER breaks none.
    """
    candidates = batch.candidates
    chosen = candidates.values == np.repeat(leader, candidates.counts)
    candidate = candidates.any(chosen)
    wrong = {FaultKind.NOT_A_CANDIDATE: ~candidate}
    if batch.kind == ElectionKind.PREFERRED:
        wrong[FaultKind.NOT_PREFERRED] = ~candidates.any(chosen & candidates.first)
    wrong[FaultKind.NOT_ELIGIBLE] = ~candidates.any(chosen & (batch.eligible != 0))
    in_sync = candidates.any(chosen & (batch.in_sync != 0))
    wrong[FaultKind.NOT_IN_SYNC] = ~in_sync & (batch.unclean_allowed == 0)
    remaining = leader != NO_LEADER
    faults = {}
    for fault_kind, mask in wrong.items():
        positions = np.flatnonzero(mask & remaining)
        if len(positions):
            faults[fault_kind] = positions
            remaining &= ~mask
    return faults


def count_faults(batch: ElectionBatch, leader: Int32) -> int:
    """How many of the chosen ``leader`` (k,) break a safety rule: what ``find_faults`` would find, in one pass."""
    candidates = batch.candidates
    return _select.count_unlawful(
        int(batch.kind), candidates.offsets, candidates.values, batch.eligible, batch.in_sync, batch.unclean_allowed,
        leader,
    )  # fmt: skip


def _gathered(
    p: Partitions, kind: ElectionKind, rows: Int32, live: UInt8
) -> tuple[Ragged, UInt8, UInt8, Ragged, UInt8]:
    """Candidates of ``rows`` (k,), beside them who is eligible and who is in sync, the ISRs, and (k,) where a candidate
    is both."""
    count = len(rows)
    replica_counts = p.replica_count[rows]
    room = int(replica_counts.sum())
    isr_room = int(np.maximum(replica_counts, p.isr_count[rows]).sum())
    candidates = Ragged(np.empty(count + 1, np.int32), np.empty(room, np.int32))
    isr = Ragged(np.empty(count + 1, np.int32), np.empty(isr_room, np.int32))
    eligible, in_sync, clean = np.empty(room, np.uint8), np.empty(room, np.uint8), np.empty(count, np.uint8)
    found = _select.gather(
        int(kind), rows, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, p.replica_flags, live,
        candidates.offsets, candidates.values, eligible, in_sync, isr.offsets, isr.values, clean,
    )  # fmt: skip
    candidates = Ragged(candidates.offsets, _cut(candidates.values, found))
    isr = Ragged(isr.offsets, _cut(isr.values, int(isr.offsets[-1])))
    return candidates, _cut(eligible, found), _cut(in_sync, found), isr, clean


def _cut(array: NDArray[Any], count: int) -> NDArray[Any]:
    """The first ``count`` values as an array that owns them, so that ``_frozen`` lets nobody write there."""
    return array if len(array) == count else array[:count].copy()


def _seed(kind: ElectionKind, partitions: Partitions, rows: Int32) -> int:
    """Of the kind, the size and some partitions all through the batch: reading all of a large one takes longer than
    electing its leaders."""
    seed = zlib.crc32(len(rows).to_bytes(8, "little"), int(kind))
    some = rows[:: -(-len(rows) // SEED_ROWS)]
    for column in (partitions.topic, partitions.partition, partitions.leader_epoch):
        seed = zlib.crc32(column[some].astype("<i4", copy=False).data, seed)
    return seed


def _lent(batch: ElectionBatch) -> ElectionBatch:
    """The batch with a second copy of all that the safety rules read: ours stays true whatever happens to theirs."""
    candidates = batch.candidates
    return replace(
        batch,
        candidates=Ragged(_frozen(candidates.offsets.copy()), _frozen(candidates.values.copy())),
        eligible=_frozen(batch.eligible.copy()),
        in_sync=_frozen(batch.in_sync.copy()),
        unclean_allowed=_frozen(batch.unclean_allowed.copy()),
    )


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of a read-only array: unlike an array that owns its data it cannot be made writable again."""
    array.flags.writeable = False
    return array.view()


def _describe(cluster: ClusterState, batch: ElectionBatch, leader: Int32, faulty: Mapping[FaultKind, Int64]) -> str:
    parts = []
    for fault_kind, positions in faulty.items():
        samples = [
            f"{cluster.name(int(batch.rows[at]))} → {_broker(batch, int(leader[at]))}" for at in positions[:SAMPLES]
        ]
        more = ", ..." if len(positions) > SAMPLES else ""
        parts.append(f"{fault_kind} for {len(positions)} of {len(batch)} partitions ({', '.join(samples)}{more})")
    return "; ".join(parts)


def _broker(batch: ElectionBatch, index: int) -> str:
    return f"broker {batch.broker_ids[index]}" if 0 <= index < len(batch.broker_ids) else f"broker index {index}"
