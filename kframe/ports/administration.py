"""The admin API of a live cluster with any kind of controller. A plugin offers it by ``kframe_admins``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.tables import Targets

if TYPE_CHECKING:
    from kframe.snapshot.metadata import ClusterDescription, PartitionReassignment
    from kframe.snapshot.snapshot import Snapshot


class ConfigResource(NamedTuple):
    """What has configurations: a topic by its name, or a broker by its id."""

    topic: str | None
    broker_id: int | None = None


class LogDirReplica(NamedTuple):
    """The log of a replica on a broker: its size in bytes, and its log directory."""

    bytes: int
    log_dir: str


class Administration(Protocol):
    """One connection to a cluster's admin API. All raise StoreError where no controller can be reached."""

    def capture(self) -> Snapshot:
        """The cluster as its brokers describe it: no versions of storage, no topic settings."""

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        """Begin, change or cancel reassignments (AlterPartitionReassignments). A code for each target."""

    def reassignments(self) -> Mapping[TopicPartition, PartitionReassignment]:
        """All ongoing reassignments (ListPartitionReassignments)."""

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Elect leaders (ElectLeaders) for these partitions, or for all (returns those that needed it)."""

    def describe(self) -> ClusterDescription:
        """The present reassignments, brokers and partitions, without configurations."""

    def read_configs(
        self, resources: Mapping[ConfigResource, Sequence[str]]
    ) -> Mapping[ConfigResource, Mapping[str, str]]:
        """The own values of configurations by name (DescribeConfigs), without those that a resource inherits.

        Raises StoreError, also for a broker that cannot be reached.
        """

    def change_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, ErrorCode]:
        """Set configurations, or delete those of value None (IncrementalAlterConfigs). A code for each resource.

        A broker changes its own configurations; BROKER_NOT_AVAILABLE says that it cannot be reached.
        """

    def replica_logs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[TopicPartition, LogDirReplica]]:
        """The logs of replicas by broker and partition (DescribeLogDirs), without brokers that do not respond or that
        refuse.

        A broker needs DESCRIBE on the cluster.
        """

    def close(self) -> None:
        """Disconnect."""
