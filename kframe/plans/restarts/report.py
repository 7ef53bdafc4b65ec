"""The document of a planned restart: batches with their what-ifs, the proof, and what keeps nodes apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from msgspec import UNSET
from msgspec.structs import fields as struct_fields

from kframe.model.arrays import Int32
from kframe.model.texts import counted
from kframe.plans.check.document import PlanSnapshot
from kframe.plans.restarts.bound import GroupBound, Proof
from kframe.plans.restarts.document import (
    BlockedNodes,
    LimitingPartition,
    RestartBatch,
    RestartConflict,
    RestartOutcome,
    RestartPlanDocument,
)
from kframe.plans.restarts.limits import QUORUM, RestartLimits
from kframe.plans.restarts.plan import RestartPlan
from kframe.whatif.engines.script import step_name
from kframe.whatif.engines.settings import knows_min_insync
from kframe.whatif.results.sweep import Sweep
from kframe.whatif.sweep import sweep

SCHEMA: Final = "kframe.restart-plan/v1"
#: Conflicts of a proof that the document names.
_CONFLICTS_NAMED: Final = 1_000
#: Units that a sentence names.
_NAMED: Final = 10


def report_document(
    plan: RestartPlan, config: Mapping[str, object] | None = None, *, conflicts: bool = False
) -> RestartPlanDocument:
    """The report of a plan. ``conflicts``: name all units that share no batch, and not only those of the proof."""
    blocked = list(blocked_nodes(plan))
    swept = _batch_failures(plan, config)
    return RestartPlanDocument(
        rules=plan.engine.rules,
        release=swept.release or UNSET,
        snapshot=PlanSnapshot.of(plan.snapshot),
        summary=_summary(plan),
        complete=not blocked,
        batches=_batches(plan, swept),
        bound=plan.bound,
        gap=len(plan.batches) - plan.bound,
        proof=proof(plan),
        blocked=blocked,
        conflicts=list(conflicts_of(plan, every=conflicts)),
        assumptions=list(plan.engine.assumptions),
        notes=list(_notes(plan, config)),
    )


def _summary(plan: RestartPlan) -> str:
    nodes = sum(len(plan.units.nodes[unit]) for batch in plan.batches for unit in batch)
    blocked = sum(len(plan.units.nodes[unit]) for unit in np.flatnonzero(plan.blocked).tolist())
    if not nodes:
        return f"none of {counted(blocked, 'node')} can restart safely" if blocked else "there is nothing to restart"
    text = f"restart {counted(nodes, 'node')} in {counted(len(plan.batches), 'batch', 'batches')}"
    if blocked:
        text += f"; {counted(blocked, 'node')} cannot restart safely"
    gap = len(plan.batches) - plan.bound
    return f"{text}; no order has fewer" if not gap else f"{text}; at least {plan.bound} are needed"


# -- batches


def _batches(plan: RestartPlan, swept: Sweep) -> list[RestartBatch]:
    brokers, voters, outcomes = _brokers(plan), set(plan.units.voters), _outcomes(swept)
    nodes = [sorted(node for unit in batch for node in plan.units.nodes[unit]) for batch in plan.batches]
    return [
        RestartBatch(
            number,
            [node for node in group if node in brokers],
            [node for node in group if node in voters],
            sorted({rack for node in group if (rack := plan.units.racks.get(node)) is not None}),
            outcomes.get(number - 1),
        )
        for number, group in enumerate(nodes, 1)
    ]


def _brokers(plan: RestartPlan) -> set[int]:
    return set(plan.engine.registered) - set(plan.engine.snapshot.controllers)


def _batch_failures(plan: RestartPlan, config: Mapping[str, object] | None) -> Sweep:
    """The failures of batches with brokers: a sweep of a cluster whose racks are the batches."""
    brokers = _brokers(plan)
    names = {
        broker: f"{number:09}"
        for number, batch in enumerate(plan.batches)
        for unit in batch
        for broker in plan.units.nodes[unit]
        if broker in brokers
    }
    facts = tuple(replace(facts, rack=names.get(facts.broker_id)) for facts in plan.snapshot.brokers)
    return sweep(replace(plan.snapshot, brokers=facts), config, depth=0)


def _outcomes(swept: Sweep) -> dict[int, RestartOutcome]:
    """The outcomes by the position of the batch."""
    columns = [field.name for field in struct_fields(RestartOutcome)]
    return {
        int(record["rack"]): RestartOutcome(**{name: record[name] for name in columns})
        for record in swept.records()
        if record["rack"] is not None
    }


# -- proof


def proof(plan: RestartPlan) -> str:
    """Why no order has fewer batches, in a sentence."""
    if plan.proven:
        return f"the solver has proven that no order has fewer than {len(plan.batches)} batches"
    texts = [_proof_of(plan, bound) for bound in plan.bounds]
    if plan.request.same_rack and len(texts) > 1:
        return f"the brokers of different racks share no batch; in each rack: {'; '.join(dict.fromkeys(texts))}"
    return "; ".join(texts) or "there is no batch"


def _proof_of(plan: RestartPlan, bound: GroupBound) -> str:
    match bound.proof:
        case Proof.ANY_NODE:
            return "one batch is the least"
        case Proof.CONFLICTS:
            return f"no two of these share a batch: {_units_text(plan, bound.units.tolist())}"
        case Proof.LIMIT:
            return _limit_text(plan, plan.problem.limits, bound.limit)
        case Proof.AT_MIN_ISR:
            most = counted(plan.problem.exhausted_max, "partition")
            return f"in fewer batches, one would bring more than {most} down to min ISR"
        case Proof.SIZE:
            return f"a batch has at most {counted(plan.problem.size_max, 'node')}"


def _units_text(plan: RestartPlan, units: list[int]) -> str:
    """Units by node, or by rack where a rack restarts together. Long lists end with the number of omitted ones."""
    whole_racks = plan.request.whole_racks
    names = [f"rack {plan.units.rack(unit)}" if whole_racks else str(plan.units.nodes[unit][0]) for unit in units]
    suffix = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{suffix}"


def _limit_text(plan: RestartPlan, limits: RestartLimits, number: int) -> str:
    """Why a limit keeps nodes apart."""
    example = _example(plan, limits, number)
    if example is None:
        voters = plan.units.voters
        least = counted((len(voters) - 1) // 2, "controller")
        return f"of the {counted(len(voters), 'voter')} {', '.join(map(str, voters))} at most {least} may be down"
    return (
        f"{example.topic}-{example.partition}, in sync on {', '.join(map(str, example.isr))} with min.insync.replicas "
        f"{example.min_isr}, spares {example.spare}"
    )


def _example(plan: RestartPlan, limits: RestartLimits, number: int) -> LimitingPartition | None:
    row = int(limits.example[number])
    if row == QUORUM:
        return None
    cluster = plan.engine.cluster
    p = cluster.partitions
    isr = p.lists("isr", np.array([row], np.int32)).values
    return LimitingPartition(
        cluster.topics.names[int(p.topic[row])],
        int(p.partition[row]),
        cluster.brokers.ids[isr].tolist(),
        int(limits.min_isr[number]),
        int(limits.capacity[number]),
    )


# -- what keeps nodes apart


def conflicts_of(plan: RestartPlan, *, every: bool = False) -> Iterator[RestartConflict]:
    """The units that share no batch: those of the proof, or ``every``."""
    conflicts, limits = plan.conflicts, plan.problem.limits
    low, high = np.divmod(conflicts.pairs, max(conflicts.units, 1))
    chosen = np.arange(len(low))
    if not every:
        proving = np.zeros(conflicts.units, np.int32)
        for number, bound in enumerate(plan.bounds, 1):
            proving[bound.units] = number
        chosen = np.flatnonzero((proving[low] > 0) & (proving[low] == proving[high]))[:_CONFLICTS_NAMED]
    for pair in chosen.tolist():
        limit = int(conflicts.limit[pair])
        yield RestartConflict(
            list(plan.units.nodes[int(low[pair])]),
            list(plan.units.nodes[int(high[pair])]),
            int(conflicts.partitions[pair]),
            _example(plan, limits, limit),
            _limit_text(plan, limits, limit),
        )


def blocked_nodes(plan: RestartPlan) -> Iterator[BlockedNodes]:
    """The nodes without a batch. The first cause is named: partitions first, then the limit at min ISR."""
    limits = plan.limits
    broken = limits.exceeded_alone() if not plan.request.allow_unavoidable else np.zeros(len(limits.members), np.bool_)
    owners = limits.units.owners
    for unit in np.flatnonzero(plan.blocked).tolist():
        positions = np.flatnonzero((limits.units.values == unit) & broken)
        if len(positions):
            yield _blocked_by_limits(plan, unit, owners[positions])
            continue
        reaching = np.flatnonzero((limits.units.values == unit) & (limits.members == limits.capacity[owners]))
        number = int(owners[reaching[np.argmax(limits.exhausted[owners[reaching]])]])
        count = int(limits.exhausted[owners[reaching]].sum())
        allowed = counted(plan.problem.exhausted_max, "partition")
        yield BlockedNodes(
            list(plan.units.nodes[unit]),
            "at-min-isr",
            count,
            _example(plan, limits, number),
            f"its restart brings {counted(count, 'partition')} down to min ISR, more than {allowed}",
        )


def _blocked_by_limits(plan: RestartPlan, unit: int, numbers: Int32) -> BlockedNodes:
    limits = plan.limits
    of_partitions = numbers[limits.example[numbers] != QUORUM]
    nodes = list(plan.units.nodes[unit])
    if not len(of_partitions):
        return BlockedNodes(nodes, "quorum", 0, None, _limit_text(plan, limits, int(numbers[0])))
    number = int(of_partitions[np.argmin(limits.example[of_partitions])])
    example = _example(plan, limits, number)
    cause: Literal["offline", "under-min-isr"] = "under-min-isr"
    if example is not None and set(example.isr) <= set(nodes):
        cause = "offline"
    count = int(limits.partitions[of_partitions].sum())
    return BlockedNodes(nodes, cause, count, example, _limit_text(plan, limits, number))


def _notes(plan: RestartPlan, config: Mapping[str, object] | None) -> Iterator[str]:
    if plan.batches:
        yield "each batch starts once the replicas of the batch before are back in their ISRs"
    if plan.engine.mode == "kraft" and not plan.units.voters:
        yield "the controllers of the quorum are not in this input: --voters names them"
    if plan.units.left_out:
        yield step_name(plan.units.left_out, "is not up, and left out", "are not up, and left out")
    if plan.request.allow_unavoidable and (broken := plan.limits.exceeded_alone()).any():
        numbers = np.unique(plan.limits.units.owners[broken])
        count = counted(int(plan.limits.partitions[numbers].sum()), "partition")
        yield f"{count} go offline or under min ISR in any order: the restart of one node takes them there"
    if not knows_min_insync(plan.snapshot.topics, config):
        yield "min.insync.replicas is not in this input: that of brokers is taken (--config min.insync.replicas=N)"
