"""Stages of the pipeline: what is made of each cluster of a fleet, by one task that reads the whole cluster.

A task has whole clusters, or one cluster with a part of its scenarios or of its only result. Only such parts are
shuffled, to be joined. With an output directory
each result is written and marked as soon as it is complete (``kframe.spark.marks``), and a rerun makes what has no mark
or another one. The directory must be the same one for the driver and all executors.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from kframe.errors import InputError, SnapshotError
from kframe.ports.progress import Progress, ignore_progress
from kframe.spark.fleet import staging
from kframe.spark.inputs import ClusterInput, ClusterRows, Fleet
from kframe.spark.marks import Mark, Marks, Writing, part_of
from kframe.spark.row_types import LeftOutCluster
from kframe.spark.schema import SCENARIOS, TEXT, FleetTable, to_stream
from kframe.spark.sessions import interpreted
from kframe.spark.tasks import cores_of, map_inputs, tasks_max

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A row of SCENARIOS; None where a stage has no scenarios.
Scenario: TypeAlias = "Mapping[str, Any] | None"
#: The tables of a cluster, or of a scenario on it; the problem if it has none.
Result: TypeAlias = "Mapping[FleetTable, pa.Table] | str"
#: A cluster and a scenario.
_Pair: TypeAlias = tuple[str, str | None]

#: A row a result. ``data`` is an Arrow stream of its summary; null where that was written, or for a ``problem``.
RESULTS: Final = FleetTable(
    "results",
    pa.schema([("cluster", TEXT), ("scenario", TEXT), ("problem", TEXT), ("data", pa.binary())]),
    ("cluster", "scenario"),
)


class Stage:
    """What is made of each cluster, as plain data that can be sent to executors."""

    tables: tuple[FleetTable, ...]
    """All tables that it makes; the first is the summary."""

    def settings(self) -> Any:
        """All that its results depend on besides the input, as plain data."""
        return None

    def inputs(self, cluster: str, known: str | None) -> str | None:
        """The fingerprint of all inputs of a cluster. ``known`` is that of the cluster itself; None if unknown."""
        return known

    def read(self, cluster: ClusterInput | ClusterRows) -> Any:
        """What ``results`` needs of a cluster. Raises SnapshotError."""
        return cluster.snapshot()

    def results(
        self, cluster: str, content: Any, scenarios: Sequence[Scenario], tables: Collection[FleetTable]
    ) -> Iterator[Result]:
        """A result of each scenario with these tables. ``content`` is what ``read`` has returned."""
        raise NotImplementedError

    def parts_max(self, mode: str) -> int:
        """How many tasks can share one result of a cluster in a mode."""
        return 1

    def part(self, number: int, count: int) -> Stage:
        """The stage of one of ``count`` parts of each result: ``joined`` makes the result of their tables."""
        raise NotImplementedError

    def joined(self, cluster: str, parts: Sequence[pa.Table]) -> Result:
        """The result of a cluster from the tables of all its parts."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Unit:
    """A cluster, and the scenarios on it that one task plays, or one of the ``parts`` of each of them."""

    cluster: ClusterInput
    scenarios: tuple[Scenario, ...]
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Output:
    """Where results are written. ``staged`` is a directory there for files that are not complete yet."""

    path: str
    staged: str
    marks: Mapping[Path, Mark]


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of a stage: its summary, and the problems (rows of cluster, scenario, problem).

    ``changed`` names the clusters that were done again because their input has changed; ``pairs`` are the clusters and
    scenarios that were requested.
    """

    table: FleetTable
    problems: tuple[dict[str, Any], ...]
    changed: tuple[str, ...]
    pairs: frozenset[_Pair]
    store: Marks | None
    """The marks of the output directory, if there is one."""
    _results: DataFrame | pa.Table
    """Rows of RESULTS; those with ``data`` are the summary where nothing is written."""

    @property
    def clusters(self) -> set[str]:
        """The clusters that were requested."""
        return {cluster for cluster, _ in self.pairs}

    def parts(self) -> Iterator[pa.Table]:
        """The summary of each cluster and scenario that has one, ascending by the table's key."""
        order = [(name, "ascending") for name in self.table.key]
        for rows in self._stored() if self.store is None else self._written(self.store):
            yield rows.sort_by(order) if order else rows

    def rows(self) -> Iterator[dict[str, Any]]:
        """The summary, row by row. Holds the rows of one cluster and scenario at a time."""
        for part in self.parts():
            yield from part.to_pylist()

    def write_left_out(self, parts: Iterable[LeftOutCluster], clusters: Set[str]) -> None:
        """Save the clusters and scenarios without rows, and why, in the output directory, if any, for ``report``."""
        if self.store is not None:
            scenarios = {scenario for _, scenario in self.pairs if scenario is not None}
            self.store.write_left_out(parts, clusters, scenarios)

    def _written(self, store: Marks) -> Iterator[pa.Table]:
        for part in (part_of(*pair) for pair in sorted(self.pairs)):
            if store[part] is not None:
                yield store.rows(self.table, part)

    def _stored(self) -> Iterator[pa.Table]:
        order = ["cluster", "scenario"]
        streams: Iterable[Any]
        if isinstance(self._results, pa.Table):
            made = self._results.filter(self._results["data"].is_valid())
            streams = made.sort_by([(name, "ascending") for name in order])["data"].to_pylist()
        else:
            rows = self._results.where("data is not null").orderBy(*order).select("data").toLocalIterator()
            streams = (bytes(data) for (data,) in rows)
        for stream in streams:
            yield pa.ipc.open_stream(stream).read_all().cast(self.table.schema)


