"""Sort the topics and partitions of a text source into canonical tables."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from kframe.errors import SnapshotError
from kframe.model.arrays import Int32, Ragged, offsets_of, positions_within, ragged_positions
from kframe.model.lists import common_length
from kframe.snapshot.checks import check_topic_name
from kframe.snapshot.facts import TopicFacts
from kframe.snapshot.faults import REFUSE, Faults

_LISTS_AT_ONCE: Final = 1 << 17


class GrowingLists:
    """Lists of int32, appended to two flat arrays."""

    def __init__(self) -> None:
        self._counts = array("i")
        self._values = array("i")

    def append(self, values: Sequence[int]) -> None:
        """Add a list."""
        self._counts.append(len(values))
        self._values.extend(values)

    def extend_lists(self, lists: Collection[Sequence[int]]) -> None:
        """Add lists."""
        self._counts.extend(map(len, lists))
        self._values.extend(chain.from_iterable(lists))

    def extend_empty(self, count: int) -> None:
        """Add empty lists."""
        self._counts.frombytes(bytes(count * self._counts.itemsize))

    def extend(self, counts: Int32, values: Int32) -> None:
        """Add lists of the given lengths."""
        self._counts.frombytes(counts.tobytes())
        self._values.frombytes(values.tobytes())

    def take(self, order: NDArray[np.int64]) -> Ragged:
        """Remove all lists and return them in ``order``."""
        if not self._values:
            return Ragged.empty(len(order))
        lists = self.ragged()
        self._counts, self._values = array("i"), array("i")
        if width := common_length(lists):
            offsets = np.arange(0, width * len(order) + 1, width, dtype=np.int32)
            return Ragged(offsets, lists.values.reshape(-1, width).take(order, axis=0).ravel())
        starts, counts = lists.offsets[:-1][order], lists.counts[order]
        offsets = offsets_of(counts)
        values = np.empty(offsets[-1], np.int32)
        for first in range(0, len(order), _LISTS_AT_ONCE):  # positions take twice as much memory as the values
            part = slice(first, first + _LISTS_AT_ONCE)
            positions = ragged_positions(starts[part], counts[part])
            values[offsets[first] : offsets[first] + len(positions)] = lists.values[positions]
        return Ragged(offsets, values)

    def ragged(self) -> Ragged:
        """The lists so far."""
        return Ragged(offsets_of(int32(self._counts)), int32(self._values))


class Assembly:
    """Topics by name, and assigned partitions. Each has the number of its line (or item).

    ``location`` formats such a number for an error message. ``numbers`` and ``lists`` name the further columns of the
    source.
    """

    def __init__(self, location: Callable[[int], str], numbers: Sequence[str] = (), lists: Sequence[str] = ()) -> None:
        self.location: Final = location
        self.numbers: Final = {name: array("i") for name in numbers}
        self.lists: Final = {name: GrowingLists() for name in lists}
        self.topic_ids: dict[int, bytes] = {}
        self.configs: dict[int, Mapping[str, str]] = {}
        self.deleting: set[int] = set()
        self.replicas: Final = GrowingLists()
        self._ordinals: dict[str, int] = {}
        self._topic_lines = array("i")
        self._topic, self._partition, self._line = array("i"), array("i"), array("i")

    def topic(self, name: str, line: int) -> int:
        """Add a topic and return its number. Raises SnapshotError if it was added before."""
        if name in self._ordinals:
            first = self.location(self._topic_lines[self._ordinals[name]])
            raise SnapshotError(self.location(line), f"topic {name} again", f"each topic once (first at {first})")
        return self.topic_named(name, line)

    def topic_named(self, name: str, line: int) -> int:
        """The number of a topic, which is added if it is new."""
        ordinal = self._ordinals.get(name)
        if ordinal is None:
            check_topic_name(name, self.location(line))
            ordinal = self._ordinals[name] = len(self._ordinals)
            self._topic_lines.append(line)
        return ordinal

    def find(self, name: str) -> int | None:
        """The number of a topic, or None."""
        return self._ordinals.get(name)

    def partition(
        self, topic: int, partition: int, line: int, replicas: Sequence[int], **entries: int | Sequence[int]
    ) -> None:
        """Add a partition with its entry of every further column."""
        self._topic.append(topic)
        self._partition.append(partition)
        self._line.append(line)
        self.replicas.append(replicas)
        for name, entry in entries.items():
            if isinstance(entry, int):
                self.numbers[name].append(entry)
            else:
                self.lists[name].append(entry)

    def partitions(
        self,
        topic: Int32,
        partition: Int32,
        line: Int32,
        numbers: Mapping[str, Int32],
        lists: Mapping[str, tuple[Int32, Int32]],
    ) -> None:
        """Add partitions. ``lists`` has the lengths and the values of a column's lists, ``replicas`` among them."""
        for column, entries in ((self._topic, topic), (self._partition, partition), (self._line, line)):
            column.frombytes(entries.tobytes())
        for name, entries in numbers.items():
            self.numbers[name].frombytes(entries.tobytes())
        for name, (counts, values) in lists.items():
            (self.replicas if name == "replicas" else self.lists[name]).extend(counts, values)

    def assignment(
        self, topic: int, line: int, replicas: Mapping[int, Sequence[int]], **lists: Mapping[int, Sequence[int]]
    ) -> None:
        """Add the partitions of a topic with their replicas. A column of ``lists`` may have only some of them."""
        count = len(replicas)
        self._topic.extend(array("i", [topic]) * count)
        self._line.extend(array("i", [line]) * count)
        self._partition.extend(replicas)
        self.replicas.extend_lists(replicas.values())
        for name, entries in lists.items():
            if entries:
                self.lists[name].extend_lists([entries.get(partition, ()) for partition in replicas])
            else:
                self.lists[name].extend_empty(count)

    def renumber(self, numbers: Int32) -> None:
        """Replace the topic ``i`` of every partition by ``numbers[i]``."""
        topic = int32(self._topic)
        topic[:] = numbers[topic]

    def partitions_of(self, name: str) -> int:
        """How many partitions of a topic there are so far."""
        ordinal = self._ordinals.get(name, -1)
        return int(np.count_nonzero(int32(self._topic) == ordinal))

    def finish(self, faults: Faults = REFUSE) -> Assembled:
        """Sort, and check that each topic has partitions 0 to n-1 once each. Topics at fault are left out.

        Raises SnapshotError.
        """
        names = sorted(self._ordinals.keys() - faults.topics)
        ordinals = np.array([self._ordinals[name] for name in names], np.int64)
        runs = self._runs(ordinals)
        if runs is None:
            order, counts = self._sorted(names, ordinals, faults)
            if any(name in faults.topics for name in names):
                return self.finish(faults)
        else:
            order, counts = ragged_positions(*runs), runs[1]
        self._count_excluded(faults)
        topics = self._topic_facts(names, ordinals, counts)
        return Assembled(topics, order, int32(self._topic_lines)[ordinals], self)

    def _runs(self, ordinals: NDArray[np.int64]) -> tuple[Int32, Int32] | None:
        """The first position of each topic's partitions and how many they are.

        None unless all partitions of each topic come one after another, from 0 without a gap.
        """
        topic, partition = int32(self._topic), int32(self._partition)
        starts = np.flatnonzero(np.append(True, topic[1:] != topic[:-1])[: len(topic)]).astype(np.int32)
        lengths = np.diff(np.append(starts, len(topic)).astype(np.int32))
        count = len(self._ordinals)
        first, counts = np.zeros(count, np.int32), np.zeros(count, np.int32)
        first[topic[starts]], counts[topic[starts]] = starts, lengths
        if np.count_nonzero(counts) < len(starts) or not np.array_equal(partition, positions_within(lengths)):
            return None
        return first[ordinals], counts[ordinals]

    def _sorted(self, names: list[str], ordinals: NDArray[np.int64], faults: Faults) -> tuple[NDArray[np.int64], Int32]:
        """The position of each partition by topic and number, and how many each topic has."""
        rank = np.full(len(self._ordinals), -1, np.int64)
        rank[ordinals] = np.arange(len(names))
        topic = rank[int32(self._topic)] if len(rank) else np.empty(0, np.int64)
        retained = np.flatnonzero(topic >= 0)
        partition, line = int32(self._partition), int32(self._line)
        order = retained[np.lexsort((partition[retained], topic[retained]))]
        counts = np.bincount(topic[order], minlength=len(names)).astype(np.int32)
        self._check_numbering(names, topic[order], partition[order], counts, line[order], faults)
        return order, counts

    def take_columns(self, order: NDArray[np.int64]) -> tuple[Ragged, dict[str, Int32], dict[str, Ragged], Int32]:
        """The replicas, the numbers, the lists and the lines in an order. They are removed from the assembly."""
        replicas = self.replicas.take(order)
        numbers = {name: int32(self.numbers.pop(name))[order] for name in tuple(self.numbers)}
        lists = {name: self.lists.pop(name).take(order) for name in tuple(self.lists)}
        return replicas, numbers, lists, int32(self._line)[order]

    def _count_excluded(self, faults: Faults) -> None:
        known = [name for name in faults.topics if name in self._ordinals]
        if known:
            counts = np.bincount(int32(self._topic), minlength=len(self._ordinals))
            for name in sorted(known):
                faults.count_excluded(name, int(counts[self._ordinals[name]]))

    def _topic_facts(self, names: list[str], ordinals: NDArray[np.int64], counts: Int32) -> TopicFacts:
        new = {int(ordinal): index for index, ordinal in enumerate(ordinals)}
        topic_ids = np.zeros((len(names), 16), np.uint8)
        known = {new[ordinal]: topic_id for ordinal, topic_id in self.topic_ids.items() if ordinal in new}
        topic_ids[list(known)] = np.frombuffer(b"".join(known.values()), np.uint8).reshape(-1, 16)
        deleting = np.zeros(len(names), np.uint8)
        deleting[[new[ordinal] for ordinal in self.deleting if ordinal in new]] = 1
        configs = {new[ordinal]: self.configs[ordinal] for ordinal in ordinals.tolist() if self.configs.get(ordinal)}
        return TopicFacts(tuple(names), counts, topic_ids, deleting, configs)

    def _check_numbering(
        self, names: list[str], topic: NDArray[np.int64], partition: Int32, counts: Int32, line: Int32, faults: Faults
    ) -> None:
        """Report the first repeated partition of each topic, or else its first gap in the numbering."""
        repeats = np.flatnonzero((topic[1:] == topic[:-1]) & (partition[1:] == partition[:-1]))
        for position in repeats[_run_starts(topic[repeats])].tolist():
            name = f"{names[topic[position]]}-{partition[position]}"
            lines = sorted((int(line[position]), int(line[position + 1])))
            expected = f"each partition once (first at {self.location(lines[0])})"
            faults(SnapshotError(self.location(lines[1]), f"partition {name} again", expected), names[topic[position]])
        first = np.repeat(np.cumsum(counts) - counts, counts)
        gaps = np.flatnonzero((partition != np.arange(len(partition)) - first) & ~np.isin(topic, topic[repeats]))
        for position in gaps[_run_starts(topic[gaps])].tolist():
            name, missing = names[topic[position]], position - int(first[position])
            actual = f"partition {partition[position]} of topic {name} but no partition {missing}"
            expected = "partitions numbered from 0 without a gap"
            faults(SnapshotError(self.location(int(line[position])), actual, expected), name)


class Assembled:
    """The sorted tables of an Assembly."""

    def __init__(self, topics: TopicFacts, order: NDArray[np.int64], topic_lines: Int32, assembly: Assembly) -> None:
        self.topics: Final = topics
        self.replicas, self.numbers, self.lists, self._lines = assembly.take_columns(order)
        self._topic_lines, self._location = topic_lines, assembly.location

    def locate(self, kind: Literal["topic", "row"], index: int, column: str) -> str:
        """The ``Locate`` of ``kframe.snapshot.checks``."""
        if kind == "topic":
            return f"{self._location(int(self._topic_lines[index]))} ({self.topics.names[index]}) field {column}"
        return f"{self._location(int(self._lines[index]))} ({self.topics.name_of_row(index)}) field {column}"


def _run_starts(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the first of each run of equal values."""
    return np.flatnonzero(np.r_[True, ascending[1:] != ascending[:-1]][: len(ascending)])


def int32(values: array[int]) -> Int32:
    """An array module array as numpy, without a copy."""
    return np.frombuffer(values, np.int32) if len(values) else np.empty(0, np.int32)
