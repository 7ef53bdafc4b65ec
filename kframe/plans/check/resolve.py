"""Check a plan alone and against a snapshot, without playing it: its errors, and the replicas that it would move.

All checks are array passes; only what is found becomes objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from kframe.model.arrays import Bool, Int32, Int64, Ragged, offsets_of
from kframe.model.lists import distinct_values, loads, members, repeated, same_lists
from kframe.model.plan import Plan
from kframe.model.topics import topic_name_problem
from kframe.plans.check.document import Change, PlannedPartition
from kframe.plans.check.findings import Check, Findings
from kframe.plans.file.observers import observer_growth
from kframe.plans.file.read import Stamp
from kframe.snapshot import Snapshot
from kframe.whatif.results.outcome import ZOOKEEPER_RULES

if TYPE_CHECKING:
    from kframe.plans.check.kraft_targets import KraftTargets


#: Partitions whose text is in memory at a time.
_LINES: Final = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class CheckedPlan:
    """A plan beside what a snapshot has. Lists are of broker ids, a list a partition of the plan, empty where it is not
    known.

    ``rows`` (k,): rows of the snapshot, -1 where there is no such partition. ``topics`` (k,): indexes of topics in the
    snapshot, -1 where there is no such topic. ``current``: the replicas as they are;
    ``origin``: without those that are being added. ``adding`` and ``removing``: what the plan would copy and delete.
    ``valid``: partitions for which the plan could be carried out. ``kraft``: the brokers as a KRaft controller sees
    them; None for a ZooKeeper cluster.
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
    kraft: KraftTargets | None

    @property
    def rules(self) -> str:
        """The rules that the checks follow, in words."""
        return ZOOKEEPER_RULES if self.kraft is None else self.kraft.rules

    @property
    def unchanged(self) -> Bool:
        """(k,) the plan wants exactly what is there."""
        return (self.rows >= 0) & same_lists(self.plan.targets.replicas, self.origin)

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


def resolve_plan(plan: Plan, snapshot: Snapshot) -> CheckedPlan:
    """Find the plan's partitions in a snapshot."""
    topics, partitions, targets = snapshot.topics, snapshot.partitions, plan.targets
    numbers = {name: index for index, name in enumerate(topics.names)}
    topic = np.array([numbers.get(name, -1) for name in targets.names], np.int32)[targets.topic]
    sizes, firsts = np.append(topics.partition_counts, 0)[topic], np.append(topics.first_rows, 0)[topic]
    known = (targets.partition >= 0) & (targets.partition < sizes)
    rows = np.where(known, firsts + targets.partition, -1).astype(np.int32)
    current = lists_at(partitions.replicas, rows)
    origin = current
    if partitions.adding_replicas is not None:
        origin = current.keep(~members(current, lists_at(partitions.adding_replicas, rows)))
    begun = np.repeat(known, targets.replicas.counts)
    adding = targets.replicas.keep(~members(targets.replicas, origin) & begun)
    removing = origin.keep(~members(origin, targets.replicas))
    kraft = None
    if snapshot.is_kraft:
        from kframe.plans.check.kraft_targets import KraftTargets

        kraft = KraftTargets.of(snapshot)
        refused = targets.replicas.any(~is_among(targets.replicas, kraft.assignable))
    else:
        refused = adding.any(~is_among(adding, _brokers(snapshot, True, None)))
    valid = known & _well_formed(plan) & ~refused
    valid &= True if topics.deleting is None else np.append(topics.deleting, 0)[topic] == 0
    return CheckedPlan(plan, snapshot, rows, topic, current, origin, adding, removing, valid, kraft)


def check_alone(plan: Plan) -> list[Findings]:
    """The errors of a plan that do not depend on the cluster."""
    targets = plan.targets
    lists = targets.replicas
    bad_names = [index for index, name in enumerate(targets.names) if topic_name_problem(name) is not None]
    findings = [
        findings_at(Check.TOPIC_NAME, np.isin(targets.topic, bad_names)),
        findings_at(Check.PARTITION_NUMBER, targets.partition < 0),
        Findings(Check.DUPLICATE_PARTITION, plan.repeated_positions()),
        findings_at(Check.EMPTY_REPLICAS, lists.counts == 0),
        findings_at(Check.DUPLICATE_BROKER, lists.any(repeated(lists))),
        findings_at(Check.BROKER_ID, lists.any(lists.values < 0)),
        findings_at(Check.LOG_DIRS, plan.log_dirs_differ),
        findings_at(Check.OBSERVERS, plan.misplaced_observers()),
        Findings(Check.UNEVEN_REPLICATION, _uneven(plan), of_topics=True),
    ]
    if len(plan) == 0:
        findings.append(Findings(Check.EMPTY_PLAN, targets.topic))
    return [finding for finding in findings if len(finding)]


