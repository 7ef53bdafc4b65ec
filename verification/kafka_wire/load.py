"""A steady producer that records acknowledgements, and their comparison with the consumed records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kframe.testing.waiting import until
from verification.zookeeper.kafka import client_command
from verification.zookeeper.machine import LOCAL, Machine
from verification.zookeeper.process import Process

#: Columns of records: the number that was sent, partition, offset.
NUMBER, PARTITION, OFFSET = 0, 1, 2
_OFFSET_BITS: Final = 44

Records = NDArray[np.int64]
"""Columns with shape (count, 3), in the order of acknowledgement or of reading."""


class Count(NamedTuple):
    """Record counts of a producer."""

    sent: int
    acknowledged: int
    failed: int


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Consumed records compared with acknowledged records."""

    acknowledged: int
    lost: int
    """Acknowledged but not consumed."""
    misplaced: int
    """Another record has the acknowledged offset."""
    duplicated: int
    """Consumed more than once."""
    out_of_order: int
    """Consumed after a later record of the same partition."""
    unexpected: int
    """Consumed, but neither acknowledged nor failed."""

    def record(self, record_property: Callable[[str, int], None], failed: int) -> None:
        """Write the counts of records, and of those that ``failed``, to the report of a test run."""
        for name, count in {**asdict(self), "failed": failed}.items():
            record_property(name, count)

    @property
    def good(self) -> bool:
        """Whether every acknowledged record was consumed exactly once and in order, and no other record."""
        return not (self.lost or self.misplaced or self.duplicated or self.out_of_order or self.unexpected)


def compare_records(acknowledged: Records, consumed: Records, failed: NDArray[np.int64]) -> LoadReport:
    """Compare records. ``failed`` (count,) has the numbers of records that may be present or not."""
    numbers, times = np.unique(consumed[:, NUMBER], return_counts=True)
    by_offset = consumed[np.lexsort((consumed[:, OFFSET], consumed[:, PARTITION]))]
    same = by_offset[1:, PARTITION] == by_offset[:-1, PARTITION]
    is_there = np.isin(acknowledged[:, NUMBER], numbers)
    return LoadReport(
        acknowledged=len(acknowledged),
        lost=int((~is_there).sum()),
        misplaced=int((_numbers_at(acknowledged[is_there], by_offset) != acknowledged[is_there, NUMBER]).sum()),
        duplicated=int((times > 1).sum()),
        out_of_order=int((same & (by_offset[1:, NUMBER] < by_offset[:-1, NUMBER])).sum()),
        unexpected=int((~np.isin(numbers, np.concatenate([acknowledged[:, NUMBER], failed]))).sum()),
    )


def _numbers_at(expected: Records, by_offset: Records) -> NDArray[np.int64]:
    """The record numbers at the offsets of ``expected`` (count,), -1 for none. ``by_offset`` is sorted by offset."""
    if not len(by_offset):
        return np.full(len(expected), -1, np.int64)
    expected_keys, keys = (rows[:, PARTITION] << _OFFSET_BITS | rows[:, OFFSET] for rows in (expected, by_offset))
    indexes = np.minimum(np.searchsorted(keys, expected_keys), len(keys) - 1)
    numbers: NDArray[np.int64] = np.where(keys[indexes] == expected_keys, by_offset[indexes, NUMBER], -1)
    return numbers


class ProducerLoad(Process):
    """A producer in its own JVM, which sends until ``finish``."""

    def __init__(
        self,
        folder: Path,
        address: str,
        topic: str,
        partitions: int,
        records_per_second: int,
        machine: Machine = LOCAL,
    ) -> None:
        """Start the producer. ``address`` has the bootstrap servers."""
        super().__init__(machine)
        folder.mkdir(parents=True)
        self.folder = folder
        (folder / "log4j.properties").write_text(
            "log4j.rootLogger=WARN, all\nlog4j.appender.all=org.apache.log4j.FileAppender\n"
            f"log4j.appender.all.File={folder / 'client.log'}\n"
            "log4j.appender.all.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.all.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )
        source = Path(__file__).parent / "SteadyLoad.java"
        arguments = (address, topic, str(partitions), str(records_per_second))
        self._launch([*client_command(source, folder), *arguments], folder, piped=True)

    def count(self) -> Count:
        """The present counts."""
        return Count(*map(int, self._answer("count").split()))

    def await_more(self, records: int) -> None:
        """Wait until that many more records are acknowledged."""
        goal = self.count().acknowledged + records
        assert until(lambda: self.count().acknowledged >= goal), (goal, self.count())

    def finish(self) -> Count:
        """Stop producing. Return when every record is acknowledged or has failed."""
        return Count(*map(int, self._answer("stop").split()))

    def report(self) -> LoadReport:
        """Consume all records and compare them."""
        self._answer("consume")
        failed = [int(line.partition(",")[0]) for line in (self.folder / "failed.csv").read_text().splitlines()]
        return compare_records(self._records("acknowledged"), self._records("consumed"), np.array(failed, np.int64))

    def violations(self) -> list[str]:
        """Stop producing and consume all records. What is not as acknowledged, if anything."""
        count, records = self.finish(), self.report()
        good = records.good and not count.failed and records.acknowledged == count.acknowledged
        return [] if good else [f"{count}, {records}"]

    def close(self) -> None:
        """End the JVM."""
        self.kill()

    def _records(self, name: str) -> Records:
        return np.loadtxt(self.folder / f"{name}.csv", np.int64, delimiter=",", ndmin=2).reshape(-1, 3)
