"""The committed metadata log of a running KRaft quorum, as a live cluster of a plugin offers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import MetadataRecord
from kframe.ports.progress import Progress, ignore_progress


class CommittedRecord(NamedTuple):
    """A record of the log, and the version in which it is written."""

    offset: int
    record: MetadataRecord
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class CommittedBatch:
    """A batch of the log. ``time_ms`` is the leader's clock, in milliseconds since 1970."""

    offset: int
    time_ms: int
    leader_id: int
    """The active controller that wrote the batch. -1 if the log does not show it."""
    leader_epoch: int
    records: tuple[CommittedRecord, ...]
    """The records to replay: without control records and the markers of transactions. Those of a transaction are in the
    batch that ends it."""
    in_transaction: bool = False
    """Whether the batch begins, continues or ends a transaction."""


class CommittedLog(Protocol):
    """Follows the committed log of a quorum. One thread calls it. All raise StoreError without a usable leader, and
    LogError for a malformed log."""

    @property
    def generation(self) -> int:
        """Counts the snapshots that have replaced the log, because the reader was too far behind."""

    @property
    def end(self) -> int:
        """The offset after the batches that ``poll`` has returned."""

    @property
    def leader_id(self) -> int:
        """The active controller at ``end``. -1 if none is known."""

    def open(self, progress: Progress = ignore_progress, *, from_start: bool = False) -> None:
        """Connect, and read the log. ``poll`` then begins with its end, or ``from_start`` with its newest snapshot."""

    def metadata(self) -> ClusterMetadata:
        """The cluster at ``end``, for the caller to keep. Only right after ``open`` and after a new generation."""

    def poll(self) -> Sequence[CommittedBatch]:
        """Wait a little for committed batches, and return those from ``end`` on, without those of control records.

        Returns none if a snapshot replaces the log; ``end`` is then that of the snapshot.
        """

    def close(self) -> None:
        """Disconnect."""


@runtime_checkable
class LoggedCluster(Protocol):
    """A live cluster with a metadata log."""

    def committed_log(self) -> CommittedLog:
        """The log, not open yet."""
