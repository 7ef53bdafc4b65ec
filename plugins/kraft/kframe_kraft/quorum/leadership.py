"""What the leader of an epoch knows of the replicas, and what is committed (Kafka ``LeaderState``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe_kraft.quorum.voters import ReplicaKey

#: After so long without a Fetch an observer is forgotten.
OBSERVER_TIMEOUT_MS: Final = 300_000


@dataclass(slots=True)
class ReplicaProgress:
    """A replica has the records below ``end``. Times are in milliseconds, -1 if there was none.

    ``caught_up_ms`` is the last time at which it had everything that the leader had.
    """

    end: int = -1
    fetched_ms: int = -1
    caught_up_ms: int = -1
    #: The leader's end at the last Fetch: a later Fetch from there on shows that the replica had caught up then.
    leader_end: int = -1

    def note(self, offset: int, leader_end: int, now: int) -> None:
        """Note a Fetch from ``offset`` on."""
        if offset >= leader_end:
            self.caught_up_ms = max(now, self.caught_up_ms)
        elif 0 < self.leader_end <= offset:
            self.caught_up_ms = max(self.fetched_ms, self.caught_up_ms)
        self.end = offset
        self.fetched_ms = max(now, self.fetched_ms)
        self.leader_end = max(leader_end, self.leader_end)


class Leadership:
    """The leader of ``epoch``, whose first record has the offset ``start``. It is the only voter."""

    def __init__(self, epoch: int, start: int) -> None:
        self.epoch = epoch
        self.start = start
        self.high_watermark: int | None = None
        self._observers: dict[ReplicaKey, ReplicaProgress] = {}

    def note_synced(self, end: int) -> bool:
        """Note that the records below ``end`` are durable here. Returns whether the high watermark rises."""
        if end <= max(self.start, self.high_watermark or 0):
            return False
        self.high_watermark = end
        return True

    def note_fetch(self, replica: ReplicaKey, offset: int, leader_end: int, now: int) -> None:
        """Note the Fetch of another replica. Those without a node id (-1), as consumers, are not remembered."""
        if replica.node_id >= 0:
            self._observers.setdefault(replica, ReplicaProgress()).note(offset, leader_end, now)

    def observer_count(self, now: int) -> int:
        """How many replicas have fetched lately. Thread-safe."""
        return sum(now - each.fetched_ms < OBSERVER_TIMEOUT_MS for each in tuple(self._observers.values()))

    def observers(self, now: int) -> dict[ReplicaKey, ReplicaProgress]:
        """The replicas that have fetched lately; the others are forgotten."""
        self._observers = {
            key: progress
            for key, progress in self._observers.items()
            if now - progress.fetched_ms < OBSERVER_TIMEOUT_MS
        }
        return dict(self._observers)
