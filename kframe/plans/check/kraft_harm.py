"""What the failures of brokers harm in a stage of a plan, by the rules of a KRaft controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Final

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.model.arrays import Int32, UInt8
from kframe.plans.check.rules import Harm, StagedChange
from kframe.whatif.engines.kraft import failed_rows
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.kraft.failed_rows import FailureCases, first_partitions, play_cases

_BITS: Final = (failed_rows.OFFLINE, failed_rows.UNDER_MIN_ISR, failed_rows.UNCLEAN_ELECTED)


@dataclass(slots=True)
class _DuringContext(KraftContext):
    """A context in which replicas that are being added do not count for the effective ``min.insync.replicas``."""

    minimum: Int32 = field(default_factory=lambda: np.empty(0, np.int32))

    def min_isr(self, rows: Int32) -> Int32:
        """See ``KraftContext``."""
        return self.minimum[rows]


def new_harm(change: StagedChange) -> Iterator[Harm]:
    """See ``PlanRules.harm``. The settings of a topic are those of its partitions in the same phase."""
    without_directories = replace(change.before, partitions=replace(change.before.partitions, directories=None))
    before, after = (KraftEngine(snapshot, change.config).context for snapshot in (without_directories, change.after))
    if change.phase == "during":
        values = {item.name: getattr(after, item.name) for item in fields(KraftContext)}
        minimum = before.min_isr(np.arange(len(change.before), dtype=np.int32))
        after = _DuringContext(**values, minimum=minimum)
    registered = [id_ for id_, stored in before.metadata.brokers.registrations.items() if not stored.fenced]
    failing = change.involved.keep(np.isin(change.involved.values, registered))
    rows, owners = change.rows, failing.owners
    none = _new_bits(before, after, rows, [np.empty((len(rows), 0), np.int32)] * 2)
    leaving = [
        np.array(context.metadata.brokers.indexes_of(failing.values.tolist()), np.int32).reshape(-1, 1)
        for context in (before, after)
    ]
    bits = _new_bits(before, after, rows[owners], leaving) & ~none[owners]
    ids = [None, *(facts.broker_id for facts in change.before.brokers)]
    line = np.searchsorted(np.array(ids[1:], np.int32), failing.values) + 1
    stage = np.concatenate([change.stage, change.stage[owners]]).astype(np.int64)
    lines = np.concatenate([np.zeros(len(rows), np.int64), line])
    keys, inverse = np.unique(stage * len(ids) + lines, return_inverse=True)
    all_bits = np.concatenate([none, bits])
    counts = [np.bincount(inverse[(all_bits & bit) != 0], minlength=len(keys)).tolist() for bit in _BITS]
    for key, offline, under, elected in zip(keys.tolist(), *counts, strict=True):
        yield key // len(ids), ids[key % len(ids)], (offline, under, elected)


def _new_bits(before: KraftContext, after: KraftContext, rows: Int32, leaving: list[Int32]) -> UInt8:
    """The bits of each case that it has after, but not before."""
    flags = [
        play_cases(context, FailureCases(rows, brokers), first_partitions(context)).flags
        for context, brokers in zip((before, after), leaving, strict=True)
    ]
    new: UInt8 = flags[1] & ~flags[0]
    return new
