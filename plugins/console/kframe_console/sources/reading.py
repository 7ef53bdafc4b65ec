"""Readings of a cluster, with the values that are computed once for each, and the sources of readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from msgspec import Struct

from kframe.plugin.live import ClusterHistory, Difference, GroupedCluster, HistoryPoint
from kframe.plugin.snapshot import Conditions, Loads, Snapshot, Summary, conditions_of, loads_of, summarize
from kframe_console.sources.listed_bytes import ListedBytes

#: The number of a reading without a cluster: a fleet has it until the user chooses a cluster.
NO_CLUSTER: Final = 0
#: Most changes that a summary lists.
EXAMPLES_MAX: Final = 50


@dataclass(frozen=True)
class Reading:
    """The cluster as it was read, or as it was, at one time. Each reading of a source has a ``number`` of its own."""

    number: int
    snapshot: Snapshot
    read_at: datetime
    point: HistoryPoint | None = None
    """Its position in the history, if the source has one."""
    cluster: str | None = None
    """The name of the cluster, if the source has several."""
    listed: ListedBytes | None = None
    """The bytes that its brokers listed last, if they are asked."""

    @property
    def conditions(self) -> Conditions:
        """The conditions of all partitions. Their masks are large, so each use computes them again."""
        return conditions_of(self.snapshot)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all facts."""
        return self.snapshot.digest()

    @cached_property
    def loads(self) -> Loads:
        """The loads of all brokers."""
        return loads_of(self.snapshot)

    @cached_property
    def summary(self) -> Summary:
        """The cluster in numbers."""
        return summarize(self.snapshot, self.conditions, self.loads)

    def later(self, read_at: datetime, **fields: object) -> Reading:
        """A copy for a later time with other ``fields``; it has the computed values already."""
        later = copy(self)
        later.__dict__.update(fields, read_at=read_at)
        return later

    def prepare(self) -> Reading:
        """Compute what most pages need, so that no page waits for it. Returns the reading."""
        self.summary  # noqa: B018
        return self


class ClusterChanges(Struct):
    """Changes from the time ``since`` (ISO 8601) to a reading.

    ``counts`` are by kind and change, such as ``partition leader``; ``examples`` are the first changes.
    """

    since: str
    counts: dict[str, int]
    examples: list[Difference]

    @staticmethod
    def of(since: datetime, differences: Iterable[Difference]) -> ClusterChanges:
        """The counts of all differences, and the first EXAMPLES_MAX."""
        counts: Counter[str] = Counter()
        examples: list[Difference] = []
        for difference in differences:
            counts[f"{difference.kind} {difference.change}"] += 1
            if len(examples) < EXAMPLES_MAX:
                examples.append(difference)
        return ClusterChanges(since.isoformat(timespec="seconds"), dict(sorted(counts.items())), examples)


class ClusterSource:
    """A source of readings. A thread of its own reads the cluster. Subclasses override what they have."""

    name: str
    """The source as the user named it."""
    history: ClusterHistory | None = None
    """The history of the cluster, if it has one."""
    points: Sequence[HistoryPoint] = ()
    """Positions of the history that the slider has, ascending; empty without a history."""
    groups: GroupedCluster | None = None
    """Reads the consumer groups; None if the source does not have them."""

    @property
    def is_live(self) -> bool:
        """Whether further readings follow."""
        return False

    @property
    def problem(self) -> str | None:
        """Why the last attempt at a reading failed; None if it did not."""
        return None

    def reading(self, position: str) -> Reading:
        """The reading at a position, such as an offset or a time; the newest if ``position`` is empty.

        It may compute for a while. Raises ParameterError for an unknown position.
        """
        raise NotImplementedError

    def changes(self, reading: Reading) -> ClusterChanges | None:
        """Changes in the hour before a reading, or since the oldest reading; None if it is the oldest."""
        return None

    def start(self) -> None:
        """Begin to read."""

    def close(self) -> None:
        """Stop reading."""
