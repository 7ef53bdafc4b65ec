"""The rack rules of a plan: by the brokers of each rack that can have a replica of a partition."""

from __future__ import annotations

import numpy as np

from kframe.model.arrays import Int32, Ragged
from kframe.plans.check.rack_rules import NO_CHANGES, HostChanges, OwnRules, RackRules, even_rules, with_own
from kframe.plans.generate.broker_columns import BrokerColumns
from kframe.plans.generate.costs import PlacementCosts


def plan_rules(
    brokers: BrokerColumns, lists: Ragged, factors: Int32, own: OwnRules | None, costs: PlacementCosts | None = None
) -> RackRules:
    """The rules of lists with these replication factors (n,): their own, or those of an even spread.

    A replica can be on a broker that receives replicas, or where it is and need not leave. ``lists`` are of before the
    plan. A broker without a rack is a rack of its own.
    """
    changes = host_changes(brokers, lists, costs)
    rules = even_rules(factors, brokers.rack_targets, changes)
    return rules if own is None else with_own(rules, own, brokers.rack_targets, changes)


def host_changes(brokers: BrokerColumns, lists: Ragged, costs: PlacementCosts | None) -> HostChanges:
    """The racks that have another number of brokers for a partition than those that receive replicas."""
    return _retained(brokers, lists) if costs is None else _allowed(brokers, lists, costs)


def _retained(brokers: BrokerColumns, lists: Ragged) -> HostChanges:
    """The racks in which a partition retains replicas on brokers that receive none."""
    targets = brokers.rack_targets.astype(np.int64)
    retaining = (brokers.share <= 0) & (brokers.leaving == 0)
    if not retaining.any():
        return NO_CHANGES
    retained = lists.keep(retaining[lists.values])
    keys = retained.owners.astype(np.int64) * len(targets) + brokers.rack[retained.values]
    cells, counts = np.unique(keys, return_counts=True)
    rack = cells % len(targets)
    return HostChanges(cells // len(targets), rack, targets[rack], targets[rack] + counts)


def _allowed(brokers: BrokerColumns, lists: Ragged, costs: PlacementCosts) -> HostChanges:
    """The racks in which cost terms forbid brokers to a partition, or in which it retains replicas."""
    rows = np.flatnonzero(costs.position >= 0)
    usable = costs.allowed(rows) & (brokers.share > 0)
    inside = lists.take(rows)
    inside = inside.keep(brokers.leaving[inside.values] == 0)
    usable[inside.owners, inside.values] = True
    targets = brokers.rack_targets.astype(np.int64)
    counts = [np.count_nonzero(usable[:, brokers.rack == rack], axis=1) for rack in range(len(targets))]
    hosts = np.stack(counts, axis=1).astype(np.int64)
    row, rack = np.nonzero(hosts != targets)
    return HostChanges(rows[row], rack, targets[rack], hosts[row, rack])
