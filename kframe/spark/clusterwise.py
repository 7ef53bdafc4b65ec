"""Stages of the pipeline that evaluate clusters without a scenario, written by cluster. A rerun resumes them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from kframe.errors import SnapshotError
from kframe.spark.fleet import staging
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import Mark, Marks, PendingParts, StageFrames, Writing, part_of_cluster
from kframe.spark.opening import Fleet, without
from kframe.spark.rules import VIOLATIONS
from kframe.spark.schema import TEXT, FleetTable
from kframe.spark.session import interpreted
from kframe.spark.sweeping import FAILURES, PROBLEM, Sweeping, sweep, sweep_whole
from kframe.spark.tasks import map_inputs
from kframe.spark.validate import validate, validate_whole
from kframe.spark.whole import WHOLE_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROBLEMS: Final = FleetTable("problems", pa.schema([("cluster", TEXT), ("problem", TEXT)]))
#: Returns the tables of a cluster and its problems. The tables are written if there are no problems.
OfCluster: TypeAlias = Callable[[ClusterInput], tuple[Mapping[FleetTable, pa.Table], list[str]]]


@dataclass(frozen=True)
class _Work:
    """Functions that make rows of ``table`` of frames, and of one whole cluster. They add a column ``problem``; rows
    with a problem are not written."""

    table: FleetTable
    of_frames: Callable[[Mapping[str, DataFrame]], DataFrame]
    of_cluster: Callable[[ClusterInput], pa.Table]


def swept(session: SparkSession, fleet: Fleet, how: Sweeping, writing: Writing) -> AbstractContextManager[StageFrames]:
    """Sweep the clusters that are not written yet, or with force all, and write their rows of FAILURES.

    Clusters that cannot be swept have a row in ``StageFrames.problems`` (``cluster``, ``problem``) and are not written.
    """

    def of_frames(tables: Mapping[str, DataFrame]) -> DataFrame:
        partitions, brokers, clusters = (tables[name] for name in ("partitions", "brokers", "clusters"))
        return sweep(partitions, brokers, clusters, how.config, depth=how.depth, racks=how.racks, by=how.by)

    def of_cluster(cluster: ClusterInput) -> pa.Table:
        return sweep_whole(cluster.cluster, cluster.snapshot(), how)

    return _stage(session, fleet, writing, _Work(FAILURES, of_frames, of_cluster), asdict(how))


def validated(session: SparkSession, fleet: Fleet, writing: Writing) -> AbstractContextManager[StageFrames]:
    """Validate the clusters that are not written yet, or with force all, and write their rows of VIOLATIONS."""

    def of_frames(tables: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as f

        return validate(tables).withColumn(PROBLEM, f.lit(None).cast("string"))

    def of_cluster(cluster: ClusterInput) -> pa.Table:
        rows = validate_whole(cluster.cluster, cluster.tables())
        return rows.append_column(PROBLEM, pa.nulls(rows.num_rows, TEXT))

    return _stage(session, fleet, writing, _Work(VIOLATIONS, of_frames, of_cluster), None)


@contextmanager
def _stage(session: SparkSession, fleet: Fleet, writing: Writing, work: _Work, how: Any) -> Iterator[StageFrames]:
    """With an output, one task evaluates, writes and marks each KRaft cluster and each other cluster of up to
    WHOLE_ROWS partitions. The remaining clusters are evaluated as frames."""
    names = sorted(fleet.names())
    store = None if writing.out is None else Marks(writing.out, work.table.name)
    marks = {part_of_cluster(name): Mark.of(how, fleet.inputs.get(name)) for name in names}
    if store is not None:
        writing.planned(store, marks)
    pending = PendingParts.of(store, marks, writing.force)
    todo = [name for name in names if part_of_cluster(name) in pending.marks]
    problem_rows: list[dict[str, str]] = []
    if store is not None:
        small = [cluster for name in todo if (cluster := fleet.clusters.get(name)) and not cluster.is_cut(WHOLE_ROWS)]
        problem_rows = write_clusters(session, store, small, _single_table(work), pending.marks)
        todo = sorted({*todo} - {cluster.cluster for cluster in small})
    result = None
    problems = session.createDataFrame(pa.Table.from_pylist(problem_rows, PROBLEMS.schema), PROBLEMS.ddl)
    try:
        if todo or store is None:
            result = work.of_frames({name: without(frame, {*names} - {*todo}) for name, frame in fleet.tables.items()})
            result.persist()
            failed = result.where(f"{PROBLEM} is not null").select("cluster", PROBLEM)
            problems = problems.unionByName(failed)
            rows = result.where(f"{PROBLEM} is null").select(*work.table.schema.names)
            if store is not None:
                failed_parts = {part_of_cluster(name) for name in failed.toArrow()["cluster"].to_pylist()}
                due = {part_of_cluster(name) for name in todo} - failed_parts
                store.write({work.table: rows}, {part: pending.marks[part] for part in due}, ("cluster",))
        if store is not None:
            rows = store.read(session, work.table, marks)
        yield StageFrames(rows, problems, tuple(name for name in names if part_of_cluster(name) in pending.changed))
    finally:
        if result is not None:
            result.unpersist()


def write_clusters(
    session: SparkSession, store: Marks, clusters: Sequence[ClusterInput], of_cluster: OfCluster,
    marks: Mapping[Path, Mark],
) -> list[dict[str, str]]:  # fmt: skip
    """Evaluate, write and mark clusters. Return ``cluster`` and ``problem`` of those that cannot be evaluated."""
    if not clusters:
        return []
    name, out = store.name, store.out.absolute()
    with staging(out) as staged, interpreted(session):

        def writes(inputs: Iterator[ClusterInput]) -> Iterator[pa.RecordBatch]:
            store = Marks(out, name)
            for cluster in inputs:
                problems = _write(store, cluster, of_cluster, marks, staged / uuid.uuid4().hex)
                rows = [{"cluster": cluster.cluster, "problem": problem} for problem in problems]
                yield from pa.Table.from_pylist(rows, PROBLEMS.schema).to_batches()

        results = map_inputs(session, clusters, writes, PROBLEMS.ddl).toArrow()
        problem_rows: list[dict[str, str]] = results.to_pylist()
        return problem_rows


def _write(
    store: Marks, cluster: ClusterInput, of_cluster: OfCluster, marks: Mapping[Path, Mark], staged: Path
) -> list[str]:
    """Write and mark one cluster. Return the problems if it cannot be evaluated."""
    try:
        tables, problems = of_cluster(cluster)
    except SnapshotError as problem:
        if not cluster.ingested:
            raise
        return [str(problem)]
    if not problems:
        part = part_of_cluster(cluster.cluster)
        store.put(part, tables, marks[part], staged)
    return problems


def _single_table(work: _Work) -> OfCluster:
    """``write_clusters`` for a table with a column ``problem``."""
    table, of_cluster = work.table, work.of_cluster

    def tables_of(cluster: ClusterInput) -> tuple[Mapping[FleetTable, pa.Table], list[str]]:
        rows = of_cluster(cluster)
        return {table: rows.select(table.schema.names)}, rows[PROBLEM].drop_null().to_pylist()

    return tables_of
