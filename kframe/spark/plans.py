"""Reassignment plans for the clusters of a fleet, which are those of ``kframe.plans.generate``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict

from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.model.lists import members
from kframe.plans.generate import PlanProposal, PlanRequest, plan
from kframe.plans.generate.report import report_document
from kframe.plans.generate.sizes import read_weights
from kframe.snapshot import Snapshot
from kframe.spark.fleet import fingerprint, inputs_of
from kframe.spark.play import installed
from kframe.spark.row_types import FleetPlanRow
from kframe.spark.schema import INT, INTS, LONG, TEXT, FleetTable, columns_of
from kframe.spark.stages import Result, Scenario, Stage

#: A row a cluster: what its plan copies, in ``unit``, and what every plan copies at least.
PLANS: Final = FleetTable("plans", columns_of(FleetPlanRow), ("cluster",))
#: A row a partition that the plan of a cluster changes.
PLAN_MOVES: Final = FleetTable(
    "plan_moves",
    pa.schema(
        [
            ("cluster", TEXT),
            ("topic", TEXT),
            ("partition", INT),
            ("replicas", INTS),
            ("target", INTS),
            ("adding", INTS),
            ("removing", INTS),
            ("observers", INTS),
            ("bytes", LONG),
        ]
    ),
    ("cluster", "topic", "partition"),
)
_SIZES: Final = ("parquet", "csv", "json")


@dataclass(frozen=True)
class PlanningStage(Stage):
    """Makes plans: ``goals`` are fields of a ``PlanRequest`` for every cluster, ``sizes`` the folder of the sizes of
    partitions.

    The sizes of cluster ``east`` are in ``east.parquet``, ``east.csv`` or ``east.json``, as ``read_weights`` reads
    them. ``goal`` and ``cost_terms`` are names of plugins: each executor loads those that are installed there, and in
    ``plugins_dir``, except for the ``disabled`` ones.
    """

    goals: Mapping[str, Any]
    sizes: str | None = None
    goal: str | None = None
    cost_terms: tuple[str, ...] = ()
    plugins_dir: str | None = None
    disabled: tuple[str, ...] = ()
    tables: tuple[FleetTable, ...] = (PLANS, PLAN_MOVES)

    def settings(self) -> Any:
        """See ``Stage``."""
        return repr([getattr(self, field.name) for field in fields(self) if field.name != "tables"])

    def inputs(self, cluster: str, known: str | None) -> str | None:
        """See ``Stage``. The sizes of a cluster are an input."""
        if known is None or self.sizes is None:
            return known
        try:
            file = self.sizes_of(cluster)
        except InputError:
            return known  # The task reports it.
        return f"{known}-{fingerprint(inputs_of(str(file)))}"

    def results(
        self, cluster: str, content: Snapshot, scenarios: Sequence[Scenario], tables: Collection[FleetTable]
    ) -> Iterator[Result]:
        """See ``Stage``. Raises PluginError for a goal or cost term that is not installed here."""
        try:
            proposal = self.proposal(cluster, content)
        except InputError as problem:
            yield str(problem)
            return
        rows = {PLANS: plan_row, PLAN_MOVES: move_rows}
        yield {table: rows[table](cluster, proposal) for table in tables}

    def request(self) -> PlanRequest:
        """The request without weights. Raises PluginError for a goal or cost term that is not installed here."""
        terms: dict[str, Any] = {}
        if self.goal is not None or self.cost_terms:
            registry = installed(self.disabled, self.plugins_dir)
            terms["goal"] = None if self.goal is None else registry.goal(self.goal)
            terms["cost_terms"] = tuple(map(registry.cost_term, self.cost_terms))
        return PlanRequest(**self.goals, **terms)

    def sizes_of(self, cluster: str) -> Path | None:
        """The file of a cluster's sizes; None if no sizes are requested. Raises InputError if it is missing."""
        if self.sizes is None:
            return None
        files = [Path(self.sizes) / f"{cluster}.{ending}" for ending in _SIZES]
        for file in files:
            if file.is_file():
                return file
        raise InputError(f"{self.sizes}/{cluster}", "no sizes of the cluster", f"a file .{', .'.join(_SIZES)}")

    def proposal(self, cluster: str, snapshot: Snapshot) -> PlanProposal:
        """The plan of a cluster. Raises InputError if the request does not suit it, PluginError for a plugin."""
        file = self.sizes_of(cluster)
        weights = None if file is None else read_weights(str(file), snapshot)
        return plan(snapshot, replace(self.request(), weights=weights))


def plan_row(cluster: str, proposal: PlanProposal) -> pa.Table:
    """The row of PLANS of a plan."""
    document = report_document(proposal)
    moves = document.moves
    row = FleetPlanRow(
        cluster=cluster,
        **asdict(document.partitions),
        moves=moves.replicas,
        bytes=moves.cost - moves.term_cost if moves.unit == "bytes" else None,
        unit=moves.unit,
        cost=moves.cost,
        bound=moves.bound,
        gap=moves.gap,
        exact=moves.exact,
        targets_met=document.targets_met,
        leader_changes=moves.leaders,
        **asdict(document.racks),
        summary=document.summary,
        proof=document.proof,
    )
    return pa.Table.from_pylist([asdict(row)], PLANS.schema)


def move_rows(cluster: str, proposal: PlanProposal) -> pa.Table:
    """The rows of PLAN_MOVES of a plan, in the order of the snapshot."""
    problem, rows = proposal.problem, proposal.rows
    topics, ids = problem.snapshot.topics, problem.brokers.ids
    before, after = problem.original.take(rows), proposal.after.take(rows)
    copied = proposal.copied[rows] * problem.weight[rows]
    observers = proposal.plan.observers
    names = pa.array(topics.names, TEXT)
    lists = {
        "replicas": before,
        "target": after,
        "adding": after.keep(~members(after, before)),
        "removing": before.keep(~members(before, after)),
    }
    columns = {
        "cluster": pa.repeat(pa.scalar(cluster, TEXT), len(rows)),
        "topic": names.take(pa.array(topics.topic_of_rows()[rows])),
        "partition": pa.array(topics.partition_of_rows()[rows].astype(np.int32)),
        **{name: _list_array(Ragged(part.offsets, ids[part.values])) for name, part in lists.items()},
        "observers": pa.nulls(len(rows), INTS) if observers is None else _list_array(observers),
        "bytes": pa.nulls(len(rows), LONG) if problem.request.weights is None else pa.array(copied, LONG),
    }
    return pa.table(columns, PLAN_MOVES.schema)


def _list_array(lists: Ragged) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(lists.offsets, INT), pa.array(lists.values, INT))
