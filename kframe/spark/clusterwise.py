"""Stages of the pipeline that look at clusters as they stand, written by cluster and taken up where they were left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kframe.spark.marks import Found, Left, Mark, Marks, Writing, part_of_cluster
from kframe.spark.opening import Fleet, without
from kframe.spark.rules import VIOLATIONS
from kframe.spark.schema import Table
from kframe.spark.sweeping import FAILURES, Sweeping, sweep
from kframe.spark.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def swept(session: SparkSession, fleet: Fleet, how: Sweeping, writing: Writing) -> AbstractContextManager[Found]:
    """Sweep the clusters that are not written yet, or with force all, and write their rows of FAILURES.

    Clusters that cannot be swept have a row in ``Found.problems`` (``cluster``, ``problem``) and are not written.
    """

    def make(tables: Mapping[str, DataFrame]) -> DataFrame:
        partitions, brokers, clusters = (tables[name] for name in ("partitions", "brokers", "clusters"))
        return sweep(partitions, brokers, clusters, how.config, depth=how.depth, racks=how.racks, by=how.by)

    return _stage(session, fleet, writing, FAILURES, asdict(how), make)


def validated(session: SparkSession, fleet: Fleet, writing: Writing) -> AbstractContextManager[Found]:
    """Validate the clusters that are not written yet, or with force all, and write their rows of VIOLATIONS."""

    def make(tables: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as f

        return validate(tables).withColumn("problem", f.lit(None).cast("string"))

    return _stage(session, fleet, writing, VIOLATIONS, None, make)


@contextmanager
def _stage(
    session: SparkSession, fleet: Fleet, writing: Writing, table: Table, how: Any,
    make: Callable[[Mapping[str, DataFrame]], DataFrame],
) -> Iterator[Found]:  # fmt: skip
    """``make`` gives rows of the table with a column ``problem``, which is null in those that are to be written."""
    names = sorted(fleet.names())
    store = None if writing.out is None else Marks(writing.out, table.name)
    wanted = {part_of_cluster(name): Mark.of(how, fleet.inputs.get(name)) for name in names}
    if store is not None:
        writing.planned(store, wanted)
    left = Left.of(store, wanted, writing.force)
    done = [name for name in names if part_of_cluster(name) not in left.marks]
    every = make({name: without(frame, done) for name, frame in fleet.tables.items()}).persist()
    problems = every.where("problem is not null").select("cluster", "problem")
    sound = every.where("problem is null").select(*table.schema.names)
    try:
        if store is not None:
            bad = {part_of_cluster(name) for name in problems.toArrow()["cluster"].to_pylist()}
            store.write({table: sound}, left.without(bad), ("cluster",))
            sound = store.read(session, table, wanted)
        yield Found(sound, problems, tuple(name for name in names if part_of_cluster(name) in left.changed))
    finally:
        every.unpersist()
