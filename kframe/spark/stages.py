"""Stages of the pipeline that play scenarios, written by cluster and scenario and taken up where they were left.

Stages may share a directory: each has its own tables and its own marks (``kframe.spark.marks``), named by its summary.
What has no mark, or one of another scenario, setting or input, is done again. The directory must be the same one for
the driver and all executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from kframe.errors import InputError
from kframe.spark import failover
from kframe.spark.marks import Found, Left, Mark, Marks, Writing, part_of_scenario
from kframe.spark.opening import Fleet, without
from kframe.spark.play import ANNOUNCED, CHANGES, CONDITIONS, IMPACTS, TALLIES, Engine
from kframe.spark.requests import REQUESTS
from kframe.spark.scenarios import needs_whole
from kframe.spark.schema import SCENARIOS, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Makes a table of what was played, the facts of clusters and the settings.
Maker: TypeAlias = "Callable[[DataFrame, DataFrame, Engine], DataFrame]"
_Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """The tables of one stage, what of PARTS they are made of, and which of them is its summary."""

    makers: Mapping[Table, Maker]
    parts: tuple[str, ...]
    shown: Table
    variant: str = ""
    """Tells stages apart that make the same tables."""

    @contextmanager
    def played(
        self, session: SparkSession, fleet: Fleet, scenarios: DataFrame, engine: Engine, writing: Writing
    ) -> Iterator[Found]:
        """Play what is not written yet, or with force everything, and write it.

        Clusters and scenarios with a problem are left out, whatever other shards of them say. The driver looks at the
        scenarios of each cluster, a row each. Raises InputError for one that is there twice, or of no cluster.
        """
        how = replace(engine, parts=self.parts)
        names = fleet.names()
        wanted = _wanted(fleet, names, scenarios)
        marks = {
            pair: Mark.of([row, asdict(how), self.variant], fleet.inputs.get(pair[0])) for pair, row in wanted.items()
        }
        store = None if writing.out is None else Marks(writing.out, self.shown.name)
        left = Left.of(store, {part_of_scenario(*pair): mark for pair, mark in marks.items()}, writing.force)
        chosen = {pair: row for pair, row in wanted.items() if part_of_scenario(*pair) in left.marks}
        needless = names - {cluster for cluster, _ in chosen}
        tables = {name: without(table, needless) for name, table in fleet.tables.items()}
        every = _played(session, tables, list(chosen.values()), how).persist()
        problems = failover.problems(every).persist()
        sound = every.join(problems.select("cluster", "scenario"), ["cluster", "scenario"], "left_anti")
        facts = failover.cluster_facts(tables["brokers"], tables["clusters"])
        made = {table: make(sound, facts, how) for table, make in self.makers.items()}
        try:
            if store is not None:
                bad = {part_of_scenario(row["cluster"], row["scenario"] or "") for row in problems.collect()}
                store.write(made, left.without(bad), ("cluster", "scenario"))
                made = {self.shown: store.read(session, self.shown, (part_of_scenario(*pair) for pair in wanted))}
            changed = {cluster for cluster, scenario in chosen if part_of_scenario(cluster, scenario) in left.changed}
            yield Found(made[self.shown], problems, tuple(sorted(changed)))
        finally:
            problems.unpersist()
            every.unpersist()

    def written(self, session: SparkSession, out: str) -> dict[Table, DataFrame]:
        """The tables of all clusters and scenarios that are whole in ``out``; none if there are none."""
        store = Marks(out, self.shown.name)
        parts = store.parts(2)
        return {table: store.read(session, table, parts) for table in self.makers} if parts else {}


def _wanted(fleet: Fleet, known: set[str], scenarios: DataFrame) -> dict[tuple[str, str], _Row]:
    """The scenarios of each cluster, by its name and theirs."""
    found: dict[tuple[str, str], _Row] = {}
    for row in failover.scenarios_of(fleet.tables["clusters"], scenarios).collect():
        pair = row["cluster"], row["scenario"]
        if pair[0] not in known:
            raise InputError(f"scenario {pair[1]}", f"cluster {pair[0]}", "a cluster of the fleet, or none for all")
        if pair in found:
            raise InputError(f"scenario {pair[1]}", f"another of that name for cluster {pair[0]}", "each name once")
        found[pair] = row.asDict(recursive=True)
    return found


def _played(session: SparkSession, tables: Mapping[str, DataFrame], rows: list[_Row], how: Engine) -> DataFrame:
    """Rows of PLAYED: on shards what can be, on whole clusters what must be."""

    def play(some: list[_Row], partitions: DataFrame, whole: bool) -> DataFrame:
        scenarios = session.createDataFrame(pa.Table.from_pylist(some, SCENARIOS.schema), SCENARIOS.ddl)
        return failover.played(partitions, tables["brokers"], tables["clusters"], scenarios, how, whole=whole)

    partitions = tables["partitions"]
    if how.needs_whole_clusters():
        return play(rows, partitions, True)
    on_shards = play([row for row in rows if not needs_whole(row)], partitions, False)
    on_whole = [row for row in rows if needs_whole(row)]
    if not on_whole:
        return on_shards
    theirs = partitions.where(partitions["cluster"].isin(sorted({row["cluster"] for row in on_whole})))
    return on_shards.union(play(on_whole, theirs, True))


def _requests(played: DataFrame, facts: DataFrame, engine: Engine) -> DataFrame:
    return failover.requests(played, facts, engine)


def _encoded(played: DataFrame, facts: DataFrame, engine: Engine) -> DataFrame:
    return failover.requests(played, facts, engine, keep=True)


#: What ``kframe spark failover`` writes.
FAILOVER: Final = Stage(
    {
        CHANGES: lambda played, _facts, _engine: failover.changes(played),
        TALLIES: lambda played, _facts, _engine: failover.tallies(played),
        CONDITIONS: lambda played, _facts, _engine: failover.conditions(played),
        IMPACTS: lambda played, _facts, _engine: failover.impacts(played),
    },
    (CHANGES.name, TALLIES.name, CONDITIONS.name, IMPACTS.name),
    IMPACTS,
)
#: What ``kframe spark requests`` writes, without and with the encoded bodies.
REQUESTED: Final = Stage({REQUESTS: _requests}, (ANNOUNCED.name,), REQUESTS)
REQUESTED_ENCODED: Final = Stage({REQUESTS: _encoded}, (ANNOUNCED.name,), REQUESTS, "encoded")
