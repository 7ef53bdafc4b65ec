"""Reassignment plans for the clusters of a fleet: one task reads a whole cluster and makes its plan.

The plans are those of ``kframe.plans.generate``. Executors yield or write the partitions of a plan; the driver only
sees the summaries.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kframe.errors import InputError, SnapshotError
from kframe.model.columns import Ragged
from kframe.model.lists import members
from kframe.plans.generate import PlanProposal, PlanRequest, plan
from kframe.plans.generate.report import report_document
from kframe.plans.generate.sizes import read_weights
from kframe.registry.registry import Registry, build_registry
from kframe.snapshot import Snapshot
from kframe.spark.clusterwise import PROBLEMS, write_clusters
from kframe.spark.fleet import inputs_of
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import Mark, Marks, PendingParts, Writing, part_of_cluster
from kframe.spark.opening import Fleet, fingerprint
from kframe.spark.schema import FLAG, INT, INTS, LONG, TEXT, FleetTable, with_columns_of
from kframe.spark.tasks import map_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A row a cluster: what its plan copies, in ``unit``, and what every plan copies at least. ``gap`` is null where the
#: request is not met, ``bytes`` without sizes, partitions in too few racks without racks.
PLANS: Final = FleetTable(
    "plans",
    pa.schema(
        [("cluster", TEXT), ("scope", LONG), ("changed", LONG), ("reassigning", LONG), ("unassignable", LONG),
         ("unmet", LONG), ("leaderless", LONG), ("moves", LONG), ("bytes", LONG), ("unit", TEXT),
         ("cost", LONG), ("bound", LONG), ("gap", pa.float64()), ("exact", FLAG),
         ("targets_met", FLAG), ("leader_changes", LONG), ("crowded_before", LONG), ("crowded_after", LONG),
         ("summary", TEXT), ("proof", TEXT)]
    ),
    ("cluster",),
)  # fmt: skip
#: A row a partition that the plan of a cluster changes. ``observers`` are those of ``target``; null where no changed
#: partition has any. ``bytes`` are copied; null without sizes.
PLAN_MOVES: Final = FleetTable(
    "plan_moves",
    pa.schema(
        [("cluster", TEXT), ("topic", TEXT), ("partition", INT), ("replicas", INTS), ("target", INTS),
         ("adding", INTS), ("removing", INTS), ("observers", INTS), ("bytes", LONG)]
    ),
    ("cluster", "topic", "partition"),
)  # fmt: skip
#: Rows of a plan in one frame: the first row of a cluster has its ``plan`` or its ``problem``; each has some ``moves``.
PLANNED: Final = FleetTable(
    "planned",
    pa.schema(
        [*PROBLEMS.schema, ("plan", pa.struct(list(PLANS.schema)[1:])),
         ("moves", pa.list_(pa.struct(list(PLAN_MOVES.schema)[1:])))]
    ),
)  # fmt: skip

#: Partitions in a row of PLANNED, at most.
_CHUNK_ROWS: Final = 16_384
_SIZES: Final = ("parquet", "csv", "json")


@dataclass(frozen=True)
class FleetRequest:
    """The plans of a fleet: ``goals`` are fields of a ``PlanRequest`` for every cluster, ``sizes`` the folder of the
    sizes of partitions.

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

    def request(self) -> PlanRequest:
        """The request without weights. Raises PluginError for a goal or cost term that is not installed here."""
        terms: dict[str, Any] = {}
        if self.goal is not None or self.cost_terms:
            registry = _registry(self.disabled, self.plugins_dir)
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


@functools.cache
def _registry(disabled: tuple[str, ...], plugins_dir: str | None) -> Registry:
    return build_registry(disabled, None if plugins_dir is None else Path(plugins_dir))


def plan_cluster(cluster: ClusterInput, fleet_request: FleetRequest) -> tuple[Mapping[FleetTable, pa.Table], list[str]]:
    """The tables PLANS and PLAN_MOVES of a cluster, and why it cannot be planned.

    Raises SnapshotError if the cluster cannot be read.
    """
    snapshot = cluster.snapshot()
    try:
        proposal = fleet_request.proposal(cluster.cluster, snapshot)
    except InputError as problem:
        return {}, [str(problem)]
    return {PLANS: plan_row(cluster.cluster, proposal), PLAN_MOVES: move_rows(cluster.cluster, proposal)}, []


def plan_row(cluster: str, proposal: PlanProposal) -> pa.Table:
    """The row of PLANS of a plan."""
    document = report_document(proposal)
    moves = document["moves"]
    row = {
        "cluster": cluster,
        **document["partitions"],
        **{name: moves[name] for name in ("unit", "cost", "bound", "gap", "exact")},
        "moves": moves["replicas"],
        "bytes": moves["cost"] - moves["term_cost"] if moves["unit"] == "bytes" else None,
        "leader_changes": moves["leaders"],
        "targets_met": document["targets_met"],
        **document["racks"],
        "summary": document["summary"],
        "proof": document["proof"],
    }
    return pa.Table.from_pylist([row], PLANS.schema)


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


