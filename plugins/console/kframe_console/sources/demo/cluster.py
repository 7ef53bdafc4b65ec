"""The operations of an embedded cluster of either mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import ElectionType
from kframe.plugin.controller import Controller, KraftController
from kframe.plugin.snapshot import Snapshot

_RACKS: Final = 3
_REPLICATION_FACTOR: Final = 3
#: Log directories of each broker, and the most partitions of such a cluster; brokers of a larger one have one.
DIRECTORIES: Final = 2
PARTITIONS_WITH_DIRECTORIES_MAX: Final = 20_000


class DemoCluster(ABC):
    """A cluster in this process: controllers of kframe, and brokers that only answer them. One thread calls it.

    Operations on a broker that is in another state do nothing. Replicas of a broker that has started are in sync after
    ``catch_up``.
    """

    mode: ClassVar[str]
    """``kraft`` or ``zookeeper``."""
    controllers: Sequence[Controller | KraftController]

    def __init__(self, brokers: int) -> None:
        self.broker_ids: Final = tuple(range(1, brokers + 1))
        self.replication_factor: Final = min(_REPLICATION_FACTOR, brokers)

    @staticmethod
    def rack_of(broker_id: int) -> str:
        """The rack of a broker: consecutive brokers are in different racks."""
        return f"rack-{(broker_id - 1) % _RACKS + 1}"

    @property
    @abstractmethod
    def version(self) -> int:
        """A number that increases with each change."""

    @abstractmethod
    def start(self) -> None:
        """Start the controllers and the brokers."""

    def stop(self) -> None:
        """Stop the controllers."""
        for controller in self.controllers:
            controller.stop()

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The present state."""

    @abstractmethod
    def create_topic(self, name: str, partitions: int) -> str:
        """Create a topic. Returns why it was refused; empty if it was not."""

    @abstractmethod
    def start_broker(self, broker_id: int) -> None:
        """Start a broker, or connect it again. Its directories are repaired."""

    @abstractmethod
    def kill_broker(self, broker_id: int) -> None:
        """End a broker without a controlled shutdown. Its session ends at once."""

    @abstractmethod
    def shut_down_broker(self, broker_id: int) -> None:
        """End a broker by a controlled shutdown."""

    def fence_broker(self, broker_id: int) -> None:
        """End the session of a broker that continues to run. Only KRaft mode has fenced brokers."""
        raise NotImplementedError

    @abstractmethod
    def fail_directory(self, broker_id: int) -> None:
        """Fail the next log directory of a broker. A broker without one ends."""

    @abstractmethod
    def catch_up(self) -> None:
        """Let followers fetch what they lack, so that leaders propose them for their ISRs."""

    @abstractmethod
    def elect_leaders(self, election_type: ElectionType) -> None:
        """Elect preferred leaders; or, unclean, any leader for partitions without one, which may lose records."""

    def resign(self) -> None:
        """Let the stand-by take over from the active controller. Only ZooKeeper mode has a stand-by."""
        raise NotImplementedError


def refusal_of(created: Any, name: str) -> str:
    """Why a topic was not created; empty if it was. ``created`` are the error codes by topic."""
    return "" if created[name] is ErrorCode.NONE else created.messages.get(name, created[name].name)
