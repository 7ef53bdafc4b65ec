"""What an embedded cluster of either mode does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from kframe.plugin.cluster import ElectionType
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.controllers import ControllerReading

#: Racks of the brokers, in turn.
RACKS: Final = 3
REPLICATION_FACTOR: Final = 3
#: Directories of each broker, and the most partitions of a cluster whose brokers have as many; others have one.
DIRECTORIES: Final = 2
PARTITIONS_WITH_DIRECTORIES_MAX: Final = 20_000


class DemoCluster(Protocol):
    """A cluster in this process: controllers of kframe, and brokers that only answer them. One thread calls it, and
    any thread calls ``read_controllers``.

    Operations on a broker that is in another state do nothing. Replicas of a broker that has started are in sync after
    ``catch_up``.
    """

    @property
    def mode(self) -> str:
        """``kraft`` or ``zookeeper``."""

    @property
    def broker_ids(self) -> Sequence[int]:
        """All brokers, whatever their state."""

    @property
    def operations(self) -> Sequence[str]:
        """The names of ``DemoOperation`` that it supports."""

    @property
    def version(self) -> int:
        """A number that rises with each change."""

    def start(self) -> None:
        """Start the controllers and the brokers."""

    def stop(self) -> None:
        """Stop the controllers."""

    def snapshot(self) -> Snapshot:
        """The present state."""

    def read_controllers(self) -> list[ControllerReading]:
        """The status and the metrics of the controllers."""

    def create_topic(self, name: str, partitions: int) -> str:
        """Create a topic. Returns why it was refused, or nothing."""

    def start_broker(self, broker_id: int) -> None:
        """Start a broker, or connect it again. Its directories are repaired."""

    def kill_broker(self, broker_id: int) -> None:
        """End a broker without a controlled shutdown. Its session ends at once."""

    def shut_down_broker(self, broker_id: int) -> None:
        """End a broker by a controlled shutdown."""

    def fence_broker(self, broker_id: int) -> None:
        """End the session of a broker that runs on."""

    def fail_directory(self, broker_id: int) -> None:
        """Fail the next log directory of a broker. A broker without one ends."""

    def catch_up(self) -> None:
        """Let followers fetch what they lack, so that leaders propose them for their ISRs."""

    def elect_leaders(self, election_type: ElectionType) -> None:
        """Elect preferred leaders, or any for the partitions without one, at the cost of records."""

    def resign(self) -> None:
        """Make the active controller lose its role."""
