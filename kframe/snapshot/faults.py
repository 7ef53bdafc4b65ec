"""How a reader handles a fault of its source: refuse the source, or note the fault and exclude its topic.

A snapshot holds a topic completely or not at all. A topic with a missing or unreadable partition would make every
count of the cluster wrong.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from kframe.errors import SnapshotError

#: A source with more faults than this is refused: it is probably not in the detected format.
FAULTS_MAX: Final = 100_000


class Faults:
    """The strict policy, which raises the first fault. It is also the interface of the tolerant policy."""

    @property
    def topics(self) -> Collection[str]:
        """Names of the topics to exclude."""
        return ()

    def __call__(self, fault: SnapshotError, topic: str | None = None, partitions: int | None = None) -> None:
        """Raise ``fault``, or note it with the topic that it makes unusable (None: no topic, or an unknown one).

        ``partitions`` is the number of partitions read of the faulty part, where no topic can supply it.
        """
        raise fault

    def count_excluded(self, topic: str, partitions: int) -> None:
        """Note how many partitions of a topic at fault were read and are excluded."""


#: The shared strict policy; it has no state.
REFUSE: Final = Faults()


class FaultNote(Struct, frozen=True):
    """A fault and the topic that is excluded for it, if any."""

    fault: SnapshotError
    topic: str | None
    partitions: int | None = None


class FaultNotes(Faults):
    """The tolerant policy: faults are noted, their topics excluded.

    Raises SnapshotError at the first fault beyond ``limit``.
    """

    def __init__(self, limit: int = FAULTS_MAX) -> None:
        self.noted: Final[list[FaultNote]] = []
        self.partitions: Final[dict[str, int]] = {}
        """How many partitions of each topic at fault were excluded."""
        self._topics: set[str] = set()
        self._limit = limit

    @property
    def topics(self) -> Collection[str]:
        """Names of the topics to exclude."""
        return self._topics

    def __call__(self, fault: SnapshotError, topic: str | None = None, partitions: int | None = None) -> None:
        """Note a fault."""
        if len(self.noted) == self._limit:
            raise SnapshotError(fault.where, f"{fault.actual}, after {self._limit} other faults", fault.expected)
        self.noted.append(FaultNote(fault, topic, partitions if topic is None else None))
        if topic is not None:
            self._topics.add(topic)
            if partitions is not None:
                self.count_excluded(topic, partitions)

    def count_excluded(self, topic: str, partitions: int) -> None:
        """Note how many partitions of a topic at fault are excluded."""
        self.partitions[topic] = self.partitions.get(topic, 0) + partitions
