"""The admin API of a live cluster, through whatever controller it has. A plugin offers it by ``kframe_admins``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.tables import Targets
from kframe.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Moving:
    """One partition under reassignment: its replicas, and those of them that are added and removed (broker ids)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Administration(Protocol):
    """One connection to a cluster's admin API. All raise StoreError where no controller can be reached."""

    def capture(self) -> Snapshot:
        """The cluster as its brokers describe it: no versions of storage, no topic settings."""

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        """Begin, change or cancel reassignments (AlterPartitionReassignments). A code for each target."""

    def reassignments(self) -> Mapping[TopicPartition, Moving]:
        """All ongoing reassignments (ListPartitionReassignments)."""

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Elect leaders (ElectLeaders) for these partitions, or for all (answers those that needed it)."""

    def close(self) -> None:
        """Disconnect."""