@contextmanager
def run_stage(
    session: SparkSession | None,
    fleet: Fleet,
    stage: Stage,
    writing: Writing,
    scenarios: pa.Table | None = None,
    progress: Progress = ignore_progress,
) -> Iterator[StageResult]:
    """Do a stage for each cluster, or each of the ``scenarios`` (rows of SCENARIOS) on its clusters. Without a session
    this process does it, and reports its progress.

    Does what is not written yet, or with force everything, and writes it. Clusters and scenarios with a problem are
    left out. Raises InputError for a repeated scenario, or a scenario of an unknown cluster.
    """
    rows_by_pair = _scenarios_by_pair(fleet.names(), scenarios)
    summary = stage.tables[0]
    inputs = {name: stage.inputs(name, fleet.inputs.get(name)) for name in fleet.names()}
    marks = {part_of(*pair): Mark.of([row, stage.settings()], inputs[pair[0]]) for pair, row in rows_by_pair.items()}
    store = None if writing.out is None else Marks(writing.out, summary.name)
    if store is not None:
        writing.planned(store, marks)
    saved = {part: None if store is None else store[part] for part in marks}
    due: dict[str, list[Scenario]] = {}
    changed = set()
    for pair, row in rows_by_pair.items():
        mark, earlier = marks[part_of(*pair)], saved[part_of(*pair)]
        if writing.force or mark != earlier:
            due.setdefault(pair[0], []).append(row)
        if earlier is not None and mark.inputs != earlier.inputs:
            changed.add(pair[0])
    units = units_of(fleet.clusters, due, tasks_max(session), stage, cores_of(session))
    with _played(session, units, stage, marks, writing.out, progress) as results:
        problems = sorted(_problems(results), key=lambda row: (row["cluster"], row["scenario"] or ""))
        yield StageResult(summary, tuple(problems), tuple(sorted(changed)), frozenset(rows_by_pair), store, results)


@contextmanager
def _played(
    session: SparkSession | None,
    units: list[Unit],
    stage: Stage,
    marks: Mapping[Path, Mark],
    out: str | None,
    progress: Progress,
) -> Iterator[DataFrame | pa.Table]:
    """The rows of RESULTS of units, played once. They are few where results are written."""
    if out is None:
        with _rows(session, units, stage, None, progress) as results:
            yield results
        return
    path = Path(out).absolute()
    with staging(path) as staged:
        output = Output(str(path), str(staged), marks)
        with _rows(session, units, stage, output, progress) as results:
            written = results if isinstance(results, pa.Table) else results.toArrow()
    yield written


@contextmanager
def _rows(
    session: SparkSession | None, units: list[Unit], stage: Stage, output: Output | None, progress: Progress
) -> Iterator[DataFrame | pa.Table]:
    if session is None:
        total, rows = sum(len(unit.scenarios) for unit in units), []
        for row in play_units(units, stage, output):
            rows.append(row)
            progress(len(rows), total)
        yield pa.Table.from_batches(rows, RESULTS.schema)
        return
    with interpreted(session):
        results = _results(session, units, stage, output).persist()
        try:
            yield results
        finally:
            results.unpersist()


def _problems(results: DataFrame | pa.Table) -> list[dict[str, Any]]:
    names = ["cluster", "scenario", "problem"]
    if isinstance(results, pa.Table):
        return results.filter(results["problem"].is_valid()).select(names).to_pylist()  # type: ignore[no-any-return]
    return results.where("problem is not null").select(*names).toArrow().to_pylist()  # type: ignore[no-any-return]


def _results(session: SparkSession, units: list[Unit], stage: Stage, output: Output | None) -> DataFrame:
    def plays(inputs: Iterator[Unit]) -> Iterator[pa.RecordBatch]:
        return play_units(inputs, stage, output)

    results = map_inputs(session, units, plays, RESULTS.ddl)
    if all(unit.parts == 1 for unit in units):
        return results
    return joined_results(results, stage, output)


