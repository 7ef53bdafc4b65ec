"""Leader selectors of plugins for KRaft clusters, with the safety rules of KRaft.

A selector of kind OFFLINE chooses where a partition gets another leader, of kind PREFERRED where the preferred replica
is elected. It is not called where the leader stays. Candidates are the replicas of the target assignment. In sync are
the members of the ISR, or of the ELR if the ISR is empty. Where a choice violates a rule, the built-in rule decides.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.replication.leader_selection import Candidates, acceptable_replicas, choose_leaders
from kframe.core.selectors.leader_selection import BatchFault, FaultKind, find_faults, run_selector
from kframe.kernels import _selectors
from kframe.model.arrays import Bool, Int32, Ragged, UInt8
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.lists import members
from kframe.model.texts import counted

_log = logging.getLogger("kframe.selection")


class SelectorSelection:
    """Implements ``LeaderSelection`` with the selector of each kind of election, or else the built-in rule."""

    def __init__(self, selectors: Mapping[ElectionKind, LeaderSelector]) -> None:
        self._selectors = dict(selectors)
        self.faults: Counter[tuple[str, FaultKind]] = Counter()
        """Partitions that the built-in rule decided after a fault, by selector name and fault."""

    def choose(self, metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        """See ``LeaderSelection``."""
        leader, unclean = choose_leaders(metadata, candidates)
        stored = candidates.stored.leader
        preferred = (candidates.kinds == KraftElection.PREFERRED) & (leader == _first(candidates.replicas))
        # Only the last-known leader may lead a partition whose configuration forbids unclean elections.
        open_choice = (leader != stored) & (leader != NO_LEADER)
        open_choice &= (unclean == 0) | (candidates.kinds == KraftElection.UNCLEAN)
        for kind, positions in (
            (ElectionKind.OFFLINE, np.flatnonzero(open_choice & ~preferred)),
            (ElectionKind.PREFERRED, np.flatnonzero(open_choice & preferred)),
        ):
            if kind in self._selectors and len(positions):
                batch = _batch(metadata, candidates, kind, positions.astype(np.int32), unclean)
                leader[positions] = self._choose(self._selectors[kind], batch, leader[positions])
                unclean[positions] &= leader[positions] != NO_LEADER
        return leader, unclean

    def _choose(self, selector: LeaderSelector, batch: ElectionBatch, builtin: Int32) -> Int32:
        """The selector's choices, with those of the built-in rule where they violate a safety rule."""
        try:
            chosen = run_selector(selector.name, selector, batch)
        except BatchFault as fault:
            self.faults[selector.name, fault.fault_kind] += len(batch)
            _log.error("%s; the built-in rule decided instead", fault, exc_info=fault.__cause__)
            return builtin
        for fault_kind, positions in find_faults(batch, chosen).items():
            self.faults[selector.name, fault_kind] += len(positions)
            partitions = f"{len(positions)} of {counted(len(batch), 'partition')}"
            text = f"leader selector {selector.name!r}: {fault_kind} for {partitions}"
            _log.error("%s; the built-in rule decided instead", text)
            chosen[positions] = builtin[positions]
        return chosen


def _batch(
    metadata: ClusterMetadata, candidates: Candidates, kind: ElectionKind, positions: Int32, unclean: UInt8
) -> ElectionBatch:
    """The view of an election for a selector: copies of columns."""
    rows, p, brokers = candidates.rows[positions], metadata.partitions, metadata.brokers
    replicas, isr, elr = (lists.take(positions) for lists in (candidates.replicas, candidates.isr, candidates.elr))
    stored, starts = candidates.stored.replicas.take(positions), candidates.stored.starts[positions]
    eligible = members(replicas, stored.keep(acceptable_replicas(metadata, starts, stored, candidates.active) != 0))
    in_sync = members(replicas, isr) | (members(replicas, elr) & (isr.counts == 0)[replicas.owners])
    allowed: Bool = unclean[positions] != 0
    may_lead = eligible & (in_sync | allowed[replicas.owners])
    if kind is ElectionKind.PREFERRED:
        may_lead &= replicas.first
    racks, rack_numbers = _racks(metadata)
    return ElectionBatch(
        kind=kind,
        rows=_frozen(rows),
        topic=_frozen(p.topic[rows]),
        partition=_frozen(p.partition[rows]),
        candidates=Ragged(_frozen(replicas.offsets), _frozen(replicas.values)),
        eligible=_frozen(eligible.astype(np.uint8)),
        in_sync=_frozen(in_sync.astype(np.uint8)),
        may_lead=_frozen(may_lead.astype(np.uint8)),
        isr=Ragged(_frozen(isr.offsets), _frozen(isr.values)),
        leader=_frozen(p.leaders_of(rows)),
        leader_epoch=_frozen(p.leader_epoch[rows]),
        unclean_allowed=_frozen(allowed.astype(np.uint8)),
        broker_ids=_frozen(brokers.ids.copy()),
        broker_rack=_frozen(rack_numbers),
        broker_live=_frozen(candidates.active.copy()),
        broker_shutting_down=_frozen(_shutting_down(metadata)),
        racks=racks,
        topic_names=tuple(metadata.topics.names),
        seed=_selectors.batch_seed(int(kind), rows, p.topic, p.partition, p.leader_epoch),
    )


def _racks(metadata: ClusterMetadata) -> tuple[tuple[str, ...], Int32]:
    """Rack names, and (b,) the number of each broker's rack or -1."""
    registrations, brokers = metadata.brokers.registrations, metadata.brokers
    names = sorted({stored.rack for stored in registrations.values() if stored.rack is not None})
    numbers = np.full(len(brokers), -1, np.int32)
    for broker_id, stored in registrations.items():
        if stored.rack is not None:
            numbers[brokers.index_of(broker_id)] = names.index(stored.rack)
    return tuple(names), numbers


def _shutting_down(metadata: ClusterMetadata) -> UInt8:
    marks = np.zeros(len(metadata.brokers), np.uint8)
    for broker_id, stored in metadata.brokers.registrations.items():
        marks[metadata.brokers.index_of(broker_id)] = stored.in_controlled_shutdown and not stored.fenced
    return marks


def _first(lists: Ragged) -> Int32:
    """(k,) the first value of each list, or -1."""
    first = np.full(len(lists), NO_LEADER, np.int32)
    filled = lists.counts > 0
    first[filled] = lists.values[lists.offsets[:-1][filled]]
    return first


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