def check_against(checked: CheckedPlan) -> list[Findings]:
    """What is wrong, or worth knowing, with a plan for this cluster."""
    plan, snapshot, rows = checked.plan, checked.snapshot, checked.rows
    targets, known = plan.targets, rows >= 0
    names = set(snapshot.topics.names)
    topic_known = np.array([name in names for name in targets.names], np.bool_)[targets.topic]
    lists, adding = targets.replicas, checked.adding
    growth = lists.counts - checked.origin.counts
    moved = known & ~checked.unchanged
    findings = [
        findings_at(Check.UNKNOWN_TOPIC, ~topic_known),
        findings_at(Check.TOPIC_BEING_DELETED, _deleting(checked)),
        findings_at(Check.UNKNOWN_PARTITION, topic_known & ~known),
        findings_at(Check.UNKNOWN_BROKER, lists.any(~is_among(lists, _brokers(snapshot, True, False, None)))),
        findings_at(Check.NO_LEADER, moved & _leaderless(checked)),
        findings_at(Check.ALREADY_MOVING, known & is_moving(checked)),
        findings_at(Check.FEWER_OBSERVERS, known & (observer_growth(plan, snapshot, rows) < 0)),
        findings_at(Check.FEWER_REPLICAS, known & (growth < 0)),
        findings_at(Check.RACKS, known & _crowded(checked)),
        findings_at(Check.MORE_REPLICAS, known & (growth > 0)),
        Findings(Check.PARTIAL_TOPIC, _partial(checked), of_topics=True),
        findings_at(Check.ORDER_ONLY, moved & (adding.counts == 0) & (checked.removing.counts == 0)),
    ]
    return [finding for finding in findings if len(finding)]


def check_zookeeper_rules(checked: CheckedPlan) -> list[Findings]:
    """The findings that depend on ZooKeeper rules."""
    lists, adding, dead = checked.plan.targets.replicas, checked.adding, _brokers(checked.snapshot, False)
    moved = (checked.rows >= 0) & ~checked.unchanged
    stays = lists.keep(members(lists, checked.origin))
    findings = [
        findings_at(Check.DEAD_BROKER, adding.any(is_among(adding, dead))),
        findings_at(Check.DEAD_BROKER_STAYS, moved & stays.any(is_among(stays, dead))),
        findings_at(Check.NO_OP, checked.unchanged),
    ]
    return [finding for finding in findings if len(finding)]


def replica_loads(checked: CheckedPlan) -> tuple[Int32, dict[str, Int64]]:
    """Broker ids, and by name what each carries: replicas and preferred leaders before and after, copied, deleted.

    Invalid partitions are left unchanged.
    """
    ids = np.array([facts.broker_id for facts in checked.snapshot.brokers], np.int32)
    lists, partitions = checked.plan.targets.replicas, checked.snapshot.partitions
    per_value = {name: checked.valid[lists_.owners] for name, lists_ in (("to", lists), ("from", checked.current))}
    replicas, preferred = loads(partitions.replicas, ids), loads(_firsts(partitions.replicas), ids)
    valid = np.flatnonzero(checked.valid)
    return ids, {
        "replicas_before": replicas,
        "copied": loads(checked.adding.take(valid), ids),
        "deleted": loads(checked.current.keep(~members(checked.current, lists)).take(valid), ids),
        "replicas_after": replicas
        + loads(lists.keep(per_value["to"]), ids)
        - loads(checked.current.keep(per_value["from"]), ids),
        "preferred_leaders_before": preferred,
        "preferred_leaders_after": preferred
        + loads(_firsts(lists.take(valid)), ids)
        - loads(_firsts(checked.current.take(valid)), ids),
    }


def brokers_in(checked: CheckedPlan, position: int, *registered: bool | None) -> list[int]:
    """The brokers (ids) of one target list whose registration state in the snapshot is one of ``registered``."""
    among = set(_brokers(checked.snapshot, *registered).tolist())
    return [broker_id for broker_id in checked.plan.targets.replicas[position].tolist() if broker_id in among]


def racks_of(checked: CheckedPlan, position: int) -> list[str | None]:
    """The rack of each broker of one target list."""
    racks = {facts.broker_id: facts.rack for facts in checked.snapshot.brokers}
    return [racks.get(broker_id) for broker_id in checked.plan.targets.replicas[position].tolist()]


def findings_at(check: Check, mask: Bool) -> Findings:
    """The finding at each partition of the plan that ``mask`` (k,) marks."""
    return Findings(check, np.flatnonzero(mask).astype(np.int32))


def _well_formed(plan: Plan) -> Bool:
    lists = plan.targets.replicas
    well_formed: Bool = (lists.counts > 0) & ~lists.any(repeated(lists) | (lists.values < 0))
    well_formed[plan.repeated_positions()] = False
    return well_formed