def units_of(
    clusters: Mapping[str, ClusterInput], due: Mapping[str, Sequence[Scenario]], tasks: int, stage: Stage, cores: int
) -> list[Unit]:
    """The scenarios of each cluster as units of work, the largest clusters first.

    Several units have parts of the scenarios of a cluster that is more than its share of the work of ``tasks`` tasks.
    If it has one scenario, or none, and the stage can divide its result, it has a unit for its share of the ``cores``.
    """
    sizes = {name: max(clusters[name].partitions or 0, 1) for name in due}
    work = sum(sizes[name] * len(rows) for name, rows in due.items())
    share = work / tasks
    units = []
    for name in sorted(due, key=lambda name: (-sizes[name], name)):
        rows = due[name]
        parts = (
            min(stage.parts_max(clusters[name].mode), math.ceil(sizes[name] * cores / work)) if len(rows) == 1 else 1
        )
        if parts > 1:
            units += [Unit(clusters[name], tuple(rows), part, parts) for part in range(parts)]
            continue
        count = min(len(rows), math.ceil(sizes[name] * len(rows) / share))
        bounds = [len(rows) * number // count for number in range(count + 1)]
        units += [Unit(clusters[name], tuple(rows[first:last])) for first, last in pairwise(bounds)]
    return units


def play_units(units: Iterable[Unit], stage: Stage, output: Output | None = None) -> Iterator[pa.RecordBatch]:
    """Do a stage for units, one after another. Rows of RESULTS.

    Raises SnapshotError for a source that cannot be read, PluginError for a plugin that is not installed here, and
    ConfigError for a setting.
    """
    for unit in units:
        name, played, target = unit.cluster.cluster, stage, output
        if unit.parts > 1:
            played, target = stage.part(unit.part, unit.parts), None
        tables = played.tables[:1] if target is None else played.tables
        for scenario, result in results_of(unit.cluster, played, unit.scenarios, tables):
            yield result_row(name, None if scenario is None else scenario["scenario"], result, tables[0], target)


def joined_results(results: DataFrame, stage: Stage, output: Output | None) -> DataFrame:
    """A row of RESULTS of each cluster and scenario from the rows of all its parts."""
    from pyspark.sql import functions as f

    grouped = results.groupBy("cluster", "scenario").agg(f.collect_list(f.struct("problem", "data")).alias("parts"))
    return grouped.mapInArrow(lambda batches: join_parts(batches, stage, output), RESULTS.ddl)


def join_parts(batches: Iterable[pa.RecordBatch], stage: Stage, output: Output | None) -> Iterator[pa.RecordBatch]:
    """Rows of RESULTS from rows with ``cluster``, ``scenario`` and the problems and data of its ``parts``. A part alone
    is complete."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        parts = row.pop("parts")
        problems = [part["problem"] for part in parts if part["problem"] is not None]
        if len(parts) == 1:
            yield pa.RecordBatch.from_pylist([row | parts[0]], RESULTS.schema)
            continue
        result = (
            problems[0]
            if problems
            else stage.joined(row["cluster"], [pa.ipc.open_stream(part["data"]).read_all() for part in parts])
        )
        yield result_row(row["cluster"], row["scenario"], result, stage.tables[0], output)


def result_row(
    cluster: str | None, scenario: str | None, result: Result, summary: FleetTable, output: Output | None
) -> pa.RecordBatch:
    """The row of RESULTS of a result, which is written to ``output`` if there is one."""
    row: dict[str, Any] = dict.fromkeys(RESULTS.schema.names) | {"cluster": cluster, "scenario": scenario}
    if isinstance(result, str):
        row["problem"] = result
    elif output is None:
        row["data"] = to_stream(result[summary])
    else:
        part, staged = part_of(cluster or "", scenario), Path(output.staged) / uuid.uuid4().hex
        Marks(output.path, summary.name).put(part, result, output.marks[part], staged)
    return pa.RecordBatch.from_pylist([row], RESULTS.schema)


def results_of(
    cluster: ClusterInput | ClusterRows, stage: Stage, scenarios: Sequence[Scenario], tables: Collection[FleetTable]
) -> Iterator[tuple[Scenario, Result]]:
    """Each scenario with its result on a cluster, which is read once."""
    # The log has a line for every election without a leader; the rows say the same.
    with _quiet(logging.getLogger("kframe.statechange")):
        try:
            content = stage.read(cluster)
        except SnapshotError as problem:
            if not cluster.ingested:
                raise
            yield from ((scenario, str(problem)) for scenario in scenarios)
            return
        yield from zip(scenarios, stage.results(cluster.cluster or "", content, scenarios, tables), strict=True)


@contextmanager
def _quiet(log: logging.Logger) -> Iterator[None]:
    """Without lines below CRITICAL in a log while the block runs."""
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _scenarios_by_pair(names: set[str], scenarios: pa.Table | None) -> dict[_Pair, Scenario]:
    """The scenarios of each cluster, its own and those of every cluster. Without ``scenarios``, each cluster."""
    if scenarios is None:
        return {(name, None): None for name in sorted(names)}
    rows_by_pair: dict[_Pair, Scenario] = {}
    for row in scenarios.select(SCENARIOS.schema.names).to_pylist():
        for cluster in sorted(names) if row["cluster"] is None else [row["cluster"]]:
            pair = cluster, row["scenario"]
            if cluster not in names:
                raise InputError(f"scenario {pair[1]}", f"cluster {cluster}", "a cluster of the fleet, or none for all")
            if pair in rows_by_pair:
                raise InputError(f"scenario {pair[1]}", f"another of that name for cluster {cluster}", "each name once")
            rows_by_pair[pair] = {**row, "cluster": cluster}
    return rows_by_pair
