"""Every failure of a cluster in ZooKeeper mode: the outcomes of ``WhatIf.fail``, counted instead of played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Int64
from kframe.ports.progress import Progress
from kframe.snapshot import Snapshot
from kframe.whatif.engines.settings import assumptions_of, config_of, knows_min_insync
from kframe.whatif.engines.zookeeper.sweep_counts import FailureCounts, count_failures
from kframe.whatif.results.health import Skew
from kframe.whatif.results.outcome import ZOOKEEPER_RULES
from kframe.whatif.results.sweep import CONDITIONS_OF_SETTINGS, METRICS, Sweep

#: (m, 9) counts, and (m,) largest and mean loads of m failures.
_Effects: TypeAlias = tuple[Int32, Int32, NDArray[np.float64]]


def sweep_zookeeper(
    snapshot: Snapshot, config: Mapping[str, object] | None, *, depth: int, racks: bool, progress: Progress
) -> Sweep:
    """See ``kframe.whatif.sweep``."""
    counts = count_failures(snapshot, config_of(snapshot, config), depth=depth, racks=racks, progress=progress)
    return sweep_of(
        counts,
        configs_known=knows_min_insync(snapshot.topics, config),
        assumptions=assumptions_of(snapshot, config),
    )


def sweep_of(counts: FailureCounts, *, configs_known: bool = True, assumptions: tuple[str, ...] = ()) -> Sweep:
    """The results of all failures from the counts of a cluster. Cost O(b³) in array passes, one broker's pairs each."""
    up = np.flatnonzero(counts.registered)
    groups = [np.flatnonzero(counts.rack == number) for number in range(len(counts.rack_names))]
    members = np.zeros((len(groups), len(counts.registered)), np.bool_)
    for number, group in enumerate(groups):
        members[number, group] = True
    alone = np.zeros((len(up), len(counts.registered)), np.bool_)
    alone[np.arange(len(up)), up] = True
    parts = [
        _effects(counts, alone, counts.brokers[up], counts.broker_leads[up]),
        *([] if counts.pairs is None else (_pairs_with(counts, up, position) for position in range(len(up) - 1))),
        _effects(counts, members, counts.racks, counts.rack_leads),
    ]
    effects = [np.concatenate(column) for column in zip(*parts, strict=True)]
    ids, pairs = counts.broker_ids[up], np.triu_indices(len(up) if counts.pairs is not None else 0, 1)
    lengths = (len(up), len(pairs[0]), len(groups))
    no_broker = np.full(len(groups), -1, np.int32)
    return Sweep(
        kind=np.repeat(np.arange(3, dtype=np.uint8), lengths),
        first=np.concatenate([ids, ids[pairs[0]], no_broker]),
        second=np.concatenate([np.full(len(up), -1, np.int32), ids[pairs[1]], no_broker]),
        rack=np.concatenate([np.full(lengths[0] + lengths[1], -1, np.int32), np.arange(len(groups), dtype=np.int32)]),
        failed=np.repeat(np.append([1, 2], members.sum(axis=1)).astype(np.int32), (*lengths[:2], *[1] * len(groups))),
        counts=effects[0],
        leaders_max=effects[1],
        leaders_mean=effects[2],
        before={
            name: None if name in CONDITIONS_OF_SETTINGS and not configs_known else value
            for name, value in zip(METRICS, counts.totals[0].tolist(), strict=True)
            if name in ("offline", "under_min_isr", "at_min_isr", "needs_unclean_election")
        },
        before_skew=Skew.of(counts.leads[0, up]),
        rack_names=counts.rack_names,
        rack_brokers=tuple(tuple(counts.broker_ids[group].tolist()) for group in groups),
        brokers=tuple(ids.tolist()),
        configs_known=configs_known,
        rules=ZOOKEEPER_RULES,
        assumptions=assumptions,
    )


def _effects(counts: FailureCounts, failing: Bool, added_counts: Int32, added_leads: Int32) -> _Effects:
    """The effects of failures. ``failing`` (m, b) marks failed brokers. The other arguments are added to the counts
    without a failure."""
    leads = counts.leads[1] + added_leads
    if counts.deleting_topics.topics:
        leads -= counts.deleting_topics.resigned(failing)
    leads[failing] = 0
    remaining = np.count_nonzero(counts.registered) - failing.sum(axis=1)
    mean = leads.sum(axis=1) / np.maximum(remaining, 1)
    return counts.totals[1] + added_counts, leads.max(axis=1, initial=0), mean


def _pairs_with(counts: FailureCounts, up: Int64, position: int) -> _Effects:
    """The pairs of a registered broker with those after it."""
    assert counts.pairs is not None
    count, broker, others = len(counts.registered), up[position], up[position + 1 :]
    numbers = broker * (2 * count - broker - 1) // 2 + others - broker - 1
    failing = np.zeros((len(others), count), np.bool_)
    failing[:, broker] = failing[np.arange(len(others)), others] = True
    leads = counts.broker_leads[broker] + counts.broker_leads[others]
    span = np.searchsorted(counts.pair_lead_keys, [numbers[0] * count, (numbers[-1] + 1) * count])
    keys, changes = counts.pair_lead_keys[slice(*span)], counts.pair_lead_changes[slice(*span)]
    leads[np.searchsorted(numbers, keys // count), keys % count] += changes
    return _effects(counts, failing, counts.brokers[broker] + counts.brokers[others] + counts.pairs[numbers], leads)
