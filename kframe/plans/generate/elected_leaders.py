"""The preferred leaders that a leader selector elects while all brokers are alive and all replicas in sync."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.core.selectors.leader_selection import BatchFault, find_faults, run_selector
from kframe.errors import PluginError
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.model.lists import members
from kframe.plans.generate.request import PlanRequest
from kframe.snapshot import Snapshot


def elected_leaders(
    snapshot: Snapshot,
    request: PlanRequest,
    selector: LeaderSelector,
    original: Ragged,
    rows: Int32,
    racks: tuple[tuple[str, ...], Int32],
    ids: Int32,
) -> Int32:
    """(n,) the leader of each of ``rows`` by an OFFLINE election, an index of ``ids``; NO_LEADER elsewhere.

    ``original`` has the replicas as indexes, ``racks`` the names of racks and the rack of each broker. Observers and
    replicas on excluded brokers may not lead. A choice that breaks a safety rule is none. Raises PluginError if the
    selector fails.
    """
    leaders = np.full(len(original), NO_LEADER, np.int32)
    if not len(rows):
        return leaders
    candidates = original.take(rows)
    eligible = ~np.isin(ids, request.exclude_brokers)[candidates.values]
    if (observers := snapshot.partitions.observers) is not None:
        eligible &= ~members(Ragged(candidates.offsets, ids[candidates.values]), observers.take(rows))
    batch = _batch(snapshot, candidates, eligible.astype(np.uint8), rows, racks, ids, request.seed)
    try:
        elected = run_selector(selector.name, selector, batch)
    except BatchFault as fault:
        raise PluginError(str(fault)) from fault
    for positions in find_faults(batch, elected).values():
        elected[positions] = NO_LEADER
    leaders[rows] = elected
    return leaders


def _batch(
    snapshot: Snapshot,
    candidates: Ragged,
    eligible: UInt8,
    rows: Int32,
    racks: tuple[tuple[str, ...], Int32],
    ids: Int32,
    seed: int,
) -> ElectionBatch:
    """The election of these rows, in which each eligible candidate may lead and is in the ISR."""
    partitions, topics = snapshot.partitions, snapshot.topics
    epoch = np.zeros(len(rows), np.int32) if partitions.leader_epoch is None else partitions.leader_epoch[rows]
    isr = candidates.keep(eligible != 0)
    columns: Mapping[str, NDArray[Any]] = {
        "rows": rows.copy(),
        "topic": topics.topic_of_rows()[rows].astype(np.int32),
        "partition": topics.partition_of_rows()[rows].astype(np.int32),
        "eligible": eligible,
        "in_sync": eligible,
        "may_lead": eligible,
        "leader": _indexes(partitions.leader, rows, ids),
        "leader_epoch": np.asarray(epoch, np.int32),
        "unclean_allowed": np.zeros(len(rows), np.uint8),
        "broker_ids": ids.copy(),
        "broker_rack": racks[1].copy(),
        "broker_live": np.ones(len(ids), np.uint8),
        "broker_shutting_down": np.zeros(len(ids), np.uint8),
    }
    for column in (*columns.values(), candidates.offsets, candidates.values, isr.offsets, isr.values):
        column.setflags(write=False)
    return ElectionBatch(
        kind=ElectionKind.OFFLINE,
        candidates=candidates,
        isr=isr,
        racks=racks[0],
        topic_names=tuple(topics.names),
        seed=seed,
        **columns,
    )


def _indexes(leader: Int32 | None, rows: Int32, ids: Int32) -> Int32:
    """(k,) the present leaders as indexes of ``ids``, NO_LEADER where there is none or it is unknown."""
    if leader is None:
        return np.full(len(rows), NO_LEADER, np.int32)
    positions = np.minimum(np.searchsorted(ids, leader[rows]), len(ids) - 1)
    return np.where(ids[positions] == leader[rows], positions, NO_LEADER).astype(np.int32)
