"""The history of a cluster, as a plugin offers it for a format of snapshots that has one (``SnapshotFormatSpec``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from kframe.snapshot.snapshot import Snapshot

#: The change in the other direction. All other changes have the same name in both.
_REVERSED: Final = {
    "registered": "unregistered",
    "unregistered": "registered",
    "created": "deleted",
    "deleted": "created",
    "added": "removed",
    "removed": "added",
}


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A position between two changes. ``end`` is the offset after the last record before it; ``time_ms`` is the time of
    that record in milliseconds since 1970."""

    end: int
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """A record of the history in words. ``time`` is ISO 8601."""

    offset: int
    time: str | None
    type: str
    key: str
    summary: str


@dataclass(frozen=True, slots=True)
class LeaderCause:
    """The last record with the leader. All fields but ``leader`` are None if only the snapshot has it."""

    partition: str
    leader: int
    leader_epoch: int
    snapshot_offset: int | None = None
    offset: int | None = None
    time: str | None = None
    record: str | None = None
    before: str | None = None
    event: str | None = None
    event_offset: int | None = None
    rule: str | None = None
    not_elected: dict[int, str] | None = None
    other_events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs. ``before`` and ``after`` are None where there is no value."""

    kind: str
    name: str
    change: str
    before: Any = None
    after: Any = None
    topic: str | None = None
    brokers: tuple[int, ...] = ()
    """The brokers whose replicas, leaderships or registration the difference is about."""

    def reversed(self) -> Difference:
        """The difference from the later state to the earlier one."""
        change = self.change if self.kind == "config" else _REVERSED.get(self.change, self.change)
        return replace(self, change=change, before=self.after, after=self.before)


class ClusterHistory(Protocol):
    """The metadata log of one cluster, up to its end when it was opened. Several threads may call it, but only one
    ``extended``.

    All raise LogError for a malformed log, and for a position, topic or partition that it does not have.
    """

    def extended(self) -> ClusterHistory | None:
        """The history up to the present end of its files; itself without new records.

        None if it must be opened again, because its records were replaced or deleted.
        """

    def points(self, count_max: int) -> Sequence[HistoryPoint]:
        """At most ``count_max`` (2 or more) positions from the first to the last, at even distances."""

    def point(self, position: str) -> HistoryPoint:
        """The position that a user states: an offset, ``end``, or a time of ISO 8601."""

    def snapshot(self, point: HistoryPoint) -> Snapshot:
        """The cluster at a position."""

    def partition_records(self, topic: str, partition: int, point: HistoryPoint, count_max: int) -> list[HistoryRecord]:
        """The last records of a partition up to a position, the newest first."""

    def leader_cause(self, topic: str, partition: int, point: HistoryPoint) -> LeaderCause:
        """Why a partition has its leader at a position."""

    def differences(self, before: HistoryPoint, after: HistoryPoint) -> Iterator[Difference]:
        """What changes from a position to a later one."""
