"""The rules of a ZooKeeper controller for plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kframe import kernels
from kframe.model.arrays import Bool, Ragged
from kframe.model.lists import members
from kframe.model.texts import ids_text
from kframe.model.topics import UNSET
from kframe.plans.check.findings import Check, Findings
from kframe.plans.check.rules import CheckedPlan, Harm, StagedChange, brokers_of
from kframe.snapshot import Snapshot
from kframe.whatif.engines.settings import config_of
from kframe.whatif.results.release import ZOOKEEPER_RULES

#: The most counters of stages and brokers that are held at a time.
_COUNTERS: Final = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class ZookeeperRules:
    """Implements ``PlanRules``: added brokers must be registered."""

    snapshot: Snapshot

    @property
    def name(self) -> str:
        """See ``PlanRules``."""
        return ZOOKEEPER_RULES

    @property
    def assumptions(self) -> tuple[str, ...]:
        """See ``PlanRules``."""
        return self.snapshot.assumptions

    def refused(self, targets: Ragged, adding: Ragged) -> Bool:
        """See ``PlanRules``."""
        return adding.any(~np.isin(adding.values, brokers_of(self.snapshot, True, None)))

    def findings(self, checked: CheckedPlan) -> list[Findings]:
        """See ``PlanRules``."""
        lists, adding, dead = checked.plan.targets.replicas, checked.adding, brokers_of(self.snapshot, False)
        moved = (checked.rows >= 0) & ~checked.unchanged
        stays = lists.keep(members(lists, checked.origin))
        return [
            Findings.at(Check.DEAD_BROKER, adding.any(np.isin(adding.values, dead))),
            Findings.at(Check.DEAD_BROKER_STAYS, moved & stays.any(np.isin(stays.values, dead))),
            Findings.at(Check.NO_OP, checked.unchanged & ~checked.plan.names_directories()),
        ]

    def release_record(self, checked: CheckedPlan) -> None:
        """See ``PlanRules``."""

    def detail(self, checked: CheckedPlan, check: Check, position: int) -> str:
        """See ``PlanRules``."""
        target, adding = checked.plan.targets.replicas[position], checked.adding[position]
        dead = target[np.isin(target, brokers_of(self.snapshot, False))]
        is_added = np.isin(dead, adding)
        if check is Check.DEAD_BROKER:
            return f"broker {ids_text(dead[is_added])} is to be added, but is not registered"
        stays = ids_text(dead[~is_added])
        return f"broker {stays} stays, but is not registered: complete only while it is in the ISR"

    def harm(self, change: StagedChange) -> Iterator[Harm]:
        """See ``PlanRules``.

        Replicas that are being added do not count for the effective ``min.insync.replicas`` (Kafka 3.9
        ``OngoingReassignmentState.replicationFactor``).
        """
        settings, rows = config_of(change.before, change.config), change.rows
        before, after = change.before.to_cluster(), change.after.to_cluster()
        topics, topic = before.topics, before.partitions.topic[rows]
        min_isr = np.where(topics.min_insync == UNSET, settings["min.insync.replicas"], topics.min_insync)[topic]
        unclean = np.where(topics.unclean == UNSET, settings.unclean_by_default, topics.unclean == 1)[topic]
        registered, ids = before.brokers.registered, [*before.brokers.ids.tolist(), None]
        columns: list[Any] = []
        for cluster in (before, after):
            p = cluster.partitions
            effective_replicas = p.replica_count[rows].astype(np.int32)
            if cluster is after and change.phase == "during":
                effective_replicas -= change.added
            columns += [
                p.leader[rows],
                p.slot_start[rows],
                p.replica_count[rows],
                p.isr_count[rows],
                p.replica,
                p.isr,
                np.minimum(min_isr, effective_replicas).astype(np.int32),
            ]
        count_harmed: Any = kernels.count_harmed
        stages, rack = int(change.stage.max(initial=-1)) + 1, np.full(len(registered), -1, np.int32)
        step = max(_COUNTERS // (len(registered) + 1), 1)
        for first in range(0, stages, step):
            part = slice(*np.searchsorted(change.stage, [first, first + step]))
            harm = np.zeros((min(step, stages - first), len(registered) + 1, 3), np.int32)
            sliced = [column if name in (4, 5, 11, 12) else column[part] for name, column in enumerate(columns)]
            stage = change.stage[part] - np.int32(first)
            count_harmed(stage, *sliced, unclean[part].astype(np.uint8), registered, rack, harm)
            for number, broker in zip(*np.nonzero(harm.any(axis=2)), strict=True):
                offline, under, elected = harm[number, broker].tolist()
                yield first + int(number), ids[broker], (offline, under, elected)
