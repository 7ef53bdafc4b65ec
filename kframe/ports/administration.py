"""The admin API of a live cluster with any kind of controller. A plugin offers it by ``kframe_admins``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.tables import Targets

if TYPE_CHECKING:
    from kframe.snapshot.metadata import ClusterDescription, PartitionReassignment
    from kframe.snapshot.snapshot import Snapshot


#: Most bytes of a volume. Sums of sizes are exact up to it.
_VOLUME_MAX: Final = 2**53


class ConfigResource(NamedTuple):
    """What has configurations: a topic by its name, or a broker by its id."""

    topic: str | None
    broker_id: int | None = None


class LogDirReplica(NamedTuple):
    """The log of a replica on a broker: its size in bytes, and its log directory."""

    bytes: int
    log_dir: str


class DirectoryLog(NamedTuple):
    """The log of a replica in a log directory. A future log replaces that of another directory of the broker once it
    has caught up."""

    topic: str
    partition: int
    bytes: int
    is_future: bool = False


class DirectoryName(NamedTuple):
    """A log directory of a broker, by its path."""

    broker_id: int
    path: str

    @property
    def text(self) -> str:
        """``BROKER:PATH``."""
        return f"{self.broker_id}:{self.path}"


class LogDirectory(NamedTuple):
    """A log directory of a broker (DescribeLogDirs).

    ``error`` says why the broker cannot use it; None: it is online. ``total_bytes`` and ``usable_bytes`` are those of
    its volume, None where the source does not say. A cordoned directory receives no replica.
    """

    path: str
    logs: Sequence[DirectoryLog]
    error: str | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_cordoned: bool = False


def replica_logs(listed: Mapping[int, Iterable[LogDirectory]]) -> dict[int, dict[TopicPartition, LogDirReplica]]:
    """The logs of replicas by broker and partition, without future logs."""
    return {
        broker_id: {
            (log.topic, log.partition): LogDirReplica(log.bytes, directory.path)
            for directory in directories
            for log in directory.logs
            if not log.is_future
        }
        for broker_id, directories in listed.items()
    }


def volume_bytes(count: int | None) -> int | None:
    """The bytes of a volume; None if they are unknown.

    A broker sends -1 where it does not know them, and the largest int64 for a volume that is too large to count
    (Kafka ``ReplicaManager.describeLogDirs``).
    """
    return None if count is None or not 0 <= count <= _VOLUME_MAX else count


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

    def log_directories(self, broker_ids: Collection[int]) -> Mapping[int, Sequence[LogDirectory]]:
        """The log directories by broker (DescribeLogDirs), without brokers that do not respond or that refuse.

        A broker needs DESCRIBE on the cluster.
        """

    def alter_log_directories(
        self, paths: Mapping[int, Mapping[TopicPartition, str]]
    ) -> Mapping[int, Mapping[TopicPartition, ErrorCode]]:
        """Move the logs of replicas to other log directories, by broker and partition (AlterReplicaLogDirs).

        The path of the present directory cancels a move in progress. Returns a code for each move. BROKER_NOT_AVAILABLE
        says that the broker cannot be reached. A broker needs ALTER on the cluster.
        """

    def close(self) -> None:
        """Disconnect."""
