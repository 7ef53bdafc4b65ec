"""The effect of a plan on brokers, racks and topics, for the reviewer who approves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from msgspec.structs import asdict

from kframe.model.arrays import Bool, Int32, Int64
from kframe.model.texts import counted
from kframe.plans.check.checked import CheckedPlan
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import leader_loads, replica_loads
from kframe.plans.generate.document import GeneratedPlanDocument
from kframe.plans.generate.proposal import PlanProposal
from kframe.plans.generate.report import report_document
from kframe.plans.generate.request import PlanRequest
from kframe.registry.placements import CostTerm, PlanGoal


@dataclass(frozen=True, slots=True, eq=False)
class PlanReview:
    """A checked plan with the effect of its partitions.

    ``racks`` has the rack of every broker of the snapshot and of the plan, ascending by id. ``moved`` (k,) marks the
    partitions of the plan that it changes. ``weights`` (n,) are bytes of a replica by row of the snapshot; None if they
    are unknown. ``generated`` is the report of the proposal that made the plan, ``request`` is its request; both are
    None for a plan of another tool.
    """

    findings: PlanReport
    checked: CheckedPlan
    racks: Mapping[int, str | None]
    moved: Bool
    weights: Int64 | None
    generated: GeneratedPlanDocument | None = None
    request: PlanRequest | None = None

    @staticmethod
    def of_proposal(proposal: PlanProposal, checked: CheckedPlan) -> PlanReview:
        """The review of a proposed plan. It includes partitions on brokers that are yet to be added."""
        problem = proposal.problem
        return PlanReview(
            PlanReport.of(checked.plan, checked),
            checked,
            problem.racks,
            np.ones(len(checked.plan), np.bool_),
            problem.request.weights,
            report_document(proposal),
            problem.request,
        )

    @staticmethod
    def of_plan(checked: CheckedPlan, weights: Int64 | None) -> PlanReview:
        """The review of any plan. Partitions that a controller would refuse stay as they are."""
        racks: dict[int, str | None] = dict.fromkeys(checked.plan.targets.replicas.values.tolist())
        racks |= {broker.broker_id: broker.rack for broker in checked.snapshot.brokers}
        racks |= dict.fromkeys(set(checked.snapshot.partitions.replicas.values.tolist()) - racks.keys())
        moved = checked.valid & (checked.rows >= 0)
        return PlanReview(PlanReport.of(checked.plan, checked), checked, dict(sorted(racks.items())), moved, weights)

    @property
    def copied(self) -> Int64:
        """(k,) replicas that are copied for each partition of the plan."""
        return np.where(self.moved, self.checked.adding.counts, 0).astype(np.int64)

    def brokers(self) -> list[dict[str, Any]]:
        """A row for each broker, ascending by id: replicas, preferred leaders and bytes. Bytes are None if unknown."""
        columns = self._loads()
        return [
            {"broker_id": broker_id, "rack": rack, **_row(columns, index)}
            for index, (broker_id, rack) in enumerate(self.racks.items())
        ]

    def rack_rows(self) -> list[dict[str, Any]]:
        """A row for each rack, by name, with the sums of its brokers. Brokers without a rack come last."""
        names: list[str | None] = [*sorted({rack for rack in self.racks.values() if rack is not None})]
        if None in self.racks.values():
            names.append(None)
        number = np.array([names.index(rack) for rack in self.racks.values()], np.int64)
        columns = {
            name: None if column is None else _sums(number, column, len(names))
            for name, column in self._loads().items()
        }
        count = np.bincount(number, minlength=len(names))
        return [
            {"rack": rack, "brokers": int(count[index]), **_row(columns, index)} for index, rack in enumerate(names)
        ]

    def topics(self, limit: int) -> list[dict[str, Any]]:
        """The topics that copy most, in bytes if they are known: a row each, at most ``limit``."""
        targets, copied = self.checked.plan.targets, self.copied
        size = copied if self.weights is None else copied * self._weight()
        totals = [_sums(targets.topic, column, len(targets.names)) for column in (size, copied)]
        partitions = np.bincount(targets.topic[self.moved], minlength=len(targets.names))
        order = np.lexsort((np.arange(len(totals[0])), -totals[0]))[:limit]
        return [
            {
                "topic": targets.names[index],
                "partitions": int(partitions[index]),
                "copied": int(totals[1][index]),
                "bytes": None if self.weights is None else int(totals[0][index]),
            }
            for index in order.tolist()
            if partitions[index]
        ]

    def largest(self, limit: int) -> list[dict[str, Any]]:
        """The partitions that copy most bytes, at most ``limit``; none if the sizes are unknown."""
        if self.weights is None:
            return []
        copied, targets = self.copied * self._weight(), self.checked.plan.targets
        order = np.lexsort((np.arange(len(copied)), -copied))[:limit]
        return [
            {
                "topic": targets.names[targets.topic[position]],
                "partition": int(targets.partition[position]),
                "replicas": self.checked.current[position].tolist(),
                "target": targets.replicas[position].tolist(),
                "bytes": int(copied[position]),
            }
            for position in order.tolist()
            if copied[position]
        ]

    def partitions(self) -> Iterator[dict[str, Any]]:
        """A row for each partition that the plan changes, in its order, with the bytes that are copied."""
        size = None if self.weights is None else (self.copied * self._weight()).tolist()
        for position, row in enumerate(self.checked.partition_rows()):
            if self.moved[position] and row.change != "none":
                yield {**asdict(row), "bytes": None if size is None else size[position]}

    def request_rows(self) -> list[tuple[str, str]]:
        """The fields of the request that differ from their defaults, with their values in words."""
        if self.request is None:
            return [("check", f"the plan {self.checked.plan.name} as it is")]
        default = PlanRequest(rebalance=True)
        rows = []
        for field in fields(PlanRequest):
            value = getattr(self.request, field.name)
            if field.name == "weights":
                if value is not None:
                    rows.append(
                        (
                            "sizes",
                            f"{counted(len(value), 'partition')}, {counted(int(value.sum()), 'byte')} without copies",
                        )
                    )
            elif value is True or (field.name != "rebalance" and value != getattr(default, field.name)):
                rows.append((field.name.replace("_", " "), _words(value)))
        return rows

    def _weight(self) -> Int64:
        """(k,) bytes of a replica of each partition of the plan, 0 where the snapshot lacks it."""
        rows = self.checked.rows
        if self.weights is None or not len(self.weights):
            return np.zeros(len(rows), np.int64)
        weight: Int64 = np.where(rows >= 0, self.weights[rows], 0)
        return weight

    def _loads(self) -> dict[str, Int64 | None]:
        """(b,) columns ``KIND_LOAD`` by broker, for replicas, leaders and bytes; None where sizes are unknown."""
        ids, moved = np.array(list(self.racks), np.int32), np.flatnonzero(self.moved).astype(np.int32)
        columns: dict[str, Int64 | None] = {}
        for kind, weight in (("replicas", None), ("bytes", self.weights)):
            loads = replica_loads(self.checked, ids, moved, weight)
            known = kind == "replicas" or weight is not None
            columns |= {f"{kind}_{name}": load if known else None for name, load in loads.items()}
        leaders = leader_loads(self.checked, ids, moved)
        return columns | {"leaders_before": leaders[0], "leaders_after": leaders[1]}


def _sums(group: Int32 | Int64, values: Int64, count: int) -> Int64:
    """(count,) sums of values by group; exact up to 2^53."""
    return np.bincount(group, values.astype(np.float64), minlength=count).astype(np.int64)


def _row(columns: Mapping[str, Int64 | None], index: int) -> dict[str, int | None]:
    return {name: None if column is None else int(column[index]) for name, column in columns.items()}


def _words(value: object) -> str:
    """A value of a request as a reader writes it."""
    if value is True:
        return "yes"
    if isinstance(value, PlanGoal):
        return value.name
    if isinstance(value, tuple) and all(isinstance(item, CostTerm) for item in value):
        return ", ".join(term.name for term in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{'others' if key is None else key}: {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
