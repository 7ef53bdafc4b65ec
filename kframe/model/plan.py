"""A reassignment plan: partitions and the replicas that they are to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kframe.errors import InputError
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.tables import Targets
from kframe.pages.arrow import ListColumn, NameColumn, arrow_table
from kframe.pages.parts import FactsPart, Heading, Part, TablePart
from kframe.pages.shown import Tabular

#: What Confluent's tool requires of observers.
OBSERVERS_LAST: Final = "observers at the end of replicas, after at least one other replica"
#: Most partitions that a page lists.
_SHOWN: Final = 20
#: The log directory of a replica that stays in its own, or that its broker places.
ANY_DIRECTORY: Final = "any"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Tabular):
    """``k`` partitions with the replicas they are to have, in the order of the file.

    ``log_dirs_differ`` (k,) marks those with another number of log directories than of replicas. ``observers`` are
    those of each partition; None if none has any. ``log_dirs`` are the log directories of the replicas of each
    partition, empty for one without; None if all are ANY_DIRECTORY.
    """

    name: str
    targets: Targets
    log_dirs_differ: Bool
    observers: Ragged | None = None
    log_dirs: tuple[tuple[str, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def to_arrow(self) -> Any:
        """The partitions as a ``pyarrow.Table``: topic, partition and replicas, and observers if any partition has."""
        targets, observers = self.targets, self.observers
        return arrow_table(
            {
                "topic": NameColumn(targets.names, targets.topic),
                "partition": targets.partition,
                "replicas": ListColumn(targets.replicas.offsets, targets.replicas.values),
                **({} if observers is None else {"observers": ListColumn(observers.offsets, observers.values)}),
            }
        )

    def heading(self) -> Heading:
        """See ``Shown``."""
        return Heading(self.name, FactsPart((("partitions", len(self)), ("topics", len(self.targets.names)))))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        listed = [
            {
                "topic": self.targets.names[self.targets.topic[row]],
                "partition": int(self.targets.partition[row]),
                "replicas": self.targets.replicas[row].tolist(),
            }
            for row in range(min(len(self), _SHOWN))
        ]
        return [TablePart("partitions", ("topic", "partition", "replicas"), listed, len(self))]

    @staticmethod
    def of(targets: Sequence[tuple[tuple[str, int], Sequence[int]]], name: str = "plan") -> Plan:
        """A small plan from ((topic, partition), replicas) pairs."""
        return Plan(name, Targets.of(targets), np.zeros(len(targets), np.bool_))

    def partition_name(self, position: int) -> str:
        """``topic-partition``."""
        return f"{self.targets.names[self.targets.topic[position]]}-{int(self.targets.partition[position])}"

    def take(self, positions: Int32) -> Plan:
        """The partitions at these positions."""
        observers = None if self.observers is None else self.observers.take(positions)
        log_dirs = None if self.log_dirs is None else tuple(self.log_dirs[position] for position in positions.tolist())
        return Plan(self.name, self.targets.take(positions), self.log_dirs_differ[positions], observers, log_dirs)

    def names_directories(self) -> Bool:
        """(k,) partitions of which a replica is to go to a certain log directory of its broker."""
        names = [any(path != ANY_DIRECTORY for path in paths) for paths in self.log_dirs or ()]
        return np.array(names, np.bool_) if names else np.zeros(len(self), np.bool_)

    def refuse_directories(self, expected: str) -> None:
        """Raise InputError for a plan that names log directories, where only replicas are moved between brokers."""
        positions = np.flatnonzero(self.names_directories())
        if len(positions):
            position = int(positions[0])
            where, name = f"{self.name} partitions[{position}] field log_dirs", self.partition_name(position)
            raise InputError(where, f"a log directory of partition {name}", expected)

    def check(self) -> None:
        """Raise InputError for a plan that Kafka's tool would not send: empty, a partition twice, too few
        directories."""
        if len(self) == 0:
            raise InputError(self.name, "no partition", "at least one to reassign")
        repeated = self.repeated_positions()
        if len(repeated):
            where = f"{self.name} partitions[{int(repeated[0])}]"
            raise InputError(where, f"partition {self.partition_name(int(repeated[0]))} again", "each partition once")
        misplaced = np.flatnonzero(self.misplaced_observers())
        if len(misplaced):
            name = self.partition_name(int(misplaced[0]))
            where = f"{self.name} partitions[{int(misplaced[0])}] field observers"
            raise InputError(where, f"observers of partition {name} that are not its last replicas", OBSERVERS_LAST)
        differ = np.flatnonzero(self.log_dirs_differ)
        if len(differ):
            position = int(differ[0])
            where, name = f"{self.name} partitions[{position}] field log_dirs", self.partition_name(position)
            actual = f"another number of log directories than of replicas for partition {name}"
            raise InputError(where, actual, f"{len(self.targets.replicas[position])}, one for each replica")

    def misplaced_observers(self) -> Bool:
        """(k,) partitions whose observers are not the last of their replicas, or are all of them."""
        if self.observers is None:
            return np.zeros(len(self), np.bool_)
        replicas, observers = self.targets.replicas, self.observers
        misplaced = np.zeros(len(self), np.bool_)
        for position in np.flatnonzero(observers.counts).tolist():
            misplaced[position] = not has_observers_last(replicas[position].tolist(), observers[position].tolist())
        return misplaced

    def repeated_positions(self) -> Int32:
        """Positions of partitions that the plan has at an earlier position, ascending."""
        topic, partition = self.targets.topic.astype(np.int64), self.targets.partition.astype(np.int64)
        keys = topic << 32 | (partition & 0xFFFFFFFF)
        order = np.argsort(keys, kind="stable")
        same = np.flatnonzero(keys[order][1:] == keys[order][:-1]) + 1
        return np.sort(order[same]).astype(np.int32)


def has_observers_last(replicas: Sequence[int], observers: Sequence[int]) -> bool:
    """Whether observers are the last replicas, in any order, and not all of them."""
    count = len(observers)
    return not count or (count < len(replicas) and sorted(replicas[-count:]) == sorted(observers))
