"""Rows of DataFrames as whole clusters: rows are packed by cluster, and a task gets all packed rows of a cluster."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kframe.errors import InputError
from kframe.snapshot.content import Mode
from kframe.spark.inputs import ClusterRows
from kframe.spark.modes import MODES
from kframe.spark.schema import (
    CLUSTER_TABLES,
    CLUSTERS,
    INT,
    PARTITIONS,
    SCENARIOS,
    TEXT,
    FleetTable,
    to_stream,
    with_columns_of,
)
from kframe.spark.stages import RESULTS, Result, Scenario, Stage, joined_results, result_row, results_of
from kframe.spark.tasks import cores_of, shuffle_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows that a task packs at a time.
_PACKED_ROWS: Final = 1 << 19
#: Parts of the scenarios of a fleet for each shuffle partition: a hash deals them to partitions, so a few more than
#: partitions even out.
_PARTS_OF_PARTITION: Final = 2
#: ``data`` is an Arrow stream of rows of the table ``name``, all of one cluster, and of one part of its scenarios.
PIECES: Final = FleetTable(
    "pieces", pa.schema([("cluster", TEXT), ("part", INT), ("name", TEXT), ("data", pa.binary())])
)
_PART_COLUMN: Final = "part"
_NO_SCENARIO: Final = "no scenario is for it"


def evaluate(
    stage: Stage,
    table: FleetTable,
    frames: Mapping[str, DataFrame],
    scenarios: DataFrame | Sequence[Scenario],
    mode: Mode | None = None,
) -> DataFrame:
    """The rows of ``table`` that a stage makes of clusters, with a column ``problem``: a row says why a cluster, or a
    scenario on it, has no other rows.

    ``frames`` are the tables of a caller by name, each in its columns. ``scenarios`` are rows of SCENARIOS, or a
    sequence for every cluster. One task has a cluster, or a part of its scenarios, or of its only result, if there are
    fewer clusters than tasks.
    """
    from pyspark.sql import functions as f

    session = frames[PARTITIONS.name].sparkSession
    partitions = shuffle_partitions(session)
    pieces = functools.reduce(
        lambda left, right: left.union(right),
        (_pieces(frame, known) for known in CLUSTER_TABLES if (frame := frames.get(known.name)) is not None),
    )
    common: Sequence[Scenario] | None = None
    is_divisible = any(stage.parts_max(known) > 1 for known in MODES)
    if not isinstance(scenarios, Sequence):
        pieces = _with_scenarios(pieces, frames, scenarios, _PARTS_OF_PARTITION * partitions)
    elif is_divisible:
        pieces = _with_parts(pieces, frames, stage, mode, cores_of(session))
    else:
        common = scenarios
    if not is_divisible:
        pieces = pieces.withColumn("parts", f.lit(1))
    groups = (
        pieces.repartition(partitions, "cluster", "part")
        .groupBy("cluster", "part", "parts")
        .agg(f.collect_list(f.struct("name", "data")).alias("pieces"))
    )
    names, schema = list(frames), with_problem(table)
    ddl = FleetTable(table.name, schema).ddl

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster, part, parts, rows in _groups(batches):
            played = stage if parts == 1 else stage.part(part, parts)
            summary = played.tables[0]
            for _, result in results_of(ClusterRows(cluster, _contents(rows, names), mode), played, [None], (summary,)):
                yield result_row(cluster, None, result, summary, None)

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in (row for batch in batches for row in batch.to_pylist()):
            result = row["problem"] or {table: pa.ipc.open_stream(row["data"]).read_all()}
            yield from _rows(schema, table, row["cluster"], None, result).to_batches()

    if is_divisible:
        return joined_results(groups.mapInArrow(count, RESULTS.ddl), stage, None).mapInArrow(unpack, ddl)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster, part, _, rows in _groups(batches):
            contents, own = _contents(rows, names), common
            if own is None:
                own = rows.get(SCENARIOS.name, SCENARIOS.schema.empty_table()).to_pylist()
                if not own and part == 0:
                    yield from _problem(schema, cluster, None, _NO_SCENARIO).to_batches()
            if own:
                yield from _evaluated(stage, table, schema, ClusterRows(cluster, contents, mode), own)

    return groups.mapInArrow(work, ddl)


def _contents(rows: Mapping[str, pa.Table], names: Collection[str]) -> dict[str, pa.Table]:
    """The tables of a cluster that a caller gave, by name."""
    return {
        known.name: rows.get(known.name, known.schema.empty_table()) for known in CLUSTER_TABLES if known.name in names
    }


def with_problem(table: FleetTable) -> pa.Schema:
    """The columns of a table, and ``problem``."""
    return table.schema if "problem" in table.schema.names else table.schema.append(pa.field("problem", TEXT))


def _evaluated(
    stage: Stage, table: FleetTable, schema: pa.Schema, cluster: ClusterRows, scenarios: Sequence[Scenario]
) -> Iterator[pa.RecordBatch]:
    counts = Counter(None if row is None else row["scenario"] for row in scenarios)
    for name in (name for name, count in counts.items() if count > 1):
        problem = InputError("table scenarios", f"scenario {name} {counts[name]} times", "each name once in a cluster")
        yield from _problem(schema, cluster.cluster, name, str(problem)).to_batches()
    single = [row for row in scenarios if counts[None if row is None else row["scenario"]] == 1]
    for scenario, result in results_of(cluster, stage, single, (table,)):
        yield from _rows(schema, table, cluster.cluster, scenario, result).to_batches()


def _rows(schema: pa.Schema, table: FleetTable, cluster: str | None, scenario: Scenario, result: Result) -> pa.Table:
    if isinstance(result, str):
        return _problem(schema, cluster, None if scenario is None else scenario["scenario"], result)
    return with_columns_of(schema, result[table])


def _problem(schema: pa.Schema, cluster: str | None, scenario: str | None, problem: str) -> pa.Table:
    names = {"cluster": cluster, "scenario": scenario, "problem": problem}
    return pa.Table.from_pylist([{name: names.get(name) for name in schema.names}], schema)


def _with_scenarios(
    pieces: DataFrame, frames: Mapping[str, DataFrame], scenarios: DataFrame, parts_max: int
) -> DataFrame:
    """The pieces of each cluster once for each part of its scenarios, and the scenarios as pieces of that part.

    There are as many parts of each cluster as make ``parts_max`` of the fleet, but no more than scenarios.
    """
    from pyspark.sql import functions as f

    listed_in = frames.get(CLUSTERS.name, frames[PARTITIONS.name])
    listed = _expanded(listed_in.select("cluster").distinct(), scenarios)
    sizes = listed.groupBy("cluster").count().agg(f.max("count").alias("most"), f.count("*").alias("clusters"))
    share = f.ceil(f.lit(parts_max) / f.greatest("clusters", f.lit(1)))
    parts = f.broadcast(sizes.select(f.greatest(f.least(share, "most"), f.lit(1)).cast("int").alias("parts")))
    part = f.pmod(f.xxhash64("scenario"), f.col("parts")).cast("int")
    dealt = listed.crossJoin(parts).withColumn(_PART_COLUMN, part).drop("parts")
    numbers = f.explode(f.sequence(f.lit(0), f.col("parts") - 1))
    copies = pieces.crossJoin(parts).withColumn(_PART_COLUMN, numbers).select(*PIECES.schema.names)
    return copies.union(_pieces(dealt, SCENARIOS))


def _with_parts(
    pieces: DataFrame, frames: Mapping[str, DataFrame], stage: Stage, mode: Mode | None, cores: int
) -> DataFrame:
    """The pieces of each cluster once for each part of its result: as many as its share of the cores, if the stage can
    divide results of its mode."""
    from pyspark.sql import functions as f

    listed, mode_column = frames.get(CLUSTERS.name), f.col("mode")
    if listed is None:
        listed = frames[PARTITIONS.name]
        mode_column = f.when(f.col("elr").isNotNull(), f.lit("kraft")) if mode is None else f.lit(mode)
    modes = listed.groupBy("cluster").agg(f.max(mode_column).alias("mode"))
    most = f.when(f.col("mode") == "kraft", stage.parts_max("kraft")).otherwise(stage.parts_max("zookeeper"))
    share = f.ceil(f.lit(cores) / f.col("clusters"))
    parts = modes.crossJoin(modes.agg(f.count("*").alias("clusters"))).select(
        f.col("cluster").alias("divided"), f.least(most, share).cast("int").alias("parts")
    )
    dealt = pieces.drop(_PART_COLUMN).join(f.broadcast(parts), f.col("cluster").eqNullSafe(f.col("divided")), "left")
    dealt = dealt.withColumn("parts", f.coalesce("parts", f.lit(1)))
    return dealt.withColumn(_PART_COLUMN, f.explode(f.sequence(f.lit(0), f.col("parts") - 1)))


def _expanded(clusters: DataFrame, scenarios: DataFrame) -> DataFrame:
    """The scenarios of each cluster, a row each: its own, and those of every cluster.

    One pass over both, without filters: a Python data source whose relation is read twice in a query with different
    filters was seen to give too few rows.
    """
    from pyspark.sql import functions as f

    known = clusters.select(f.col("cluster").alias("known"))
    every = scenarios.join(known, f.col("cluster").isNull() | (f.col("cluster") == f.col("known")), "left")
    return every.withColumn("cluster", f.coalesce("cluster", "known")).select(*SCENARIOS.schema.names)


def _pieces(frame: DataFrame, table: FleetTable) -> DataFrame:
    """Rows of PIECES of a frame in the columns of a table, perhaps with the number of a part."""

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack(batches, table)

    return frame.mapInArrow(packed, PIECES.ddl)


def pack(batches: Iterable[pa.RecordBatch], table: FleetTable) -> Iterator[pa.RecordBatch]:
    """Rows of a table in any order as rows of PIECES. Without a column ``part``, they are of part 0."""
    pending: list[pa.Table] = []
    rows = 0
    for batch in batches:
        pending.append(_with_part(batch, table))
        rows += batch.num_rows
        if rows >= _PACKED_ROWS:
            yield from _packed(pa.concat_tables(pending), table)
            pending, rows = [], 0
    if rows:
        yield from _packed(pa.concat_tables(pending), table)


def _with_part(batch: pa.RecordBatch, table: FleetTable) -> pa.Table:
    is_dealt = _PART_COLUMN in batch.schema.names
    part = batch[_PART_COLUMN] if is_dealt else pa.repeat(pa.scalar(0, INT), batch.num_rows)
    return with_columns_of(table.schema, batch).append_column(_PART_COLUMN, part)


def _packed(rows: pa.Table, table: FleetTable) -> Iterator[pa.RecordBatch]:
    clusters = rows["cluster"].combine_chunks().dictionary_encode()
    names = [*clusters.dictionary.to_pylist(), None]
    code = clusters.indices.fill_null(len(names) - 1).to_numpy().astype(np.int64)
    key = code << 32 | rows[_PART_COLUMN].to_numpy()
    order = np.argsort(key, kind="stable")
    rows, key = rows.select(table.schema.names).take(pa.array(order)), key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])).tolist()
    for first, last in zip(starts, [*starts[1:], len(key)], strict=True):
        piece = to_stream(rows.slice(first, last - first).combine_chunks())
        row = {"cluster": names[key[first] >> 32], "part": int(key[first] & 0xFFFFFFFF), "name": table.name}
        yield pa.RecordBatch.from_pylist([row | {"data": piece}], PIECES.schema)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, int, dict[str, pa.Table]]]:
    """Each cluster, the number of its part of the scenarios or of its result, the number of parts of the result, and
    its rows by table."""
    for batch in batches:
        for index in range(batch.num_rows):
            parts: dict[str, list[pa.Table]] = {}
            for piece in batch["pieces"][index].values:
                stream = pa.ipc.open_stream(piece["data"].as_buffer())
                parts.setdefault(piece["name"].as_py(), []).append(stream.read_all())
            rows = {name: pa.concat_tables(tables) for name, tables in parts.items()}
            cluster, part, count = (batch[name][index].as_py() for name in ("cluster", "part", "parts"))
            yield cluster, part, count, rows
