"""A follower as its leader sees it (Kafka 3.9 ``Replica``)."""

from __future__ import annotations

from typing import Final

from kframe_simulator.broker.messages import UNDEFINED

NEVER: Final = float("-inf")


class Replica:
    """A follower's state on its leader. Unknown offsets are -1. Times are milliseconds. NEVER replaces Kafka's 0."""

    __slots__ = ("caught_up_at", "end", "fetched_at", "leader_end")

    def __init__(self) -> None:
        self.end = UNDEFINED
        """Log end offset: the offset of the last fetch."""
        self.leader_end = 0
        """The leader's log end offset at the last fetch."""
        self.fetched_at = NEVER
        self.caught_up_at = NEVER
        """When it had last read to the end of the leader's log."""

    def fetched(self, offset: int, leader_end: int, now: float) -> None:
        """Record a fetch at ``offset`` when the leader's log ended at ``leader_end``."""
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end, self.fetched_at = offset, now
        self.leader_end = max(leader_end, self.leader_end)

    def reset(self, now: float, leader_end: int, newly_leader: bool, in_sync: bool) -> None:
        """Begin a leader epoch. A re-elected leader keeps the state of its followers."""
        self.caught_up_at = now if in_sync else NEVER
        if newly_leader:
            self.end = self.leader_end = UNDEFINED
            self.fetched_at = NEVER
        else:
            self.leader_end = leader_end
            self.fetched_at = now if in_sync else NEVER

    def caught_up(self, leader_end: int, now: float, lag_max: float) -> bool:
        """Whether the follower counts as in sync."""
        return self.end == leader_end or now - self.caught_up_at <= lag_max
