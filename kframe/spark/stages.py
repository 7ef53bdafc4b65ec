"""Stages of the pipeline that play scenarios, written by cluster and scenario. A rerun resumes them.

Stages may share a directory: each has its own tables and its own marks (``kframe.spark.marks``), named by its summary.
What has no mark, or one of another scenario, setting or input, is done again. The directory must be the same one for
the driver and all executors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kframe.errors import InputError
from kframe.spark import failover
from kframe.spark.fleet import staging
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import LeftOutPart, Mark, Marks, PendingParts, Writing, part_of_scenario
from kframe.spark.opening import Fleet
from kframe.spark.play import ANNOUNCED, BROKER_COUNTS, CHANGES, CONDITIONS, IMPACTS, EngineSettings
from kframe.spark.requests import REQUESTS
from kframe.spark.scenarios import needs_whole
from kframe.spark.schema import SCENARIOS, FleetTable
from kframe.spark.whole import WHOLE_ROWS, Output, play_on_spark, read_summary, units_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Makes a table of rows of PLAYED, the facts of clusters and the engine.
Maker: TypeAlias = "Callable[[DataFrame, DataFrame, EngineSettings], DataFrame]"
_Row: TypeAlias = dict[str, Any]
#: A cluster and a scenario.
_Pair: TypeAlias = tuple[str, str]
#: The summary of a cluster and scenario: its rows, as a table or as RESULTS has them; the problems if it was not
#: played; None if it was written.
_Summary: TypeAlias = "pa.Table | bytes | tuple[str, ...] | None"


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of a stage: the rows of its summary, and the problems of clusters or scenarios (rows of cluster,
    scenario, problem). ``changed`` names the clusters that were played again because their input has changed."""

    table: FleetTable
    problems: tuple[_Row, ...]
    changed: tuple[str, ...]
    parts: Callable[[], Iterator[pa.Table]]
    """The summary of each cluster and scenario that could be played, ascending by the table's key."""
    pairs: frozenset[_Pair] = frozenset()
    """The clusters and scenarios that were to be played."""
    store: Marks | None = None
    """The marks of the output directory, if there is one."""

    @property
    def clusters(self) -> set[str]:
        """The clusters that have scenarios."""
        return {cluster for cluster, _ in self.pairs}

    def write_left_out(self, parts: Iterable[LeftOutPart], clusters: Set[str]) -> None:
        """Save the clusters and scenarios without rows, and why, in the output directory, if any, for ``report``."""
        if self.store is not None:
            self.store.write_left_out(parts, clusters, {scenario for _, scenario in self.pairs})

    def rows(self) -> Iterator[_Row]:
        """The summary, row by row. Holds the rows of one cluster and scenario at a time."""
        for part in self.parts():
            yield from part.to_pylist()


