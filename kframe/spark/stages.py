"""Stages of the pipeline that play scenarios, written by cluster and scenario and taken up where they were left.

    OUT/changes/cluster=east/scenario=broker-7/part-….parquet       so do the other tables
    OUT/_done/impacts/cluster=east/scenario=broker-7                written last, taken away first

Stages may share OUT; each has its own marks, named by its summary. A scenario of a cluster without its mark is
half-written and played again. The mark holds a fingerprint of the scenario and the settings: if either is another one,
it is played again, too. OUT must be the same directory for the driver and all executors.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kframe.spark import failover
from kframe.spark.fleet import directory_of
from kframe.spark.play import ANNOUNCED, CHANGES, CONDITIONS, IMPACTS, TALLIES, Engine
from kframe.spark.requests import REQUESTS
from kframe.spark.schema import SCENARIOS, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DONE: Final = "_done"
#: Makes a table of what was played, the facts of clusters and the settings.
Maker: TypeAlias = "Callable[[DataFrame, DataFrame, Engine], DataFrame]"


@dataclass(frozen=True, slots=True)
class Found:
    """What a stage has found: its summary, and why scenarios could not be played, as frames."""

    shown: DataFrame
    problems: DataFrame


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
        self, session: SparkSession, fleet: Mapping[str, DataFrame], scenarios: DataFrame, engine: Engine,
        out: str | None = None, *, force: bool = False,
    ) -> Iterator[Found]:  # fmt: skip
        """Play what is not in ``out`` yet, or with ``force`` everything, and write it there.

        Clusters and scenarios with a problem are left out, whatever other shards of them say. The driver looks at the
        scenarios of each cluster, a row each.
        """
        how = replace(engine, parts=self.parts)
        wanted = failover.scenarios_of(fleet["clusters"], scenarios).collect()
        pairs = {(row["cluster"], row["scenario"]): _fingerprint(row.asDict(), how, self.variant) for row in wanted}
        left = pairs if out is None or force else {
            pair: mark for pair, mark in pairs.items() if _text(self._marks(out) / _part(*pair)) != mark
        }  # fmt: skip
        chosen = [tuple(row) for row in wanted if (row["cluster"], row["scenario"]) in left]
        partitions, brokers, clusters = (fleet[name] for name in ("partitions", "brokers", "clusters"))
        every = failover.played(
            partitions, brokers, clusters, session.createDataFrame(chosen, SCENARIOS.ddl), how
        ).persist()
        problems = failover.problems(every).persist()
        sound = every.join(problems.select("cluster", "scenario"), ["cluster", "scenario"], "left_anti")
        facts = failover.cluster_facts(brokers, clusters)
        made = {table: make(sound, facts, how) for table, make in self.makers.items()}
        try:
            if out is not None:
                bad = {(row["cluster"], row["scenario"]) for row in problems.collect()}
                self._write(made, Path(out), {_part(*pair): mark for pair, mark in left.items() if pair not in bad})
                made = {self.shown: _read(session, Path(out), self.shown, [_part(*pair) for pair in pairs])}
            yield Found(made[self.shown], problems)
        finally:
            problems.unpersist()
            every.unpersist()

    def written(self, session: SparkSession, out: str) -> dict[Table, DataFrame]:
        """The tables of all clusters and scenarios that are whole in ``out``; none if there are none."""
        marks = self._marks(out)
        parts = [one.relative_to(marks) for one in sorted(marks.glob("cluster=*/scenario=*"))]
        return {table: _read(session, Path(out), table, parts) for table in self.makers} if parts else {}

    def _marks(self, out: str | Path) -> Path:
        return Path(out) / _DONE / self.shown.name

    def _write(self, made: Mapping[Table, DataFrame], out: Path, marks: Mapping[Path, str]) -> None:
        for part in marks:
            (self._marks(out) / part).unlink(missing_ok=True)
            for table in made:
                shutil.rmtree(out / table.name / part, ignore_errors=True)
        for table, frame in made.items():
            frame.write.mode("append").partitionBy("cluster", "scenario").parquet(str(out / table.name))
        for part, mark in marks.items():
            place = self._marks(out) / part
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(mark)


def _read(session: SparkSession, out: Path, table: Table, parts: list[Path]) -> DataFrame:
    """What is there of these clusters and scenarios."""
    paths = [str(place) for part in parts if (place := out / table.name / part).is_dir()]
    if not paths:
        return session.createDataFrame([], table.ddl)
    reader = session.read.schema(table.ddl).option("basePath", str(out / table.name))
    return reader.parquet(*paths).select(*table.schema.names)


def _part(cluster: str, scenario: str) -> Path:
    """Where a table has a scenario of a cluster."""
    return Path(directory_of("cluster", cluster)) / directory_of("scenario", scenario)


def _text(file: Path) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None


def _fingerprint(scenario: Mapping[str, Any], engine: Engine, variant: str) -> str:
    text = json.dumps([dict(scenario), asdict(engine), variant], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


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
