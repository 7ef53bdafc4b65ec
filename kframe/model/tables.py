"""Tables of many topics or partitions from storage and clients, in columns. Brokers are ids here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Ragged, UInt8, ragged_positions
from kframe.model.ids import ReplicaFlag
from kframe.model.lists import last_of_equal, members

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, eq=False)
class TopicTable:
    """``t`` topics. ``replicas`` has one list per partition, ordered by topic, then by partition (``0 ..
    partition_counts[i] - 1``). ``flags`` has the ReplicaFlag bits ADDING and REMOVING of each replica."""

    names: tuple[str, ...]
    topic_ids: tuple[bytes | None, ...]
    partition_counts: Int32
    replicas: Ragged
    flags: UInt8

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def of(names: Sequence[str], assignments: Sequence[Sequence[tuple[int, ...]]]) -> TopicTable:
        """Topics without ids whose partitions have these replicas. For small inputs."""
        counts = np.array([len(partitions) for partitions in assignments], np.int32)
        replicas = Ragged.of([replicas for partitions in assignments for replicas in partitions])
        return TopicTable.starting(tuple(names), counts, replicas)

    @staticmethod
    def starting(names: tuple[str, ...], partition_counts: Int32, replicas: Ragged) -> TopicTable:
        """Topics without ids and without running reassignments."""
        none = np.zeros(len(replicas.values), np.uint8)
        return TopicTable(names, (None,) * len(names), partition_counts, replicas, none)

    @property
    def adding(self) -> Ragged:
        """The replicas of each partition that are being added."""
        return self._flagged(ReplicaFlag.ADDING)

    @property
    def removing(self) -> Ragged:
        """The replicas of each partition that are being removed."""
        return self._flagged(ReplicaFlag.REMOVING)

    def take(self, chosen: NDArray[Any]) -> TopicTable:
        """The topics numbered ``chosen``."""
        if len(chosen) == len(self) and bool((chosen == np.arange(len(self))).all()):
            return self
        starts = np.cumsum(self.partition_counts) - self.partition_counts
        counts = self.partition_counts[chosen]
        rows = ragged_positions(starts[chosen], counts)
        flags = self.flags[ragged_positions(self.replicas.offsets[rows], self.replicas.counts[rows])]
        names, ids = tuple(self.names[i] for i in chosen), tuple(self.topic_ids[i] for i in chosen)
        return TopicTable(names, ids, counts, self.replicas.take(rows), flags)

    def _flagged(self, flag: ReplicaFlag) -> Ragged:
        return self.replicas.keep((self.flags & np.uint8(flag)) != 0)


def reassignment_flags(replicas: Ragged, adding: Ragged, removing: Ragged) -> UInt8:
    """ReplicaFlag bits parallel to ``replicas.values``, from the adding and removing replicas of each partition."""
    flags = np.where(members(replicas, adding), np.uint8(ReplicaFlag.ADDING), np.uint8(0))
    flags[members(replicas, removing)] |= np.uint8(ReplicaFlag.REMOVING)
    return flags


class Targets(Struct, frozen=True, eq=False):
    """Requested replica lists of ``k`` partitions: partition ``partition[i]`` of topic ``names[topic[i]]``.

    ``cancel`` is true where the request cancels a running reassignment instead of giving a new list.
    """

    names: tuple[str, ...]
    topic: Int32
    partition: Int32
    replicas: Ragged
    cancel: Bool

    def __len__(self) -> int:
        return len(self.topic)

    def partitions(self) -> list[tuple[str, int]]:
        """Topic and number of each partition, in order; for small inputs."""
        topics = self.topic.tolist()
        return [(self.names[topic], number) for topic, number in zip(topics, self.partition.tolist(), strict=True)]

    def take(self, chosen: NDArray[Any]) -> Targets:
        """The partitions numbered ``chosen``."""
        return Targets(
            self.names, self.topic[chosen], self.partition[chosen], self.replicas.take(chosen), self.cancel[chosen]
        )

    def last_named(self) -> Int32:
        """For each target the position of the last target of the same partition. The last target takes effect."""
        return last_of_equal(self.topic.astype(np.int64) << 32 | self.partition.astype(np.int64) & 0xFFFFFFFF)

    def join(self, other: Targets) -> Targets:
        """These targets, then those of ``other``."""
        names = {name: index for index, name in enumerate(dict.fromkeys(self.names + other.names))}
        renumbered = np.array([names[name] for name in other.names], np.int32)
        return Targets(
            tuple(names),
            np.concatenate([self.topic, renumbered[other.topic]]),
            np.concatenate([self.partition, other.partition]),
            Ragged.chain([self.replicas, other.replicas]),
            np.concatenate([self.cancel, other.cancel]),
        )

    @staticmethod
    def of(targets: Sequence[tuple[tuple[str, int], Sequence[int] | None]]) -> Targets:
        """Build from pairs of (topic, partition) and replicas, with None to cancel. For small inputs."""
        names = tuple(dict.fromkeys(topic for (topic, _), _ in targets))
        indexes = {name: index for index, name in enumerate(names)}
        return Targets(
            names,
            np.array([indexes[topic] for (topic, _), _ in targets], np.int32),
            np.array([partition for (_, partition), _ in targets], np.int32),
            Ragged.of([tuple(replicas or ()) for _, replicas in targets]),
            np.array([replicas is None for _, replicas in targets], np.bool_),
        )


class Notifications(Struct, Generic[Item], frozen=True):
    """Notifications of brokers: the records, to be deleted after handling, and the items that they name."""

    paths: tuple[str, ...]
    items: tuple[Item, ...]


class TopicSettings(Struct, frozen=True):
    """The settings of a topic that a controller uses. UNSET where the topic has no setting of its own."""

    unclean: int
    min_insync: int


class RequestedPartitions(Struct, frozen=True, eq=False):
    """The partitions of a request, in order: ``partition[i]`` of ``topics[topic[i]]``.

    Topics are named once, all by name or all by id (16 bytes).
    """

    topics: tuple[str, ...] | tuple[bytes, ...]
    topic: Int32
    partition: Int32

    @staticmethod
    def of(partitions: Iterable[tuple[str | bytes, int]]) -> RequestedPartitions:
        """The columns of (topic, partition) pairs. For small inputs."""
        topics: dict[Any, int] = {}
        pairs = [(topics.setdefault(topic, len(topics)), partition) for topic, partition in partitions]
        topic, number = np.array(pairs, np.int32).reshape(-1, 2).T
        return RequestedPartitions(tuple(topics), topic, number)

    def __len__(self) -> int:
        return len(self.topic)

    def __getitem__(self, position: int) -> tuple[str | bytes, int]:
        return self.topics[self.topic[position]], int(self.partition[position])

    def __iter__(self) -> Iterator[tuple[str | bytes, int]]:
        names: tuple[str | bytes, ...] = self.topics
        return zip(map(names.__getitem__, self.topic.tolist()), self.partition.tolist(), strict=True)
