"""The tasks of jobs that work on many inputs, such as clusters: each task has several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class InputTasks:
    """Inputs by number, assigned to tasks round-robin: the largest of sorted inputs go to different tasks."""

    inputs: int
    tasks: int

    @staticmethod
    def of(session: SparkSession, inputs: int) -> InputTasks:
        """As many tasks as inputs, or as the session can use."""
        return InputTasks(inputs, max(1, min(inputs, tasks_max(session))))

    def frame(self, session: SparkSession) -> DataFrame:
        """A row a task, each in a partition of its own."""
        return session.range(0, self.tasks, 1, self.tasks)

    def numbers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
        """The inputs of the tasks in rows of ``frame``."""
        for batch in batches:
            for task in batch["id"].to_pylist():
                yield from range(task, self.inputs, self.tasks)


def tasks_max(session: SparkSession) -> int:
    """How many tasks a job in a session can use."""
    return min(_OF_SHUFFLE_PARTITION * _shuffle_partitions(session), _TASKS_MAX)


def cores_of(session: SparkSession) -> int:
    """The cores for which a session of kframe would have as many shuffle partitions as this one. Spark Connect does not
    show the cores of a session."""
    return max(_shuffle_partitions(session) // SHUFFLES_OF_CORE, 1)


def _shuffle_partitions(session: SparkSession) -> int:
    return int(str(session.conf.get("spark.sql.shuffle.partitions")))


def map_inputs(
    session: SparkSession, inputs: Sequence[_Input], work: Callable[[Iterator[_Input]], Iterator[pa.RecordBatch]],
    ddl: str,
) -> DataFrame:  # fmt: skip
    """The rows that ``work`` makes of the inputs of each task, in no order. The work is done when they are read."""
    tasks = InputTasks.of(session, len(inputs))

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work(inputs[number] for number in tasks.numbers(batches))

    return tasks.frame(session).mapInArrow(of_batches, ddl)