@dataclass(frozen=True, slots=True)
class Stage:
    """The tables of one stage, the PARTS that they need, and the table that is its summary."""

    makers: Mapping[FleetTable, Maker]
    parts: tuple[str, ...]
    summary: FleetTable
    encoded: bool = False
    """Whether encoded bodies are kept. Stages with the same tables differ in it."""

    def play(
        self, session: SparkSession, fleet: Fleet, scenarios: pa.Table, engine: EngineSettings, writing: Writing,
        whole_rows: int = WHOLE_ROWS,
    ) -> StageResult:  # fmt: skip
        """Play everything that is not written yet, or with force everything, and write it.

        One task plays a cluster of up to ``whole_rows`` partitions, or several tasks with some scenarios each. Larger
        clusters in ZooKeeper mode follow one by one, cut into shards. Clusters and scenarios with a problem are left
        out. The driver holds one row for each scenario of each cluster. Raises InputError for a repeated scenario, or a
        scenario of an unknown cluster.
        """
        names = fleet.names()
        rows_by_pair = _scenarios_by_cluster(names, scenarios)
        engine_of_stage = replace(engine, parts=self.parts)
        marks = {
            part_of_scenario(*pair): Mark.of([row, asdict(engine_of_stage), "encoded" if self.encoded else ""],
                                             fleet.inputs.get(pair[0]))
            for pair, row in rows_by_pair.items()
        }  # fmt: skip
        store = None if writing.out is None else Marks(writing.out, self.summary.name)
        if store is not None:
            writing.planned(store, marks)
        pending = PendingParts.of(store, marks, writing.force)
        todo: dict[str, list[tuple[_Row, Mark]]] = {}
        for pair, row in rows_by_pair.items():
            part = part_of_scenario(*pair)
            if part in pending.marks:
                todo.setdefault(pair[0], []).append((row, pending.marks[part]))
        large = {name: todo.pop(name) for name in sorted(todo) if _is_large(fleet.clusters.get(name), whole_rows)}
        summaries = self._play_whole(session, fleet, todo, engine_of_stage, writing)
        for name, pairs in large.items():
            summaries.update(self._play_sharded(session, fleet, name, pairs, engine_of_stage, store))
        problems = tuple(
            {"cluster": pair[0], "scenario": pair[1], "problem": text}
            for pair, result in sorted(summaries.items()) if isinstance(result, tuple)
            for text in result
        )  # fmt: skip
        changed = sorted({pair[0] for pair in rows_by_pair if part_of_scenario(*pair) in pending.changed})
        return StageResult(
            self.summary, problems, tuple(changed), lambda: self._parts(sorted(rows_by_pair), summaries, store),
            frozenset(rows_by_pair), store,
        )  # fmt: skip

    def _play_whole(
        self, session: SparkSession, fleet: Fleet, todo: Mapping[str, list[tuple[_Row, Mark]]], engine: EngineSettings,
        writing: Writing,
    ) -> dict[_Pair, _Summary]:  # fmt: skip
        """Play clusters that one task can hold each, in one job."""
        units = units_of(fleet.clusters, todo)
        if writing.out is None:
            # Make only the summary.
            parts = tuple(name for name in self.parts if name in (self.summary.name, ANNOUNCED.name))
            output = Output((self.summary,), self.summary, self.encoded)
            return _summaries(play_on_spark(session, units, replace(engine, parts=parts), output))
        out = str(Path(writing.out).absolute())
        with staging(Path(out)) as staged:
            output = Output(tuple(self.makers), self.summary, self.encoded, out, str(staged))
            return _summaries(play_on_spark(session, units, engine, output))

    def _play_sharded(
        self, session: SparkSession, fleet: Fleet, cluster: str, pairs: list[tuple[_Row, Mark]], engine: EngineSettings,
        store: Marks | None,
    ) -> dict[_Pair, _Summary]:  # fmt: skip
        """Play one cluster in shards, on all cores."""
        tables = {name: table.where(table["cluster"] == cluster) for name, table in fleet.tables.items()}
        all_played = _played(session, tables, [row for row, _ in pairs], engine).persist()
        try:
            problems: dict[str, set[str]] = {}
            for row in failover.problems(all_played).toArrow().to_pylist():
                problems.setdefault(row["scenario"], set()).add(row["problem"])
            summaries: dict[_Pair, _Summary] = {
                (cluster, name): tuple(sorted(texts)) for name, texts in problems.items()
            }
            marks = {row["scenario"]: mark for row, mark in pairs if row["scenario"] not in problems}
            valid = all_played.where(all_played["scenario"].isin(sorted(marks)))
            facts = failover.cluster_facts(tables["brokers"], tables["clusters"])
            if store is None:
                rows = self.makers[self.summary](valid, facts, engine).toArrow()
                return summaries | {(cluster, name): rows.filter(pc.equal(rows["scenario"], name)) for name in marks}
            frames = {table: make(valid, facts, engine) for table, make in self.makers.items()}
            parts = {part_of_scenario(cluster, name): mark for name, mark in marks.items()}
            store.write(frames, parts, ("cluster", "scenario"))
            return summaries
        finally:
            all_played.unpersist()

    def _parts(
        self, pairs: Iterable[_Pair], summaries: Mapping[_Pair, _Summary], store: Marks | None
    ) -> Iterator[pa.Table]:
        order = [(name, "ascending") for name in self.summary.key]
        for pair in pairs:
            rows = summaries.get(pair)
            if store is not None:
                part = part_of_scenario(*pair)
                if store[part] is not None:
                    yield store.rows(self.summary, part).sort_by(order)
            elif isinstance(rows, bytes):
                yield read_summary(rows, self.summary).sort_by(order)
            elif isinstance(rows, pa.Table):
                yield rows.sort_by(order)

    def written(self, session: SparkSession, out: str) -> dict[FleetTable, DataFrame]:
        """The tables of all clusters and scenarios that are whole in ``out``. None if there are none."""
        store = Marks(out, self.summary.name)
        parts = store.parts(2)
        return {table: store.read(session, table, parts) for table in self.makers} if parts else {}


