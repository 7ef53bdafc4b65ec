"""The replicas of replaced brokers that other brokers than the replacement receive, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kframe.model.arrays import Int32, Ragged
from kframe.model.lists import members
from kframe.model.texts import counted
from kframe.plans.generate.document import DivertedReplica
from kframe.plans.generate.problem import PlanProblem


def diverted_replicas(problem: PlanProblem, after: Ragged) -> Iterator[DivertedReplica]:
    """The replicas that do not go to the requested replacement, by replaced broker and row."""
    brokers, before = problem.brokers, problem.original
    added = after.keep(~members(after, before))
    count = np.bincount(after.values, minlength=len(brokers))
    for old_id, new_id in problem.request.replace.items():
        old, new = brokers.index_of(old_id), brokers.index_of(new_id)
        had_new = before.any(before.values == new)
        left = before.any(before.values == old) & ~after.any(after.values == old)
        diverted = left & (had_new | ~after.any(after.values == new)) & (added.counts > 0)
        at_cap = bool(count[new] >= brokers.cap[new])
        rows = np.flatnonzero(diverted).astype(np.int32)
        for row, name in zip(rows.tolist(), problem.partitions(rows), strict=True):
            if had_new[row]:
                reason = f"broker {new_id} has a replica already"
            elif problem.costs is not None and not problem.costs.allowed(np.array([row]))[0][new]:
                reason = f"{', '.join(problem.costs.names)} forbid broker {new_id}"
            elif problem.one_rack is not None and problem.one_rack.rack[row] not in (-1, brokers.rack[new]):
                reason = f"with broker {new_id} its replicas would be in more than one rack"
            elif _loses_spread(problem, row, before[row], old, new):
                reason = f"with broker {new_id} it would be less evenly spread over racks"
            elif at_cap:
                reason = f"broker {new_id} has {count[new]:,} of at most {counted(brokers.cap[new], 'replica')}"
            elif problem.request.balances:
                reason = f"broker {new_id} has its share"
            else:
                reason = f"it is more evenly spread over racks without broker {new_id}"
            receivers = brokers.ids[added[row]].tolist()
            yield DivertedReplica(*name, old_id, new_id, receivers, reason)


def _loses_spread(problem: PlanProblem, row: int, replicas: Int32, old: int, new: int) -> bool:
    rack = problem.brokers.rack
    others = rack[replicas[replicas != old]]
    gain, loss = (
        int(problem.rack_rules.need(row, rack[broker], np.count_nonzero(others == rack[broker])))
        for broker in (new, old)
    )
    return bool(rack[old] != rack[new] and gain < loss)
