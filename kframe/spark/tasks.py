"""The tasks of jobs that work on many inputs, such as clusters: each task has several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        partitions = int(str(session.conf.get("spark.sql.shuffle.partitions")))
        return InputTasks(inputs, max(1, min(inputs, _OF_SHUFFLE_PARTITION * partitions, _TASKS_MAX)))

    def frame(self, session: SparkSession) -> DataFrame:
        """A row a task, each in a partition of its own."""
        return session.range(0, self.tasks, 1, self.tasks)

    def numbers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
        """The inputs of the tasks in rows of ``frame``."""
        for batch in batches:
            for task in batch["id"].to_pylist():
                yield from range(task, self.inputs, self.tasks)
