"""A steady producer that remembers what was acknowledged, and the judgement of what a consumer finds afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from kframe_zookeeper.testing.kafka import client_command
from kframe_zookeeper.testing.process import Process, until
from numpy.typing import NDArray

#: Columns of records: the number that was sent, partition, offset.
NUMBER, PARTITION, OFFSET = 0, 1, 2
_PATIENCE_S: Final = 240.0
_OFFSET_BITS: Final = 44

Records = NDArray[np.int64]
"""Shape (count, 3), in the order of the file: of acknowledgements, or of reading."""


class Count(NamedTuple):
    """How many records a producer has ..."""

    sent: int
    acknowledged: int
    failed: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a consumer found, beside what the producer was told."""

    acknowledged: int
    lost: int
    """Acknowledged, and not there."""
    moved: int
    """Acknowledged at an offset at which something else stands."""
    doubled: int
    """There more than once."""
    disordered: int
    """Behind a record of the same partition that was sent later."""
    unannounced: int
    """There, and neither acknowledged nor reported as failed."""

    @property
    def good(self) -> bool:
        """Every acknowledged record is there exactly once, in order, and nothing else is."""
        return not (self.lost or self.moved or self.doubled or self.disordered or self.unannounced)


def judge(acknowledged: Records, consumed: Records, failed: NDArray[np.int64]) -> Verdict:
    """Compare records; ``failed`` are the numbers of those that may be there or not, (count,)."""
    numbers, times = np.unique(consumed[:, NUMBER], return_counts=True)
    by_place = consumed[np.lexsort((consumed[:, OFFSET], consumed[:, PARTITION]))]
    same = by_place[1:, PARTITION] == by_place[:-1, PARTITION]
    is_there = np.isin(acknowledged[:, NUMBER], numbers)
    return Verdict(
        acknowledged=len(acknowledged),
        lost=int((~is_there).sum()),
        moved=int((_standing_at(acknowledged[is_there], by_place) != acknowledged[is_there, NUMBER]).sum()),
        doubled=int((times > 1).sum()),
        disordered=int((same & (by_place[1:, NUMBER] < by_place[:-1, NUMBER])).sum()),
        unannounced=int((~np.isin(numbers, np.concatenate([acknowledged[:, NUMBER], failed]))).sum()),
    )


def _standing_at(wanted: Records, by_place: Records) -> NDArray[np.int64]:
    """The numbers that stand where ``wanted`` say, (count,); -1 where nothing stands. ``by_place`` is sorted so."""
    if not len(by_place):
        return np.full(len(wanted), -1, np.int64)
    place, there = (rows[:, PARTITION] << _OFFSET_BITS | rows[:, OFFSET] for rows in (wanted, by_place))
    found = np.minimum(np.searchsorted(there, place), len(there) - 1)
    numbers: NDArray[np.int64] = np.where(there[found] == place, by_place[found, NUMBER], -1)
    return numbers


class Load(Process):
    """One producer in a JVM of its own, at work from the start until ``stop``."""

    def __init__(self, folder: Path, address: str, topic: str, partitions: int, records_per_second: int) -> None:
        """Start it. ``address`` is where clients of Kafka connect."""
        super().__init__()
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
        self._launch([*client_command(source, folder), *arguments], folder, asked=True)

    def count(self) -> Count:
        """As it stands now."""
        return Count(*map(int, self._answer("count").split()))

    def await_more(self, records: int) -> None:
        """Return when so many more than now have been acknowledged."""
        goal = self.count().acknowledged + records
        assert until(lambda: self.count().acknowledged >= goal, _PATIENCE_S), (goal, self.count())

    def finish(self) -> Count:
        """Send nothing more, and return when everything is acknowledged or has failed."""
        return Count(*map(int, self._answer("stop").split()))

    def verdict(self) -> Verdict:
        """Of all that there is to read now."""
        self._answer("consume")
        failed = [int(line.partition(",")[0]) for line in (self.folder / "failed.csv").read_text().splitlines()]
        return judge(self._records("acknowledged"), self._records("consumed"), np.array(failed, np.int64))

    def close(self) -> None:
        """End the JVM."""
        self.kill()

    def _records(self, name: str) -> Records:
        return np.loadtxt(self.folder / f"{name}.csv", np.int64, delimiter=",", ndmin=2).reshape(-1, 3)
