"""The tasks of jobs that work on many inputs, such as clusters: each task has several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from kframe.spark.sessions import SHUFFLES_OF_CORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Input = TypeVar("_Input")

#: Tasks of a job for each shuffle partition of the session. A task takes 30 ms besides its work, which may be longer
#: than the work on a small input.
_OF_SHUFFLE_PARTITION: Final = 4
#: More tasks are no faster, and each is kept in the driver.
_TASKS_MAX: Final = 10_000


def tasks_max(session: SparkSession) -> int:
    """How many tasks a job in a session can use."""
    return min(_OF_SHUFFLE_PARTITION * shuffle_partitions(session), _TASKS_MAX)


def cores_of(session: SparkSession) -> int:
    """The cores for which a session of kframe would have as many shuffle partitions as this one. Spark Connect does not
    show the cores of a session."""
    return max(shuffle_partitions(session) // SHUFFLES_OF_CORE, 1)


def shuffle_partitions(session: SparkSession) -> int:
    """The shuffle partitions of a session."""
    return int(str(session.conf.get("spark.sql.shuffle.partitions")))


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
