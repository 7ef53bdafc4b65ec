"""The rules by which a controller treats plans, an object for each mode, and a plan beside a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np

from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.lists import distinct_values, same_lists
from kframe.model.plan import Plan
from kframe.plans.check.document import Change, PlannedPartition
from kframe.plans.check.findings import Check, Findings
from kframe.plans.file.read import Stamp
from kframe.snapshot import Snapshot
from kframe.whatif.results.release import ReleaseRecord

#: Partitions whose text is in memory at a time.
_LINES: Final = 1 << 14

Phase: TypeAlias = Literal["during", "after"]
Harm: TypeAlias = tuple[int, int | None, tuple[int, int, int]]
"""Stage, the id of the broker that fails or None, and partitions that are offline, under min ISR, and led uncleanly."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedPlan:
    """A plan beside what a snapshot has. Lists are of broker ids, a list a partition of the plan, empty where it is not
    known.

    ``rows`` (k,): rows of the snapshot, -1 where there is no such partition. ``topics`` (k,): indexes of topics in the
    snapshot, -1 where there is no such topic. ``current``: the replicas as they are;
    ``origin``: without those that are being added. ``adding`` and ``removing``: what the plan would copy and delete.
    ``valid``: partitions for which the plan could be carried out, by the ``rules`` of the cluster. ``one_rack`` (k,):
    partitions whose replicas are all to be in one rack, and not spread.
    """

    plan: Plan
    snapshot: Snapshot
    rows: Int32
    topics: Int32
    current: Ragged
    origin: Ragged
    adding: Ragged
    removing: Ragged
    valid: Bool
    rules: PlanRules
    one_rack: Bool

    @property
    def unchanged(self) -> Bool:
        """(k,) the plan wants exactly what is there."""
        return (self.rows >= 0) & same_lists(self.plan.targets.replicas, self.origin)

    @property
    def is_moving(self) -> Bool:
        """(k,) whether a reassignment of the partition is in progress."""
        moving, partitions = np.zeros(len(self.plan), np.bool_), self.snapshot.partitions
        for lists in (partitions.adding_replicas, partitions.removing_replicas):
            if lists is not None:
                moving |= (self.rows >= 0) & (np.append(lists.counts, 0)[self.rows] > 0)
        return moving

    def stamp(self) -> Stamp:
        """The stamp of the plan, for the cluster of the snapshot."""
        targets = self.plan.targets
        digest = hashlib.sha256()
        rank = np.empty(len(targets.names), np.int64)
        rank[sorted(range(len(rank)), key=targets.names.__getitem__)] = np.arange(len(rank))
        positions = distinct_values(targets.last_named())
        positions = positions[np.lexsort((targets.partition[positions], rank[targets.topic[positions]]))]
        for start in range(0, len(positions), _LINES):
            part = positions[start : start + _LINES]
            origin = self.origin.take(part)
            replicas, ends = list(map(str, origin.values.tolist())), pairwise(origin.offsets.tolist())
            names = map(targets.names.__getitem__, targets.topic[part].tolist())
            for name, partition, (first, end) in zip(names, targets.partition[part].tolist(), ends, strict=True):
                digest.update(f"{name}-{partition}:{','.join(replicas[first:end])}\n".encode())
        return Stamp(self.snapshot.cluster_id, self.snapshot.controller_epoch, digest.hexdigest())

    def partition_rows(self, *, changes_only: bool = False) -> Iterator[PlannedPartition]:
        """A row for each partition of the plan, in its order: present and planned replicas, and the moves."""
        targets, leader = self.plan.targets, self.snapshot.partitions.leader
        for position, kind in enumerate(self.kinds()):
            if changes_only and kind == "none":
                continue
            row = int(self.rows[position])
            yield PlannedPartition(
                topic=targets.names[targets.topic[position]],
                partition=int(targets.partition[position]),
                change=kind,
                replicas=None if row < 0 else self.current[position].tolist(),
                target=targets.replicas[position].tolist(),
                adding=self.adding[position].tolist(),
                removing=self.removing[position].tolist(),
                leader=None if row < 0 or leader is None else int(leader[row]),
                valid=bool(self.valid[position]),
            )

    def kinds(self) -> list[Change]:
        """In a word, what the plan does to each partition."""
        names = np.array(["unknown", "none", "order", "grow", "shrink", "move"])
        adds, removes = self.adding.counts > 0, self.removing.counts > 0
        kind = np.select([self.rows < 0, self.unchanged, ~adds & ~removes, ~removes, ~adds], range(5), 5)
        chosen: list[Change] = names[kind].tolist()
        return chosen


@dataclass(frozen=True, slots=True, eq=False)
class StagedChange:
    """A cluster before a plan, and with ``k`` reassignments of it in a phase: ``during`` the copy or ``after``.

    ``rows`` (k,) are those of the snapshots, ``stage`` (k,) ascends. ``added`` (k,) counts replicas that the plan adds.
    ``involved`` has the broker ids of each row, before and after. ``config`` is that of a what-if.
    """

    before: Snapshot
    after: Snapshot
    phase: Phase
    rows: Int32
    stage: Int32
    added: Int32
    involved: Ragged
    config: Mapping[str, object] | None


class PlanRules(Protocol):
    """How the controller of a cluster treats a plan."""

    @property
    def name(self) -> str:
        """The rules in words."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What they assume of the cluster, a sentence each."""

    def refused(self, targets: Ragged, adding: Ragged) -> Bool:
        """(k,) the partitions that get a broker which the controller refuses; lists of broker ids."""

    def findings(self, checked: CheckedPlan) -> list[Findings]:
        """The findings that depend on the mode."""

    def release_record(self, checked: CheckedPlan) -> ReleaseRecord | None:
        """The release of Kafka whose rules decide, and whether it matters for the plan. None in ZooKeeper mode."""

    def detail(self, checked: CheckedPlan, check: Check, position: int) -> str:
        """The text of such a finding about the partition at ``position`` of the plan."""

    def harm(self, change: StagedChange) -> Iterator[Harm]:
        """What the failure of each broker harms in a stage, and not before the plan. Cost O(k · r²)."""


def brokers_of(snapshot: Snapshot, *registered: bool | None) -> Int32:
    """Ids of the brokers of which the snapshot says one of ``registered``."""
    return np.array([broker.broker_id for broker in snapshot.brokers if broker.registered in registered], np.int32)
