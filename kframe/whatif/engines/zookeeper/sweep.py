"""Every failure of a cluster in ZooKeeper mode: the outcomes of ``WhatIf.fail``, counted instead of played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Int64
from kframe.ports.progress import Progress
from kframe.snapshot import Snapshot
from kframe.whatif.engines.settings import assumptions_of, config_of, knows_min_insync
from kframe.whatif.engines.zookeeper.sweep_counts import FailureCounts, count_failures
from kframe.whatif.results.health import Skew
from kframe.whatif.results.release import ZOOKEEPER_RULES
from kframe.whatif.results.sweep import CONDITIONS_OF_SETTINGS, METRICS, Sweep

#: Counts of leaders that are evaluated at a time, so that they stay in the caches.
_LEADS_MAX: Final = 1 << 18
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
    """The results of all failures from the counts of a cluster. Cost O(b³) in array passes, some pairs each."""
    up = np.flatnonzero(counts.registered)
    groups = [np.flatnonzero(counts.rack == number) for number in range(len(counts.rack_names))]
    members = np.zeros((len(groups), len(counts.registered)), np.bool_)
    for number, group in enumerate(groups):
        members[number, group] = True
    alone = np.zeros((len(up), len(counts.registered)), np.bool_)
    alone[np.arange(len(up)), up] = True
    pairs = np.triu_indices(len(up) if counts.pairs is not None else 0, 1)
    parts = [
        _effects(counts, alone, counts.brokers[up], counts.broker_leads[up]),
        *([] if counts.pairs is None else _pair_effects(counts, up[pairs[0]], up[pairs[1]])),
        _effects(counts, members, counts.racks, counts.rack_leads),
    ]
    effects = [np.concatenate(column) for column in zip(*parts, strict=True)]
    ids, lengths = counts.broker_ids[up], (len(up), len(pairs[0]), len(groups))
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


def _pair_effects(counts: FailureCounts, first: Int64, second: Int64) -> Iterator[_Effects]:
    """The pairs of registered brokers, ``first`` below ``second`` (m,), in the order of ``counts.pairs``."""
    assert counts.pairs is not None
    count = len(counts.registered)
    pairs = max(_LEADS_MAX // max(count, 1), 1)
    for start in range(0, len(first), pairs):
        low, high = first[start : start + pairs], second[start : start + pairs]
        numbers = low * (2 * count - low - 1) // 2 + high - low - 1
        failing = np.zeros((len(low), count), np.bool_)
        failing[np.arange(len(low)), low] = failing[np.arange(len(low)), high] = True
        leads = counts.broker_leads[low] + counts.broker_leads[high]
        span = np.searchsorted(counts.pair_lead_keys, [numbers[0] * count, (numbers[-1] + 1) * count])
        keys, changes = counts.pair_lead_keys[slice(*span)], counts.pair_lead_changes[slice(*span)]
        leads[np.searchsorted(numbers, keys // count), keys % count] += changes
        yield _effects(counts, failing, counts.brokers[low] + counts.brokers[high] + counts.pairs[numbers], leads)
