"""The columns that a plan is made from: brokers, racks, scope and sizes, by a snapshot and a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Bool, Int32, Int64, Ragged, UInt8
from kframe.model.events import TopicPartition
from kframe.model.lists import members
from kframe.model.placements import PlacementBatch
from kframe.model.topic_patterns import matching_topics
from kframe.plans.check.placement_constraints import constraint_rules
from kframe.plans.check.rack_rules import RackRules
from kframe.plans.generate.broker_columns import BrokerColumns
from kframe.plans.generate.costs import PlacementCosts, placement_costs
from kframe.plans.generate.demoted_directories import demoted_replicas
from kframe.plans.generate.eligibility import broker_racks, check_targets, refusals
from kframe.plans.generate.one_rack import OneRack, check_requested, choose_racks
from kframe.plans.generate.rack_hosts import host_changes, plan_rules
from kframe.plans.generate.request import PlanRequest
from kframe.snapshot import Snapshot
from kframe.snapshot.controllers import node_text
from kframe.snapshot.seeded import Purpose, hashed

#: The cap of a broker without one.
UNLIMITED: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Rows that a request covers and that no plan changes, ascending."""

    reassigning: Int32
    """Their reassignment is in progress."""
    deleting: Int32
    """Their topic is being deleted."""
    impossible: Int32
    """Their replication factor exceeds the number of brokers that can have a replica."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanProblem:
    """A request as columns. ``n`` partitions are the rows of the snapshot.

    ``racks`` is the rack by broker id, ascending. ``original`` has broker indexes. ``replication_factor`` (n,)
    is that after the plan. ``order`` lists the rows in scope in the order in which they are considered. ``in_sync`` is
    parallel to ``original.values``. ``left_out`` are rows that the request covers and that stay as they are.
    ``refusals`` says by broker id why a broker receives no replica. ``demoted`` lists the brokers on which each row has
    a replica in a demoted log directory. ``costs`` are those of the cost terms, ``one_rack`` has the partitions that
    are to be in one rack each, and ``elected`` (n,) the leaders that the selector of the request elects, -1 where it
    elects none; None without any.
    """

    snapshot: Snapshot
    request: PlanRequest
    racks: Mapping[int, str | None]
    brokers: BrokerColumns
    original: Ragged
    replication_factor: Int32
    weight: Int64
    order: Int32
    in_sync: UInt8
    left_out: LeftOut
    refusals: Mapping[int, str]
    demoted: Ragged
    rack_rules: RackRules
    costs: PlacementCosts | None = None
    one_rack: OneRack | None = None
    elected: Int32 | None = None

    @property
    def weighted(self) -> bool:
        """Whether replicas have weights of their own: sizes, or those of a goal."""
        return self.request.weights is not None or self.request.goal is not None

    @property
    def unit(self) -> str:
        """The unit of the weights."""
        if self.request.goal is not None:
            return self.request.goal.unit
        return "replicas" if self.request.weights is None else "bytes"

    @property
    def scope(self) -> Bool:
        """(n,) rows that the plan may change."""
        mask = np.zeros(len(self.original), np.bool_)
        mask[self.order] = True
        return mask

    @property
    def counting(self) -> PlanProblem:
        """The problem in which every replica weighs 1, and loads have limits."""
        request = replace(self.request, weights=None, goal=None, rebalance=True)
        return replace(self, request=request, weight=np.ones(len(self.original), np.int64))

    def cost(self, lists: Ragged) -> int:
        """What a plan with these lists copies, by weight, with what cost terms add."""
        added = lists.keep(~members(lists, self.original))
        terms = 0 if self.costs is None else self.costs.total(added)
        return int(self.weight[added.owners].sum()) + terms

    def partitions(self, rows: Int32) -> Iterator[TopicPartition]:
        """Topic and partition of each of these rows."""
        topics = self.snapshot.topics
        names = map(topics.names.__getitem__, topics.topic_of_rows()[rows].tolist())
        return zip(names, topics.partition_of_rows()[rows].tolist(), strict=True)

    def without(self, rows: Int32) -> PlanProblem:
        """The problem whose scope lacks some rows."""
        return replace(self, order=self.order[~np.isin(self.order, rows)]) if len(rows) else self

    def continued(self, lists: Ragged) -> PlanProblem:
        """The problem of a cluster with these lists, all of whose replicas are in sync."""
        rules = plan_rules(self.brokers, lists, self.replication_factor, self.rack_rules.own)
        return replace(self, original=lists, in_sync=np.ones(len(lists.values), np.uint8), rack_rules=rules)

    def spread(self, rows: Int32, lists: Ragged) -> Int32:
        """(k, 2) the spread over racks of ``lists``, which are of these rows."""
        return self.rack_rules.spread(rows, lists, self.brokers.rack)

    @property
    def spread_columns(self) -> tuple[Int32, Int32, Int32]:
        """The arguments of kernels for the spread: racks of brokers, the rule of each row, and the bounds of rules."""
        return self.brokers.rack, self.rack_rules.rule, self.rack_rules.bounds


def problem_of(snapshot: Snapshot, request: PlanRequest) -> PlanProblem:
    """The columns of a request. Raises InputError for brokers, racks or topics that do not exist.

    Raises PluginError for an invalid result of a goal or cost term.
    """
    racks = _racks(snapshot, request)
    reasons = refusals(snapshot, request, racks)
    check_targets(snapshot, request, reasons)
    brokers = _brokers(request, racks, reasons)
    original = Ragged(
        snapshot.partitions.replicas.offsets,
        np.searchsorted(brokers.ids, snapshot.partitions.replicas.values).astype(np.int32),
    )
    isr = snapshot.partitions.isr
    in_sync = np.ones(len(original.values), np.uint8)
    if isr is not None and isr is not snapshot.partitions.replicas:
        in_sync = members(snapshot.partitions.replicas, isr).astype(np.uint8)
    selected, reassigning, deleting = _scope(snapshot, request)
    requested = requested_factors(snapshot, request)
    replication_factor = np.where(selected & (requested > 0), requested, original.counts).astype(np.int32)
    weight = np.ones(len(original), np.int64) if request.weights is None else request.weights
    impossible = selected & (replication_factor > host_counts(brokers, original)) & (not request.orders_only)
    selected &= ~impossible
    left_out = LeftOut(*(np.flatnonzero(mask).astype(np.int32) for mask in (reassigning, deleting, impossible)))
    scope = np.flatnonzero(selected).astype(np.int32)
    if request.goal is not None:
        goal_weight = request.goal.weights(_batch(snapshot, racks, brokers, original, weight, scope))
        weight = np.zeros(len(original), np.int64)
        weight[scope] = goal_weight
    own = constraint_rules(snapshot, rack_numbers(racks)[0], len(brokers.rack_targets))
    costs = None
    if request.cost_terms:
        batch = _batch(snapshot, racks, brokers, original, weight, scope)
        costs = placement_costs(request.cost_terms, batch, scope, len(original))
    order, one_rack = _ordered(selected, request, weight), None
    if request.one_rack:
        matching = _matching(snapshot.topics.names, request.one_rack, "one_rack")[snapshot.topics.topic_of_rows()]
        together = matching & (selected | reassigning | deleting | impossible)
        check_requested(snapshot, racks, together, selected, fix_racks=request.fix_racks)
        changes = host_changes(brokers, original, costs)
        one_rack = choose_racks(brokers, original, replication_factor, weight, together, order, changes)
        own = one_rack.rules(own, replication_factor, len(brokers.rack_targets))
    return PlanProblem(
        snapshot,
        request,
        racks,
        brokers,
        original,
        replication_factor,
        weight,
        order,
        in_sync,
        left_out,
        reasons,
        demoted_replicas(snapshot, request, original, brokers.ids),
        plan_rules(brokers, original, replication_factor, own, costs),
        costs,
        one_rack,
        _elected(snapshot, request, original, np.flatnonzero(selected | reassigning), racks, brokers),
    )


def _elected(
    snapshot: Snapshot,
    request: PlanRequest,
    original: Ragged,
    rows: Int64,
    racks: Mapping[int, str | None],
    brokers: BrokerColumns,
) -> Int32 | None:
    """(n,) the leaders of ``rows`` by the leader selector of the request, None without one. Raises PluginError."""
    if request.leader_selector is None:
        return None
    from kframe.plans.generate.elected_leaders import elected_leaders  # Other plans elect no leaders.

    chosen = rows.astype(np.int32)
    return elected_leaders(
        snapshot, request, request.leader_selector, original, chosen, rack_numbers(racks), brokers.ids
    )


def _batch(
    snapshot: Snapshot,
    racks: Mapping[int, str | None],
    brokers: BrokerColumns,
    original: Ragged,
    weight: Int64,
    scope: Int32,
) -> PlacementBatch:
    """The rows in scope as plugins receive them, in the order of the snapshot."""
    names, rack = rack_numbers(racks)
    lists = original.take(scope)
    columns: dict[str, Any] = {
        "topic": snapshot.topics.topic_of_rows()[scope].astype(np.int32),
        "partition": snapshot.topics.partition_of_rows()[scope].astype(np.int32),
        "weight": weight[scope],
        "broker_ids": brokers.ids.copy(),
        "broker_rack": rack,
        "broker_receives": (brokers.share > 0).astype(np.uint8),
    }
    for column in (*columns.values(), lists.offsets, lists.values):
        column.flags.writeable = False
    return PlacementBatch(**columns, replicas=lists, racks=names, topic_names=tuple(snapshot.topics.names))


def rack_numbers(racks: Mapping[int, str | None]) -> tuple[tuple[str, ...], Int32]:
    """The names of the racks, sorted, and the index of that of each broker, -1 where it has none."""
    names = sorted({rack for rack in racks.values() if rack is not None})
    return tuple(names), np.array([-1 if rack is None else names.index(rack) for rack in racks.values()], np.int32)


def _racks(snapshot: Snapshot, request: PlanRequest) -> dict[int, str | None]:
    """The rack of every broker, ascending by id. Raises InputError for brokers and racks that do not exist."""
    known = {broker.broker_id for broker in snapshot.brokers}
    for name, ids in (
        ("remove_brokers", request.remove_brokers),
        ("replace", tuple(request.replace)),
        ("exclude_brokers", request.exclude_brokers),
        ("demote_brokers", request.demote_brokers),
    ):
        for broker_id in sorted(set(ids) - known):
            raise ParameterError(name, node_text(snapshot, broker_id), "a broker of the snapshot")
    racks = broker_racks(snapshot, request)
    limited = {broker_id for broker_id in request.broker_caps if broker_id is not None}
    for name, limits in (("capacities", set(request.capacities)), ("broker_caps", limited)):
        for broker_id in sorted(limits - racks.keys()):
            raise ParameterError(name, node_text(snapshot, broker_id), "a broker of the snapshot or an added one")
    for name in ("evacuate_racks", "demote_racks", "leader_racks"):
        for rack in sorted(set(getattr(request, name)) - set(racks.values())):
            raise ParameterError(name, f"rack {rack!r}", "a rack of the snapshot")
    return racks


def _brokers(request: PlanRequest, racks: Mapping[int, str | None], reasons: Mapping[int, str]) -> BrokerColumns:
    names, numbers = rack_numbers(racks)
    numbers = np.where(numbers < 0, len(names) + np.arange(len(racks)), numbers)
    leaving = {
        broker_id
        for broker_id, rack in racks.items()
        if broker_id in request.remove_brokers or broker_id in request.replace or rack in request.evacuate_racks
    }
    demoted = [request.orders_only and _is_demoted(request, broker_id, rack) for broker_id, rack in racks.items()]
    share = [0.0 if broker_id in reasons else request.capacities.get(broker_id, 1.0) for broker_id in racks]
    default_cap = request.broker_caps.get(None, UNLIMITED)
    return BrokerColumns(
        np.array(list(racks), np.int32),
        np.unique(numbers, return_inverse=True)[1].astype(np.int32),
        np.array(share, np.float64),
        np.array([request.broker_caps.get(broker_id, default_cap) for broker_id in racks], np.int64),
        np.array([broker_id in leaving for broker_id in racks], np.uint8),
        np.array(demoted, np.bool_),
    )


def _is_demoted(request: PlanRequest, broker_id: int, rack: str | None) -> bool:
    """Whether a request that moves no data keeps a broker from leading."""
    outside = bool(request.leader_racks) and rack not in request.leader_racks
    named = broker_id in request.demote_brokers or broker_id in request.exclude_brokers
    return outside or named or rack in request.demote_racks


def _scope(snapshot: Snapshot, request: PlanRequest) -> tuple[Bool, Bool, Bool]:
    """(n,) rows in scope; rows that are left out because they are being reassigned, and because of their deletion."""
    topics, partitions = snapshot.topics, snapshot.partitions
    chosen = _matching(topics.names, request.topics, "topics") if request.topics else np.ones(len(topics), np.bool_)
    if request.exclude_topics:
        chosen &= ~_matching(topics.names, request.exclude_topics, "exclude_topics")
    rows = chosen[topics.topic_of_rows()] & (partitions.replicas.counts > 0)
    deleting = np.zeros(len(rows), np.bool_)
    if topics.deleting is not None:
        deleting = rows & (topics.deleting != 0)[topics.topic_of_rows()]
    moving = np.zeros(len(rows), np.bool_)
    for lists in (partitions.adding_replicas, partitions.removing_replicas):
        if lists is not None:
            moving |= lists.counts > 0
    return rows & ~moving & ~deleting, rows & moving & ~deleting, deleting


def _matching(names: Sequence[str], patterns: Iterable[str], parameter: str) -> Bool:
    """Which names a pattern matches. Raises InputError for a pattern without a match."""
    matching = frozenset(matching_topics(names, patterns, parameter))
    return np.fromiter((name in matching for name in names), np.bool_, len(names))


def requested_factors(snapshot: Snapshot, request: PlanRequest) -> Int32:
    """(n,) replication factor that the request states for each row, 0 where it states none.

    Raises InputError for a pattern without a match.
    """
    factors = np.zeros(len(snapshot), np.int32)
    topic = snapshot.topics.topic_of_rows()
    for pattern, factor in request.replication_factors.items():
        factors[_matching(snapshot.topics.names, [pattern], "replication_factor")[topic]] = factor
    return factors


def host_counts(brokers: BrokerColumns, lists: Ragged) -> Int32:
    """How many brokers can have a replica of each list: those that receive replicas, and those that retain theirs."""
    retained = lists.keep((brokers.leaving[lists.values] == 0) & (brokers.share[lists.values] <= 0))
    return np.asarray(np.count_nonzero(brokers.share > 0) + retained.counts, np.int32)


def _ordered(selected: Bool, request: PlanRequest, weight: Int64) -> Int32:
    """The rows in scope by decreasing weight; rows of equal weight in a random order, so that topics spread."""
    rows = np.flatnonzero(selected)
    mixed = hashed(request.seed, Purpose.PLAN_ORDER, len(selected))[rows]
    counted = request.weights is None and request.goal is None
    order = np.argsort(mixed) if counted else np.lexsort((mixed, -weight[rows]))
    return rows[order].astype(np.int32)