def planned(session: SparkSession, clusters: Iterable[ClusterInput], fleet_request: FleetRequest) -> DataFrame:
    """The plans of clusters as rows of PLANNED. Cache it to read it more than once."""

    def plans_of(inputs: Iterator[ClusterInput]) -> Iterator[pa.RecordBatch]:
        for cluster in inputs:
            yield from _planned_rows(cluster, fleet_request)

    return map_inputs(session, list(clusters), plans_of, PLANNED.ddl)


def plans(frame: DataFrame) -> DataFrame:
    """The summaries in rows of PLANNED: PLANS."""
    return frame.where("plan is not null").select("cluster", "plan.*").select(*PLANS.schema.names)


def moves(frame: DataFrame) -> DataFrame:
    """The partitions in rows of PLANNED: PLAN_MOVES."""
    from pyspark.sql import functions as f

    return frame.select("cluster", f.inline("moves")).select(*PLAN_MOVES.schema.names)


def problems(frame: DataFrame) -> DataFrame:
    """The clusters without a plan in rows of PLANNED, with their ``problem``."""
    return frame.where("problem is not null").select("cluster", "problem")


@dataclass(frozen=True, slots=True)
class FleetPlans:
    """The plans of a fleet as frames of PLANS and PLAN_MOVES, and ``problem`` by ``cluster`` of those without a plan.

    ``changed`` names the clusters that were planned again because their input has changed.
    """

    plans: DataFrame
    moves: DataFrame
    problems: DataFrame
    changed: tuple[str, ...] = ()


@contextmanager
def plan_fleet(
    session: SparkSession, fleet: Fleet, fleet_request: FleetRequest, writing: Writing
) -> Iterator[FleetPlans]:
    """Plan the clusters that are not written yet, or with ``force`` all, and write their rows of PLANS and PLAN_MOVES.

    Without an output nothing is written, and the frames are those of ``planned``.
    """
    names = sorted(fleet.clusters)
    if writing.out is None:
        frame = planned(session, [fleet.clusters[name] for name in names], fleet_request).persist()
        try:
            yield FleetPlans(plans(frame), moves(frame), problems(frame))
        finally:
            frame.unpersist()
        return
    store = Marks(writing.out, PLANS.name)
    marks = {
        part_of_cluster(name): Mark.of(repr(fleet_request), _fingerprint(fleet, name, fleet_request)) for name in names
    }
    writing.planned(store, marks)
    pending = PendingParts.of(store, marks, writing.force)
    due = [fleet.clusters[name] for name in names if part_of_cluster(name) in pending.marks]
    rows = write_clusters(session, store, due, lambda cluster: plan_cluster(cluster, fleet_request), pending.marks)
    yield FleetPlans(
        store.read(session, PLANS, marks), store.read(session, PLAN_MOVES, marks),
        session.createDataFrame(pa.Table.from_pylist(rows, PROBLEMS.schema), PROBLEMS.ddl),
        tuple(name for name in names if part_of_cluster(name) in pending.changed),
    )  # fmt: skip


def _planned_rows(cluster: ClusterInput, fleet_request: FleetRequest) -> Iterator[pa.RecordBatch]:
    """The rows of PLANNED of a cluster. Raises SnapshotError for a source that cannot be read."""
    try:
        tables, reasons = plan_cluster(cluster, fleet_request)
    except SnapshotError as problem:
        if not cluster.ingested:
            raise
        tables, reasons = {}, [str(problem)]
    for reason in reasons:
        yield _planned_row(cluster.cluster, problem=reason)
    if not tables:
        return
    (row,) = tables[PLANS].drop_columns(["cluster"]).to_pylist()
    yield _planned_row(cluster.cluster, plan=row)
    for batch in tables[PLAN_MOVES].drop_columns(["cluster"]).to_batches(max_chunksize=_CHUNK_ROWS):
        structs = batch.to_struct_array()
        chunk = pa.ListArray.from_arrays(pa.array([0, len(structs)], INT), structs)
        columns = {"cluster": pa.array([cluster.cluster], TEXT), "moves": chunk}
        yield from with_columns_of(PLANNED.schema, pa.table(columns)).to_batches()


def _planned_row(cluster: str, **columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"cluster": cluster, **columns}], PLANNED.schema)


def _list_array(lists: Ragged) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(lists.offsets, INT), pa.array(lists.values, INT))


def _fingerprint(fleet: Fleet, cluster: str, fleet_request: FleetRequest) -> str | None:
    """The fingerprint of a cluster's input, with its sizes; None if it is not known."""
    known = fleet.inputs.get(cluster)
    if known is None or fleet_request.sizes is None:
        return known
    try:
        file = fleet_request.sizes_of(cluster)
    except InputError:
        return known  # The task reports it.
    return f"{known}-{fingerprint(inputs_of(str(file)))}"
