"""What a reader does about a fault of its source: refuse the source, or note the fault and leave its topic out.

A topic is whole in a snapshot or not there at all. One that lacks a partition, or has one whose state nobody could
read, would be counted wrong by whoever asks what the cluster comes to.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kframe.errors import SnapshotError

#: A source with more faults than this is refused: it is something else than it looks like.
FAULTS_MAX: Final = 100_000


class Faults:
    """The strict way, and what the tolerant one can be asked for: the first fault is raised."""

    @property
    def topics(self) -> Collection[str]:
        """Names of the topics that are to be left out."""
        return ()

    def __call__(self, fault: SnapshotError, topic: str | None = None, partitions: int | None = None) -> None:
        """Raise ``fault``, or note it with the topic that it spoils (None: it spoils none, or nobody knows which).

        ``partitions`` is how many partitions were read of what is at fault, where no topic can say it.
        """
        raise fault

    def left_out(self, topic: str, partitions: int) -> None:
        """Note how many partitions of a topic at fault were read and are left out."""


#: The only one of its kind: it has no state.
REFUSE: Final = Faults()


@dataclass(frozen=True, slots=True)
class Noted:
    """A fault and the topic that is left out for it, if any."""

    fault: SnapshotError
    topic: str | None
    partitions: int | None = None


class FaultNotes(Faults):
    """The tolerant way: faults are noted, their topics left out.

    Raises SnapshotError at the first fault beyond ``most``.
    """

    def __init__(self, most: int = FAULTS_MAX) -> None:
        self.noted: Final[list[Noted]] = []
        self.partitions: Final[dict[str, int]] = {}
        """How many partitions of each topic at fault were left out."""
        self._topics: set[str] = set()
        self._most = most

    @property
    def topics(self) -> Collection[str]:
        """Names of the topics that are to be left out."""
        return self._topics

    def __call__(self, fault: SnapshotError, topic: str | None = None, partitions: int | None = None) -> None:
        """Note a fault."""
        if len(self.noted) == self._most:
            raise SnapshotError(fault.where, f"{fault.found}, after {self._most} other faults", fault.expected)
        self.noted.append(Noted(fault, topic, partitions if topic is None else None))
        if topic is not None:
            self._topics.add(topic)
            if partitions is not None:
                self.left_out(topic, partitions)

    def left_out(self, topic: str, partitions: int) -> None:
        """Note how many partitions of a topic at fault were read and are left out."""
        self.partitions[topic] = self.partitions.get(topic, 0) + partitions
