"""What a plan does not do of its request: the partitions, and for each the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.model.arrays import Bool, Int32, Int64, Ragged
from kframe.model.lists import members
from kframe.model.texts import counted
from kframe.plans.check.rack_rules import span_racks
from kframe.plans.generate.document import Unmet, UnmetPartition
from kframe.plans.generate.problem import PlanProblem, host_counts, rack_numbers, requested_factors
from kframe.plans.generate.rack_hosts import plan_rules
from kframe.plans.generate.racks import required_spread
from kframe.snapshot.content import brokers_text

#: Brokers that a reason names.
_NAMED: Final = 5
#: What leads a partition, without demoted log directories and with them.
_DEMOTED: Final = ("led by a demoted broker", "led by a demoted broker or log directory")


@dataclass(frozen=True, slots=True, eq=False)
class UnmetPartitions:
    """The rows of the snapshot for which a plan does not meet its request, ascending.

    ``lacking`` marks, by what is lacking, which of ``rows`` lack it. ``retained`` (b,) counts their replicas on brokers
    that these were to leave.
    """

    rows: Int32
    lacking: dict[Unmet, Bool]
    retained: Int64

    def __len__(self) -> int:
        return len(self.rows)


def unmet_partitions(problem: PlanProblem, after: Ragged) -> UnmetPartitions:
    """The partitions that a plan with the lists ``after`` leaves otherwise than requested.

    A reassignment in progress counts as completed: its removing replicas are not in the list.
    """
    settled, brokers = settled_lists(problem, after), problem.brokers
    left_out = problem.left_out
    covered = problem.scope
    covered[left_out.reassigning] = covered[left_out.impossible] = True
    retained = settled.any(brokers.leaving[settled.values] != 0)
    deleted = np.zeros(len(after), np.bool_)
    deleted[left_out.deleting] = True
    lacking = {Unmet.REMOVAL: (covered | deleted) & retained, Unmet.RACKS: np.zeros(len(after), np.bool_)}
    factors = requested_factors(problem.snapshot, problem.request)
    lacking[Unmet.REPLICATION_FACTOR] = covered & (factors > 0) & (factors != settled.counts)
    if problem.request.fix_racks:
        lacking[Unmet.RACKS] = _is_uneven(problem, settled)
    if problem.one_rack is not None:
        lacking[Unmet.RACKS] &= ~problem.one_rack.requested
        lacking[Unmet.ONE_RACK] = covered & problem.one_rack.requested & span_racks(settled, problem.brokers.rack)
    first = np.full(len(after), -1, np.int32)
    first[settled.counts > 0] = settled.values[settled.first]
    demoted = settled.any(members(settled, problem.demoted) & settled.first) | np.append(brokers.demoted, False)[first]
    lacking[Unmet.LEADER] = (covered | deleted) & demoted
    if problem.elected is not None:
        lacking[Unmet.LEADER] = covered & (first != problem.elected)
    rows = np.flatnonzero(np.logical_or.reduce(list(lacking.values()))).astype(np.int32)
    unmet = settled.take(rows)
    counts = np.bincount(unmet.values[brokers.leaving[unmet.values] != 0], minlength=len(brokers)).astype(np.int64)
    return UnmetPartitions(rows, {kind: mask[rows] for kind, mask in lacking.items()}, counts)


def unmet_rows(problem: PlanProblem, after: Ragged, unmet: UnmetPartitions) -> Iterator[UnmetPartition]:
    """A row for each of the unmet partitions, with what it lacks and why it stays as it is."""
    left_out, ids = problem.left_out, problem.brokers.ids
    deleting, reassigning, impossible = (
        np.isin(unmet.rows, rows) for rows in (left_out.deleting, left_out.reassigning, left_out.impossible)
    )
    targets, originals = settled_lists(problem, after).take(unmet.rows), problem.original.take(unmet.rows)
    hosts = host_counts(problem.brokers, originals)
    count = np.bincount(after.values, minlength=len(ids)).astype(np.int64)
    names = problem.partitions(unmet.rows)
    for index, (row, name) in enumerate(zip(unmet.rows.tolist(), names, strict=True)):
        lacks = [kind for kind, mask in unmet.lacking.items() if mask[index]]
        if deleting[index]:
            reason = "its topic is being deleted"
        elif reassigning[index]:
            reason = f"a reassignment to {','.join(map(str, ids[targets[index]].tolist()))} is in progress"
        elif impossible[index]:
            reason = _too_few_brokers(problem, int(hosts[index]), int(problem.replication_factor[row]))
        elif problem.request.leader_selector is not None:
            reason = f"leader selector {problem.request.leader_selector.name} elects none of its replicas"
        elif problem.request.orders_only:
            reason = "none of its replicas is on a broker that is up and may lead"
        elif lacks == [Unmet.ONE_RACK] and problem.one_rack is not None and problem.one_rack.rack[row] < 0:
            reason = _no_rack(problem, int(problem.one_rack.hosts[row]), int(problem.replication_factor[row]))
        else:
            reason = _no_room(problem, count, targets[index], row)
        yield UnmetPartition(*name, ids[after[row]].tolist(), lacks, reason)


def _too_few_brokers(problem: PlanProblem, hosts: int, factor: int) -> str:
    remaining = int(np.count_nonzero(problem.brokers.leaving == 0))
    if factor > remaining:
        verb = " would remain" if remaining < len(problem.brokers) else ""
        return f"replication factor {factor}, but {'' if verb else 'only '}{counted(remaining, 'broker')}{verb}"
    return f"replication factor {factor}, but {counted(hosts, 'broker')} can have a replica{_refused(problem)}"


def _no_rack(problem: PlanProblem, hosts: int, factor: int) -> str:
    """``hosts`` is the most brokers of a rack that can have a replica."""
    return (
        f"replication factor {factor}, but no rack has more than {counted(hosts, 'broker')} that can have a replica"
        f"{_refused(problem)}"
    )


def _no_room(problem: PlanProblem, count: Int64, replicas: Int32, row: int) -> str:
    """``count`` (b,) is the replicas of each broker after the plan, ``replicas`` those of the partition."""
    brokers = problem.brokers
    candidates = brokers.share > 0
    candidates[replicas] = False
    staying = replicas[brokers.leaving[replicas] == 0]
    lacking = int(problem.replication_factor[row]) - len(staying)
    rack = -1 if problem.one_rack is None else int(problem.one_rack.rack[row])
    others = np.bincount(brokers.rack[staying], minlength=len(brokers.rack_targets))
    if rack >= 0:
        lacking = int(problem.replication_factor[row] - others[rack])
    if lacking <= 0 or rack >= 0:  # Too many are in the same rack, or in others.
        need = problem.rack_rules.need(row, brokers.rack, others[brokers.rack])
        lacking, candidates = max(lacking, 1), candidates & (need > 0)
    full = candidates & (count >= brokers.cap)
    if full.any() and np.count_nonzero(candidates & ~full) < lacking:
        at_cap = ", ".join(
            f"broker {brokers.ids[index]} has {count[index]:,} of at most {counted(brokers.cap[index], 'replica')}"
            for index in np.flatnonzero(full)[:_NAMED].tolist()
        )
        more = f" and {np.count_nonzero(full) - _NAMED:,} more" if np.count_nonzero(full) > _NAMED else ""
        of_rack = f" of {rack_numbers(problem.racks)[0][rack]}" if rack >= 0 else ""
        return f"too few brokers{of_rack} have room: {at_cap}{more}{_refused(problem)}"
    if problem.costs is not None and not (problem.costs.allowed(np.array([row]))[0] & candidates & ~full).any():
        return f"{', '.join(problem.costs.names)} forbid the other brokers{_refused(problem)}"
    return f"no broker with room was found{_refused(problem)}"


def _refused(problem: PlanProblem) -> str:
    """The brokers that receive no replicas for a reason other than their removal, to be appended to a reason."""
    refused = {
        broker_id: text
        for broker_id, text in problem.refusals.items()
        if not problem.brokers.leaving[problem.brokers.index_of(broker_id)]
    }
    named = [f"broker {broker_id} {text}" for broker_id, text in list(refused.items())[:_NAMED]]
    more = f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
    return f" ({'; '.join(named)}{more})" if named else ""


def describe(problem: PlanProblem, unmet: UnmetPartitions) -> str:
    """What is not met, in words: the brokers that retain replicas, and counts of partitions."""
    phrases = []
    if unmet.lacking[Unmet.REMOVAL].any():
        ids = problem.brokers.ids[np.flatnonzero(unmet.retained)].tolist()
        verb = "retain" if len(ids) > 1 else "retains"
        phrases.append(f"{brokers_text(ids)} {verb} {counted(int(unmet.retained.sum()), 'replica')}")
    for kind, text in (
        (Unmet.REPLICATION_FACTOR, "without the requested replication factor"),
        (Unmet.RACKS, "less evenly spread over racks than possible"),
        (Unmet.ONE_RACK, "in more than one rack"),
        (Unmet.LEADER, _leader_text(problem)),
    ):
        if count := int(np.count_nonzero(unmet.lacking.get(kind, False))):
            phrases.append(f"{counted(count, 'partition')} {text}")
    return ", ".join(phrases)


def _leader_text(problem: PlanProblem) -> str:
    if problem.elected is not None:
        return "not led as the leader selector elects"
    return _DEMOTED[bool(problem.request.demote_directories)]


def _is_uneven(problem: PlanProblem, settled: Ragged) -> Bool:
    """(n,) whether a partition is spread over racks less evenly than it must be."""
    uneven, scope = np.zeros(len(settled), np.bool_), problem.order
    uneven[scope] = (problem.spread(scope, settled.take(scope)) < required_spread(problem, scope)).any(axis=1)
    if len(rows := problem.left_out.reassigning) and problem.costs is None:
        lists = settled.take(rows)
        own = problem.rack_rules.own
        own = None if own is None else replace(own, rule=own.rule[rows])
        rules = plan_rules(problem.brokers, lists, lists.counts, own)
        possible = np.minimum(rules.possible, lists.counts[:, None])
        spread = rules.spread(np.arange(len(rows)), lists, problem.brokers.rack)
        uneven[rows] = (spread < possible).any(axis=1)
    return uneven


def settled_lists(problem: PlanProblem, after: Ragged) -> Ragged:
    """The lists ``after`` a plan, without the replicas that a reassignment in progress removes."""
    removing = problem.snapshot.partitions.removing_replicas
    if removing is None:
        return after
    indexes = np.searchsorted(problem.brokers.ids, removing.values).astype(np.int32)
    return after.keep(~members(after, Ragged(removing.offsets, indexes)))
