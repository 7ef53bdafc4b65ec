"""Where the logs of a partition are on their way between log directories.

A broker copies a log to a future log in the other directory, which replaces it once it has caught up. A request for
the directory of the present log deletes the future log (Kafka ``ReplicaManager.alterReplicaLogDirs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kframe.plans.execute.entries import DirectoryRequest, ExecutedPartition
from kframe.plans.execute.observation import Observation, Position

#: The position of a partition is the first of these that one of its logs has.
_ORDER: Final = (Position.ELSEWHERE, Position.TO_START, Position.TO_END, Position.UNKNOWN, Position.AT_START)


@dataclass(frozen=True, slots=True)
class LocatedLog:
    """The log of a replica that is not, or not only, in its directory at the end of the move."""

    broker_id: int
    end: str
    current: str | None
    future: str | None
    position: Position

    @property
    def text(self) -> str:
        """The broker and the directories."""
        return f"broker {self.broker_id}: {self.current or 'none'}, expected {self.end}"


def located_logs(partition: ExecutedPartition, observation: Observation, rolls_back: bool) -> tuple[LocatedLog, ...]:
    """The logs of a partition that have not arrived."""
    return tuple(log for log in _located(partition, observation, rolls_back) if log.position is not Position.AT_END)


def _located(partition: ExecutedPartition, observation: Observation, rolls_back: bool) -> Iterator[LocatedLog]:
    for move in partition.directory_moves(rolls_back):
        start, end = move.ends(rolls_back)
        logs = observation.logs.get(move.broker_id)
        if logs is None:
            yield LocatedLog(move.broker_id, end, None, None, Position.UNKNOWN)
            continue
        paths = logs.get(partition.name)
        current, future = (None, None) if paths is None else (paths.current, paths.future)
        position = Position.ELSEWHERE
        if future == end:
            position = Position.TO_END
        elif future is None and current == end:
            position = Position.AT_END
        elif future is None and current is not None and start in (None, current):
            position = Position.AT_START
        elif future is not None and future == start and current == end:
            position = Position.TO_START
        yield LocatedLog(move.broker_id, end, current, future, position)


def position_of(logs: Iterable[LocatedLog]) -> Position:
    """The position of a partition whose logs that have not arrived are these."""
    positions = {log.position for log in logs}
    return next((position for position in _ORDER if position in positions), Position.AT_END)


def directory_request(partition: ExecutedPartition, logs: Iterable[LocatedLog], cancels: bool) -> DirectoryRequest:
    """The request that moves logs to their end, or that cancels moves in progress."""
    if cancels:
        paths = tuple(
            (log.broker_id, log.current) for log in logs if log.future is not None and log.current is not None
        )
        return DirectoryRequest(*partition.name, paths)
    return DirectoryRequest(*partition.name, tuple((log.broker_id, log.end) for log in logs))
