"""Check a plan alone and against a snapshot, without playing it: its errors, and the replicas that it would move.

All checks are array passes; only what is found becomes objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kframe.errors import ConfigError
from kframe.model.arrays import Bool, Int32, Int64, Ragged
from kframe.model.lists import lists_at, loads, members, repeated
from kframe.model.plan import Plan
from kframe.model.topic_patterns import matching_topics
from kframe.model.topics import topic_name_problem
from kframe.plans.check.findings import Check, Findings
from kframe.plans.check.placement_constraints import breaks_constraints, constraints_of
from kframe.plans.check.rack_rules import span_racks, uneven_replicas
from kframe.plans.check.rules import CheckedPlan, PlanRules, brokers_of
from kframe.snapshot import Snapshot


def resolve_plan(
    plan: Plan, snapshot: Snapshot, config: Mapping[str, object] | None = None, one_rack: Iterable[str] = ()
) -> CheckedPlan:
    """Find the plan's partitions in a snapshot. ``config`` states the release and settings of a KRaft cluster that the
    snapshot lacks. ``one_rack`` are names and patterns of topics whose partitions are to be in one rack each. Raises
    ConfigError, and InputError for a pattern without a match."""
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
    rules = rules_of(snapshot, config)
    valid = known & _well_formed(plan) & ~rules.refused(targets.replicas, adding)
    valid &= ~_deleting(snapshot, topic)
    inside = np.isin(topic, [numbers[name] for name in matching_topics(topics.names, one_rack, "one_rack")])
    return CheckedPlan(plan, snapshot, rows, topic, current, origin, adding, removing, valid, rules, inside)


def rules_of(snapshot: Snapshot, config: Mapping[str, object] | None = None) -> PlanRules:
    """The rules of a cluster. Only plans ask here for its mode, and only the modules of the mode are imported."""
    if snapshot.is_kraft:
        from kframe.plans.check.kraft import KraftRules

        return KraftRules.of(snapshot, config)
    if config:
        key, value = next(iter(config.items()))
        raise ConfigError(f"config key {key}", str(value), "no key: checks of plans in ZooKeeper mode have no settings")
    from kframe.plans.check.zookeeper import ZookeeperRules

    return ZookeeperRules(snapshot)


def check_alone(plan: Plan) -> list[Findings]:
    """What is wrong, or worth knowing, with a plan whatever the cluster."""
    targets = plan.targets
    lists = targets.replicas
    bad_names = [index for index, name in enumerate(targets.names) if topic_name_problem(name) is not None]
    findings = [
        Findings.at(Check.TOPIC_NAME, np.isin(targets.topic, bad_names)),
        Findings.at(Check.PARTITION_NUMBER, targets.partition < 0),
        Findings(Check.DUPLICATE_PARTITION, plan.repeated_positions()),
        Findings.at(Check.EMPTY_REPLICAS, lists.counts == 0),
        Findings.at(Check.DUPLICATE_BROKER, lists.any(repeated(lists))),
        Findings.at(Check.BROKER_ID, lists.any(lists.values < 0)),
        Findings.at(Check.LOG_DIRS, plan.log_dirs_differ),
        Findings.at(Check.LOG_DIRECTORY, plan.names_directories()),
        Findings.at(Check.OBSERVERS, plan.misplaced_observers()),
        Findings(Check.UNEVEN_REPLICATION, _uneven(plan), of_topics=True),
    ]
    if len(plan) == 0:
        findings.append(Findings(Check.EMPTY_PLAN, targets.topic))
    return findings


def check_against(checked: CheckedPlan) -> list[Findings]:
    """What is wrong, or worth knowing, with a plan for this cluster."""
    plan, snapshot, rows = checked.plan, checked.snapshot, checked.rows
    known, topic_known, lists = rows >= 0, checked.topics >= 0, plan.targets.replicas
    growth = lists.counts - checked.origin.counts
    moved = known & ~checked.unchanged
    return [
        Findings.at(Check.UNKNOWN_TOPIC, ~topic_known),
        Findings.at(Check.TOPIC_BEING_DELETED, _deleting(snapshot, checked.topics)),
        Findings.at(Check.UNKNOWN_PARTITION, topic_known & ~known),
        Findings.at(Check.UNKNOWN_BROKER, lists.any(~np.isin(lists.values, brokers_of(snapshot, True, False, None)))),
        Findings.at(Check.NO_LEADER, moved & _leaderless(checked)),
        Findings.at(Check.ALREADY_MOVING, known & checked.is_moving),
        Findings.at(Check.FEWER_OBSERVERS, known & _loses_observers(checked)),
        Findings.at(Check.FEWER_REPLICAS, known & (growth < 0)),
        Findings.at(Check.RACKS, known & _crowded(checked)),
        Findings.at(Check.PLACEMENT_CONSTRAINTS, known & breaks_constraints(checked)),
        Findings.at(Check.MORE_REPLICAS, known & (growth > 0)),
        Findings(Check.PARTIAL_TOPIC, _partial(checked), of_topics=True),
        Findings.at(Check.ORDER_ONLY, moved & (checked.adding.counts == 0) & (checked.removing.counts == 0)),
    ]


def replica_loads(checked: CheckedPlan, ids: Int32, moved: Int32, weight: Int64 | None = None) -> dict[str, Int64]:
    """Replicas of the brokers ``ids`` before the plan, copied, deleted and after it, by name.

    Only the partitions at the positions ``moved`` change. ``weight`` (n,) is that of a replica of each row.
    """
    replicas, current = checked.snapshot.partitions.replicas, checked.current.take(moved)
    target, weights = checked.plan.targets.replicas.take(moved), None
    if weight is not None:
        weights = np.where(checked.rows >= 0, np.append(weight, 0)[checked.rows], 0)[moved]
    before = loads(replicas, ids, weight)
    return {
        "before": before,
        "copied": loads(checked.adding.take(moved), ids, weights),
        "deleted": loads(current.keep(~members(current, target)), ids, weights),
        "after": before + loads(target, ids, weights) - loads(current, ids, weights),
    }


def leader_loads(checked: CheckedPlan, ids: Int32, moved: Int32) -> tuple[Int64, Int64]:
    """Preferred leaders of the brokers ``ids`` before and after the plan. See ``replica_loads``."""
    lists = checked.snapshot.partitions.replicas, checked.current.take(moved), checked.plan.targets.replicas.take(moved)
    before, current, target = (loads(replicas.keep(replicas.first), ids) for replicas in lists)
    return before, before + target - current


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


def _deleting(snapshot: Snapshot, topics: Int32) -> Bool:
    """(k,) whether the topics of these indexes are being deleted; -1 is no topic."""
    deleting = snapshot.topics.deleting
    return np.zeros(len(topics), np.bool_) if deleting is None else np.append(deleting, 0)[topics] != 0


def _loses_observers(checked: CheckedPlan) -> Bool:
    """(k,) whether the partition has fewer observers in the plan than now: replicas that stay out of the ISR."""
    planned, current = checked.plan.observers, checked.snapshot.partitions.observers
    if current is None:
        return np.zeros(len(checked.plan), np.bool_)
    return np.append(current.counts, 0)[checked.rows] > (0 if planned is None else planned.counts)


def _leaderless(checked: CheckedPlan) -> Bool:
    leader = checked.snapshot.partitions.leader
    if leader is None:
        return np.zeros(len(checked.plan), np.bool_)
    dead = brokers_of(checked.snapshot, False)
    current = np.append(leader, -1)[checked.rows]
    leaderless: Bool = (checked.rows >= 0) & ((current < 0) | np.isin(current, dead))
    return leaderless


def _crowded(checked: CheckedPlan) -> Bool:
    """Whether a target is spread over racks less evenly than possible, as far as the racks of its brokers are known.

    A target that is to be in one rack counts if it is in more. Targets of topics with placement constraints are
    compared with these instead.
    """
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
    rows = np.flatnonzero(~lists.any(rack < 0))
    hosts = np.bincount(racks[racks >= 0], minlength=len(numbers)).astype(np.int32)
    crowded = np.zeros(len(lists), np.bool_)
    known = Ragged(lists.offsets, indexes.astype(np.int32)).take(rows)
    uneven = uneven_replicas(known, racks, hosts) > 0
    crowded[rows] = np.where(checked.one_rack[rows], span_racks(known, racks), uneven)
    return crowded & ~np.isin(checked.topics, list(constraints_of(checked.snapshot)))
