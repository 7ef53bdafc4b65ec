"""Work on many inputs, such as clusters: by the driver itself if it is little, else by tasks that have several each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from kframe.spark.schema import FleetTable
from kframe.spark.sessions import SHUFFLES_OF_CORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Input = TypeVar("_Input")

#: Tasks of a job for each shuffle partition of the session. A task takes 30 ms besides its work, which may be longer
#: than the work on a small input.
_OF_SHUFFLE_PARTITION: Final = 4
#: More tasks are no faster, and each is kept in the driver.
_TASKS_MAX: Final = 10_000
#: Most partitions that the driver plays itself. A session, its first query and its Python workers take as long as one
#: core needs for so many, so that any number of cores would finish later. ``spark.kframe.driver.partitions`` is the
#: setting of another number.
DRIVER_PARTITIONS_MAX: Final = 12_000_000
DRIVER_PARTITIONS: Final = "spark.kframe.driver.partitions"
#: What a scenario on a cluster costs besides its partitions, in partitions.
PARTITIONS_OF_UNIT: Final = 5_000


def tasks_max(session: SparkSession | None) -> int:
    """How many tasks a job in a session can use; 1 without a session."""
    if session is None:
        return 1
    return min(_OF_SHUFFLE_PARTITION * shuffle_partitions(session), _TASKS_MAX)


def cores_of(session: SparkSession | None) -> int:
    """The cores for which a session of kframe would have as many shuffle partitions as this one; 1 without a session.
    Spark Connect does not show the cores of a session."""
    if session is None:
        return 1
    return max(shuffle_partitions(session) // SHUFFLES_OF_CORE, 1)


def shuffle_partitions(session: SparkSession) -> int:
    """The shuffle partitions of a session."""
    return int(str(session.conf.get("spark.sql.shuffle.partitions")))


def rows_of_inputs(
    session: SparkSession | None,
    inputs: Sequence[_Input],
    work: Callable[[Iterator[_Input]], Iterator[pa.RecordBatch]],
    table: FleetTable,
) -> pa.Table:
    """The rows of ``table`` that ``work`` makes of all inputs. Without a session this process works."""
    if session is None:
        return pa.Table.from_batches(work(iter(inputs)), table.schema)
    return map_inputs(session, inputs, work, table.ddl).toArrow()


def map_inputs(
    session: SparkSession,
    inputs: Sequence[_Input],
    work: Callable[[Iterator[_Input]], Iterator[pa.RecordBatch]],
    ddl: str,
) -> DataFrame:
    """The rows that ``work`` makes of the inputs of each task, in no order. The work is done when they are read.

    There are as many tasks as inputs, or as the session can use. Inputs are assigned round-robin: the largest of sorted
    inputs go to different tasks.
    """
    tasks = max(1, min(len(inputs), tasks_max(session)))

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (task for batch in batches for task in batch["id"].to_pylist())
        yield from work(inputs[number] for task in numbers for number in range(task, len(inputs), tasks))

    return session.range(0, tasks, 1, tasks).mapInArrow(of_batches, ddl)