def _uneven(plan: Plan) -> Int32:
    """Topics whose partitions in the plan differ in replication factor."""
    topic, widths, topics = plan.targets.topic, plan.targets.replicas.counts, len(plan.targets.names)
    factor_min, factor_max = np.full(topics, np.iinfo(np.int32).max, np.int32), np.zeros(topics, np.int32)
    np.minimum.at(factor_min, topic, widths)
    np.maximum.at(factor_max, topic, widths)
    return np.flatnonzero(factor_min < factor_max).astype(np.int32)


def _partial(checked: CheckedPlan) -> Int32:
    """Topics of which the plan has some partitions, but not all."""
    targets, topics = checked.plan.targets, checked.snapshot.topics
    sizes = dict(zip(topics.names, topics.partition_counts.tolist(), strict=True))
    partition_counts = np.array([sizes.get(name, 0) for name in targets.names], np.int64)
    first_positions = np.unique(checked.rows[checked.rows >= 0], return_index=True)[1]
    topic = targets.topic[np.flatnonzero(checked.rows >= 0)][first_positions]
    planned = np.bincount(topic, minlength=len(targets.names))
    return np.flatnonzero((planned > 0) & (planned < partition_counts)).astype(np.int32)


def _deleting(checked: CheckedPlan) -> Bool:
    topics, targets = checked.snapshot.topics, checked.plan.targets
    if topics.deleting is None:
        return np.zeros(len(targets), np.bool_)
    names = {topics.names[index] for index in np.flatnonzero(topics.deleting).tolist()}
    return np.array([name in names for name in targets.names], np.bool_)[targets.topic]


def _leaderless(checked: CheckedPlan) -> Bool:
    leader = checked.snapshot.partitions.leader
    if leader is None:
        return np.zeros(len(checked.plan), np.bool_)
    dead = _brokers(checked.snapshot, False)
    current = np.append(leader, -1)[checked.rows]
    leaderless: Bool = (checked.rows >= 0) & ((current < 0) | np.isin(current, dead))
    return leaderless


def is_moving(checked: CheckedPlan) -> Bool:
    """(k,) whether a reassignment of the partition is in progress."""
    moving = np.zeros(len(checked.plan), np.bool_)
    partitions = checked.snapshot.partitions
    for lists in (partitions.adding_replicas, partitions.removing_replicas):
        if lists is not None:
            moving |= (checked.rows >= 0) & (np.append(lists.counts, 0)[checked.rows] > 0)
    return moving


def _crowded(checked: CheckedPlan) -> Bool:
    """Whether a target spans fewer racks than it could, as far as all of its brokers' racks are known."""
    facts = checked.snapshot.brokers
    numbers = {
        rack: number for number, rack in enumerate(sorted({broker.rack for broker in facts if broker.rack is not None}))
    }
    lists = checked.plan.targets.replicas
    if len(numbers) < 2 or not len(lists.values):
        return np.zeros(len(lists), np.bool_)
    ids = np.array([broker.broker_id for broker in facts], np.int32)
    order = np.argsort(ids)
    racks = np.array([-1 if broker.rack is None else numbers[broker.rack] for broker in facts], np.int32)[order]
    indexes = np.minimum(np.searchsorted(ids[order], lists.values), len(ids) - 1)
    rack = np.where(ids[order][indexes] == lists.values, racks[indexes], -1)
    pairs = distinct_values(lists.owners * np.int64(len(numbers)) + np.maximum(rack, 0))
    spanned = np.bincount(pairs // len(numbers), minlength=len(lists))
    crowded: Bool = ~lists.any(rack < 0) & (spanned < np.minimum(lists.counts, len(numbers)))
    return crowded


def _brokers(snapshot: Snapshot, *registered: bool | None) -> Int32:
    """Ids of the brokers of which the snapshot says one of ``registered``."""
    return np.array([broker.broker_id for broker in snapshot.brokers if broker.registered in registered], np.int32)


def is_among(lists: Ragged, ids: Int32) -> Bool:
    """For each of ``lists.values``: whether it is one of ``ids``."""
    return np.asarray(np.isin(lists.values, ids), np.bool_)


def lists_at(lists: Ragged, rows: Int32) -> Ragged:
    """The lists of these rows, an empty one for -1."""
    counts = np.where(rows >= 0, lists.counts[rows], 0) if len(lists) else np.zeros(len(rows), np.int32)
    offsets = offsets_of(counts)
    return Ragged(offsets, lists.take(rows[rows >= 0]).values)


def _firsts(lists: Ragged) -> Ragged:
    """The first value of each list, as lists."""
    return lists.keep(lists.first)
