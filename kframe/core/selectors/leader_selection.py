"""Call a leader selector and validate its choices against the safety rules.

A selector of a plugin reads copies of the columns (``lazy_view``), or const columns if it is native, and writes into an
array of this module. Where a choice violates a rule, the built-in rule decides. If the selector raises an exception or
writes outside its array, the built-in rule decides for the whole batch. Faults are counted and logged, one line per
batch. So no selector can elect a dead broker, a broker that is shutting down or, unless allowed, an out-of-sync
replica.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

import numpy as np

from kframe.core.selectors.builtin import ElectionRule, elect_builtin
from kframe.core.selectors.lazy_view import election_batch, lazy_batch
from kframe.errors import SelectorFault, ShapeError
from kframe.kernels import _selectors
from kframe.model.arrays import Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.elections import ElectionBatch, LeaderSelector, NativeCall
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.model.slot_columns import REPLICAS_MAX
from kframe.model.texts import counted

_log = logging.getLogger("kframe.selection")

#: Partitions that a fault names.
SAMPLES: Final = 3
#: Kinds of election whose candidate lists are computed, not read from the columns.
_COMPUTED_LISTS: Final = (ElectionKind.REASSIGN, ElectionKind.INITIAL)
#: Guard values before and after the array that a selector writes into.
_GUARD: Final = np.int32(-0x5AFE5AFE)


class FaultKind(StrEnum):
    """Faults of a selector. The first two concern its whole batch, the others one partition."""

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
    """Chooses leaders by the selector that is configured for a kind of election, or else by the built-in rule."""

    def __init__(
        self, selectors: Mapping[ElectionKind, LeaderSelector], fallback: ElectionRule = elect_builtin
    ) -> None:
        """``fallback`` decides where no selector is set, and where a selector failed."""
        self._fallback = fallback
        self._selectors = {
            kind: (selector.name, selector, _native_call(selector)) for kind, selector in selectors.items()
        }
        self.faults: Counter[tuple[str, FaultKind]] = Counter()
        """Partitions that the built-in rule decided after a fault, by selector name and fault."""
        self.last_fault: SelectorFault | None = None

    def choose(self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        """Choose a leader (broker index or NO_LEADER) for each of ``rows`` (k,). Return them as a new array (k,).

        ``unclean_allowed`` (k,) is 1 where an out-of-sync leader is permitted. The fallback is called at most once.
        Raises ShapeError if ``rows`` and ``unclean_allowed`` differ in length.
        """
        if len(rows) != len(unclean_allowed):
            raise ShapeError(f"{len(rows)} rows, {len(unclean_allowed)} unclean_allowed")
        if kind not in self._selectors or not len(rows):
            return self._fallback(cluster, kind, rows, unclean_allowed)
        name, selector, call = self._selectors[kind]
        if call is not None:
            leader = np.empty(len(rows), np.int32)
            if choose_natively(call, cluster, kind, rows, unclean_allowed, leader) == 0:
                return leader
            # Some choice violates a rule. The bulk path repeats the same choices and reports each fault.
        live = cluster.brokers.live
        batch, first = lazy_batch(cluster, kind, rows, unclean_allowed, live)
        try:
            leader = run_selector(name, selector, batch)
        except BatchFault as fault:
            self._note(fault, {fault.fault_kind: len(rows)})
            return self._fallback(cluster, kind, rows, unclean_allowed)
        finally:
            batch.close()
        if _selectors.count_violations(int(kind), rows, cluster.partitions, live, unclean_allowed, first, leader):
            batch_copy = election_batch(cluster, kind, rows, unclean_allowed)
            faulty = find_faults(batch_copy, leader)
            problem = _describe(cluster, batch_copy, leader, faulty)
            self._note(
                SelectorFault(name, problem), {fault_kind: len(positions) for fault_kind, positions in faulty.items()}
            )
            replaced = np.sort(np.concatenate(list(faulty.values())))
            leader[replaced] = self._fallback(cluster, kind, rows[replaced], unclean_allowed[replaced])
        return leader

    def _note(self, fault: SelectorFault, counts: Mapping[FaultKind, int]) -> None:
        self.last_fault = fault
        for fault_kind, count in counts.items():
            self.faults[fault.selector, fault_kind] += count
        _log.error("%s; the built-in rule decided instead", fault, exc_info=fault.__cause__)


def _native_call(selector: LeaderSelector) -> NativeCall | None:
    call = getattr(selector, "native", None)
    return call if isinstance(call, NativeCall) else None


def choose_natively(
    call: NativeCall, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8, leader: Int32
) -> int:
    """Let a native selector choose row by row into ``leader`` (k,); return how many choices violate a safety rule.

    It reads the fields of ``election_batch`` as const columns, since copying them takes longer than choosing. Only the
    liveness mask is a copy.
    """
    brokers = cluster.brokers
    live = brokers.live
    is_computed = kind in _COMPUTED_LISTS
    scratch = (np.empty(REPLICAS_MAX, np.int16), np.empty(REPLICAS_MAX, np.uint8)) if is_computed else None
    return _selectors.choose_leaders_native(
        call.function,
        call.user_data,
        int(kind),
        cluster.partitions,
        live,
        (brokers.ids, brokers.racks()[1], live.copy(), brokers.shutting_down),
        rows,
        unclean_allowed,
        scratch,
        leader,
    )


def run_selector(name: str, selector: LeaderSelector, batch: ElectionBatch) -> Int32:
    """Let a selector choose; return its choices, not validated, as a new array (k,).

    Raises BatchFault if it raises an exception (the cause), returns a value, changes the array's shape or dtype, or
    writes beside the array.
    """
    guarded = np.empty(len(batch) + 2, np.int32)
    guarded.fill(NO_LEADER)
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
    """Positions whose ``leader`` (k,) violates a safety rule, ascending, by the first rule violated.

    A leader is a candidate (in a PREFERRED election the first), is eligible, and is in sync unless ``unclean_allowed``
    (invariants I4, I6 and I7). NO_LEADER violates none.
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


def _describe(cluster: ClusterState, batch: ElectionBatch, leader: Int32, faulty: Mapping[FaultKind, Int64]) -> str:
    parts = []
    for fault_kind, positions in faulty.items():
        samples = [
            f"{cluster.name(int(batch.rows[position]))} → {_broker(batch, int(leader[position]))}"
            for position in positions[:SAMPLES]
        ]
        ellipsis = ", ..." if len(positions) > SAMPLES else ""
        parts.append(
            f"{fault_kind} for {len(positions)} of {counted(len(batch), 'partition')} ({', '.join(samples)}{ellipsis})"
        )
    return "; ".join(parts)


def _broker(batch: ElectionBatch, index: int) -> str:
    return f"broker {batch.broker_ids[index]}" if 0 <= index < len(batch.broker_ids) else f"broker index {index}"