def _is_large(cluster: ClusterInput | None, whole_rows: int) -> bool:
    return cluster is None or cluster.is_cut(whole_rows)


def _summaries(rows: Iterable[Mapping[str, Any]]) -> dict[_Pair, _Summary]:
    return {(row["cluster"], row["scenario"]): row["data"] if row["problem"] is None else (row["problem"],)
            for row in rows}  # fmt: skip


def _scenarios_by_cluster(known: set[str], scenarios: pa.Table) -> dict[_Pair, _Row]:
    """The scenarios of each cluster, its own and those of every cluster, by names of cluster and scenario."""
    rows_by_pair: dict[_Pair, _Row] = {}
    for row in scenarios.select(SCENARIOS.schema.names).to_pylist():
        for cluster in sorted(known) if row["cluster"] is None else [row["cluster"]]:
            pair = cluster, row["scenario"]
            if cluster not in known:
                raise InputError(f"scenario {pair[1]}", f"cluster {cluster}", "a cluster of the fleet, or none for all")
            if pair in rows_by_pair:
                raise InputError(f"scenario {pair[1]}", f"another of that name for cluster {cluster}", "each name once")
            rows_by_pair[pair] = {**row, "cluster": cluster}
    return rows_by_pair


def _played(
    session: SparkSession, tables: Mapping[str, DataFrame], rows: list[_Row], engine: EngineSettings
) -> DataFrame:
    """Rows of PLAYED of one cluster. Scenarios of ``needs_whole`` are played on the whole cluster, others on shards."""

    def play(scenario_rows: list[_Row], whole: bool) -> DataFrame:
        scenarios = session.createDataFrame(pa.Table.from_pylist(scenario_rows, SCENARIOS.schema), SCENARIOS.ddl)
        partitions, brokers, clusters = (tables[name] for name in ("partitions", "brokers", "clusters"))
        return failover.played(partitions, brokers, clusters, scenarios, engine, whole=whole)

    if engine.needs_whole_clusters():
        return play(rows, True)
    on_shards, on_whole = ([row for row in rows if needs_whole(row) is whole] for whole in (False, True))
    frames = [play(group, whole) for group, whole in ((on_shards, False), (on_whole, True)) if group]
    return functools.reduce(lambda left, right: left.union(right), frames)


#: What ``kframe spark failover`` writes.
FAILOVER: Final = Stage(
    {
        CHANGES: lambda played, _facts, _engine: failover.changes(played),
        BROKER_COUNTS: lambda played, _facts, _engine: failover.broker_counts(played),
        CONDITIONS: lambda played, _facts, _engine: failover.conditions(played),
        IMPACTS: lambda played, _facts, _engine: failover.impacts(played),
    },
    (CHANGES.name, BROKER_COUNTS.name, CONDITIONS.name, IMPACTS.name),
    IMPACTS,
)
#: What ``kframe spark requests`` writes, without and with the encoded bodies.
REQUESTED: Final = Stage({REQUESTS: failover.requests}, (ANNOUNCED.name,), REQUESTS)
REQUESTED_ENCODED: Final = Stage(
    {REQUESTS: functools.partial(failover.requests, keep=True)}, (ANNOUNCED.name,), REQUESTS, encoded=True
)
