"""The effect of a plan on brokers, racks and topics, for the reviewer who approves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from msgspec.structs import asdict

from kframe.model.arrays import Bool, Int64
from kframe.model.elections import LeaderSelector
from kframe.model.texts import counted
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import leader_loads, replica_loads
from kframe.plans.check.rules import CheckedPlan
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

    @property
    def copied_bytes(self) -> Int64 | None:
        """(k,) bytes that are copied for each partition of the plan; None if sizes are unknown."""
        if self.weights is None:
            return None
        rows = self.checked.rows
        return self.copied * np.where(rows >= 0, np.append(self.weights, 0)[rows], 0)

    def brokers(self) -> list[dict[str, Any]]:
        """A row for each broker, ascending by id: replicas, preferred leaders and bytes. Bytes are None if unknown."""
        ids, moved = np.array(list(self.racks), np.int32), np.flatnonzero(self.moved).astype(np.int32)
        columns: dict[str, list[int | None]] = {}
        for kind, weight in (("replicas", None), ("bytes", self.weights)):
            known = kind == "replicas" or weight is not None
            for name, loads in replica_loads(self.checked, ids, moved, weight).items():
                columns[f"{kind}_{name}"] = loads.tolist() if known else [None] * len(ids)
        for name, leaders in zip(("before", "after"), leader_loads(self.checked, ids, moved), strict=True):
            columns[f"leaders_{name}"] = leaders.tolist()
        return [
            {"broker_id": broker_id, "rack": rack, **{name: column[index] for name, column in columns.items()}}
            for index, (broker_id, rack) in enumerate(self.racks.items())
        ]

    def rack_rows(self) -> list[dict[str, Any]]:
        """A row for each rack, by name, with the sums of its brokers. Brokers without a rack come last."""
        rows, all_brokers = [], self.brokers()
        for rack in sorted(set(self.racks.values()), key=lambda rack: (rack is None, rack)):
            brokers = [row for row in all_brokers if row["rack"] == rack]
            loads = {name: [row[name] for row in brokers] for name in brokers[0] if name not in ("broker_id", "rack")}
            sums = {name: None if None in values else sum(values) for name, values in loads.items()}
            rows.append({"rack": rack, "brokers": len(brokers), **sums})
        return rows

    def topics(self, limit: int) -> list[dict[str, Any]]:
        """The topics that copy most, in bytes if they are known: a row each, at most ``limit``."""
        targets, size = self.checked.plan.targets, self.copied_bytes
        count = len(targets.names)
        copied = np.bincount(targets.topic, self.copied, count).astype(np.int64)
        total = copied if size is None else np.bincount(targets.topic, size, count).astype(np.int64)
        partitions = np.bincount(targets.topic[self.moved], minlength=count)
        return [
            {
                "topic": targets.names[index],
                "partitions": int(partitions[index]),
                "copied": int(copied[index]),
                "bytes": None if size is None else int(total[index]),
            }
            for index in np.argsort(-total, kind="stable")[:limit].tolist()
            if partitions[index]
        ]

    def largest(self, limit: int) -> list[dict[str, Any]]:
        """The partitions that copy most bytes, at most ``limit``; none if the sizes are unknown."""
        size, targets = self.copied_bytes, self.checked.plan.targets
        if size is None:
            return []
        return [
            {
                "topic": targets.names[targets.topic[position]],
                "partition": int(targets.partition[position]),
                "replicas": self.checked.current[position].tolist(),
                "target": targets.replicas[position].tolist(),
                "bytes": int(size[position]),
            }
            for position in np.argsort(-size, kind="stable")[:limit].tolist()
            if size[position]
        ]

    def partitions(self) -> Iterator[dict[str, Any]]:
        """A row for each partition that the plan changes, in its order, with the bytes that are copied."""
        size = self.copied_bytes
        for position, row in enumerate(self.checked.partition_rows()):
            if self.moved[position] and row.change != "none":
                yield {**asdict(row), "bytes": None if size is None else int(size[position])}

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
                    size = counted(int(value.sum()), "byte")
                    rows.append(("sizes", f"{counted(len(value), 'partition')}, {size} without copies"))
            elif value is True or (field.name != "rebalance" and value != getattr(default, field.name)):
                rows.append((field.name.replace("_", " "), _words(value)))
        return rows


def _words(value: object) -> str:
    """A value of a request as a reader writes it."""
    if value is True:
        return "yes"
    if isinstance(value, (PlanGoal, LeaderSelector)):
        return value.name
    if isinstance(value, tuple) and all(isinstance(item, CostTerm) for item in value):
        return ", ".join(term.name for term in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{'others' if key is None else key}: {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
