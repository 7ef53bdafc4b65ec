"""Scenarios played on whole clusters: a task reads a cluster once, plays its scenarios, writes and marks each result.

Nothing is shuffled and nothing is cached. A result is whole as soon as its mark is there, so a run that ends early
leaves all that was finished before.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kframe.errors import SnapshotError
from kframe.snapshot import Snapshot
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import Mark, Marks, part_of_scenario
from kframe.spark.part import ClusterFacts
from kframe.spark.play import ANNOUNCED, PARTS, EngineSettings, play_part
from kframe.spark.requests import REQUESTS, encode_alone
from kframe.spark.schema import TEXT, FleetTable, to_stream
from kframe.spark.session import interpreted
from kframe.spark.tasks import map_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Partitions of a cluster that one task plays whole; larger clusters are cut into shards.
WHOLE_ROWS: Final = 1_000_000
#: The least number of tasks of a job: several scenarios of one cluster keep several cores busy.
_TASKS_MIN: Final = 64
#: The largest number of scenarios for one read of a cluster.
_SCENARIOS_MAX: Final = 16

#: A row a cluster and scenario that was played, or not, by ``problem``. ``data`` is an Arrow stream of its summary,
#: null where that was written instead.
RESULTS: Final = FleetTable(
    "results",
    pa.schema([("cluster", TEXT), ("scenario", TEXT), ("problem", TEXT), ("data", pa.binary())]),
    ("cluster", "scenario"),
)


@dataclass(frozen=True)
class Unit:
    """A cluster, and the rows of SCENARIOS to play on it with the marks of their results."""

    cluster: ClusterInput
    scenarios: tuple[tuple[Mapping[str, Any], Mark], ...]


@dataclass(frozen=True)
class Output:
    """Which tables are made, and which of them is the summary. ``out`` is where all of them are written, if anywhere,
    and ``staged`` a directory there for files that are not whole yet. ``keep`` is as in ``requests.encode``."""

    tables: tuple[FleetTable, ...]
    summary: FleetTable
    keep: bool = False
    out: str | None = None
    staged: str | None = None


def units_of(
    clusters: Mapping[str, ClusterInput], pending: Mapping[str, Sequence[tuple[Mapping[str, Any], Mark]]]
) -> list[Unit]:
    """The pending scenarios of each cluster as units of work. The largest clusters are first."""
    pairs = sum(map(len, pending.values()))
    scenarios_per_unit = max(1, min(_SCENARIOS_MAX, pairs // _TASKS_MIN))
    ordered = sorted(pending, key=lambda name: (-(clusters[name].partitions or 0), name))
    return [
        Unit(clusters[name], tuple(pending[name][first : first + scenarios_per_unit]))
        for name in ordered
        for first in range(0, len(pending[name]), scenarios_per_unit)
    ]


def play_units(units: Iterable[Unit], engine: EngineSettings, output: Output) -> Iterator[pa.RecordBatch]:
    """Play units, one after another. Rows of RESULTS.

    A cluster of a fleet that cannot be read is a problem of its own; a source that cannot be read raises SnapshotError.
    Raises PluginError for a selector that is not installed here, ConfigError for a setting.
    """
    selectors = engine.selector_maker()
    for unit in units:
        name, part = unit.cluster.cluster, _snapshot(unit.cluster)
        played = play_part([scenario for scenario, _ in unit.scenarios], part, engine, selectors, whole=True)
        for (scenario, mark), result in zip(unit.scenarios, played, strict=False):
            if isinstance(result, str):
                yield _row(name, scenario["scenario"], result, None)
                continue
            assert isinstance(part, Snapshot)
            tables = _tables(name, scenario["scenario"], result, part, engine, output)
            yield _row(name, scenario["scenario"], None, _put(name, scenario["scenario"], tables, mark, output))


def play_on_spark(
    session: SparkSession, units: Sequence[Unit], engine: EngineSettings, output: Output
) -> list[Mapping[str, Any]]:
    """``play_units`` by one Spark job. The rows of RESULTS, in no order."""
    if not units:
        return []

    def plays(inputs: Iterator[Unit]) -> Iterator[pa.RecordBatch]:
        # The log has a line for every election without a leader; the rows say the same.
        logging.getLogger("kframe.statechange").setLevel(logging.CRITICAL)
        yield from play_units(inputs, engine, output)

    with interpreted(session):
        results = map_inputs(session, units, plays, RESULTS.ddl).toArrow()
    rows: list[Mapping[str, Any]] = results.to_pylist()
    return rows


def read_summary(data: bytes, summary: FleetTable) -> pa.Table:
    """The summary in a row of RESULTS."""
    return pa.ipc.open_stream(data).read_all().cast(summary.schema)


def _snapshot(cluster: ClusterInput) -> Snapshot | str:
    try:
        return cluster.snapshot()
    except SnapshotError as problem:
        if not cluster.ingested:
            raise
        return str(problem)


def _tables(
    cluster: str,
    scenario: str,
    result: Mapping[str, pa.RecordBatch],
    part: Snapshot,
    engine: EngineSettings,
    output: Output,
) -> dict[FleetTable, pa.Table]:
    """The tables of one result, with its cluster and scenario in every row."""
    tables: dict[FleetTable, pa.Table] = {}
    for table in output.tables:
        if table == REQUESTS:
            facts = ClusterFacts.of_snapshot(cluster, part)
            encoded = encode_alone(result[ANNOUNCED.name], facts, scenario, dict(engine.config), output.keep)
            tables[table] = pa.Table.from_batches(list(encoded), table.schema)
        else:
            assert table.name in PARTS
            rows = pa.Table.from_batches([result[table.name]])
            for index, value in enumerate((cluster, scenario)):
                column = pa.repeat(pa.scalar(value, TEXT), rows.num_rows)
                rows = rows.add_column(index, table.schema.field(index), column)
            tables[table] = rows
    return tables


def _put(
    cluster: str, scenario: str, tables: Mapping[FleetTable, pa.Table], mark: Mark, output: Output
) -> bytes | None:
    """Write and mark a result. A result that is written nowhere returns its summary as an Arrow stream."""
    if output.out is not None:
        assert output.staged is not None
        staged = Path(output.staged) / uuid.uuid4().hex
        Marks(output.out, output.summary.name).put(part_of_scenario(cluster, scenario), tables, mark, staged)
        return None
    return to_stream(tables[output.summary])


def _row(cluster: str, scenario: str, problem: str | None, data: bytes | None) -> pa.RecordBatch:
    row = {"cluster": cluster, "scenario": scenario, "problem": problem, "data": data}
    return pa.RecordBatch.from_pylist([row], RESULTS.schema)
