"""One reading of a cluster, and what is computed of it once."""

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

#: The number of a reading of no cluster: a source of several clusters has it until one of them is chosen.
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
        """The same reading, which still holds at a later time, with what was computed of it, and with other fields."""
        later = copy(self)
        later.__dict__.update(fields, read_at=read_at)
        return later

    def prepare(self) -> Reading:
        """Compute what most pages need, so that no page waits for it. Returns the reading."""
        self.summary  # noqa: B018
        return self


class ClusterChanges(Struct):
    """What changed up to a reading from ``since`` on, a time of ISO 8601.

    ``counts`` are by kind and change, as ``partition leader``; ``examples`` are the first changes.
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
    """Where readings come from. A thread of its own reads. A kind of source inherits what it does not have."""

    name: str
    """The source as the user named it."""
    history: ClusterHistory | None = None
    """The history of the cluster, if it has one."""
    points: Sequence[HistoryPoint] = ()
    """Some positions of the history from its first to its last, to choose from; empty without a history."""
    groups: GroupedCluster | None = None
    """The cluster that knows its consumer groups; None if the source does not."""

    @property
    def is_live(self) -> bool:
        """Whether further readings follow."""
        return False

    @property
    def problem(self) -> str | None:
        """Why the last attempt at a reading failed; None if it did not."""
        return None

    def reading(self, at: str) -> Reading:
        """The reading at a position of the history, which the kind of source defines; the newest if ``at`` is empty.

        It may compute for a while. Raises ParameterError for a position that there is not.
        """
        raise NotImplementedError

    def changes(self, reading: Reading) -> ClusterChanges | None:
        """What changed in the hour before a reading, or since the oldest known one; None if there is none before."""
        return None

    def start(self) -> None:
        """Begin to read."""

    def close(self) -> None:
        """Stop reading."""
