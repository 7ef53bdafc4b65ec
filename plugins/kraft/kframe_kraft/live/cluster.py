"""Live clusters at ``kraft://`` URLs: the committed metadata log of the quorum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from kframe.plugin import ConfigError
from kframe.plugin.live import ClusterStatus, CommittedLog, Progress, ignore_progress, listener_addresses
from kframe.plugin.snapshot import Snapshot
from kframe_kraft.live.committed_log import QuorumLog
from kframe_kraft.live.opening import open_observer, read_quorum
from kframe_kraft.sources.snapshots import snapshot_of


def open_cluster(url: str, config: Mapping[str, str]) -> QuorumCluster:
    """The cluster at ``kraft://HOST:PORT[,HOST:PORT]...``. Raises ConfigError.

    ``config`` has the keys of Kafka's clients.
    """
    return QuorumCluster(url, config)


class QuorumCluster:
    """Implements ``kframe.ports.live_cluster.LiveCluster``, except what needs ZooKeeper."""

    def __init__(self, url: str, config: Mapping[str, str]) -> None:
        """Does not connect. Raises ConfigError."""
        self._url = url
        self._config = config
        open_observer(url, config)

    def store(self) -> NoReturn:
        """Raises ConfigError: a quorum offers no store."""
        raise self._needs_zookeeper()

    def reader(self) -> NoReturn:
        """Raises ConfigError: a quorum offers no store."""
        raise self._needs_zookeeper()

    def committed_log(self) -> CommittedLog:
        """See ``LoggedCluster.committed_log``."""
        return QuorumLog(open_observer(self._url, self._config))

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """The cluster at the high watermark. Nothing is written. Raises StoreError and LogError."""
        return snapshot_of(read_quorum(self._url, self._config, progress), self._url)

    def status(self, progress: Progress = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        """Read the whole log; see ``LiveCluster.status``. ``quick`` makes no difference."""
        snapshot = self.capture(progress)
        return ClusterStatus.of(snapshot, snapshot.controller_epoch, "kraft")

    def audit(self) -> tuple[str, ...]:
        """Nothing: the log does not tell who may change it."""
        return ()

    def broker_addresses(self) -> dict[int, str]:
        """See ``LiveCluster.broker_addresses``."""
        return listener_addresses(self.capture())

    def depose(self, controller_id: int | None = None) -> NoReturn:
        """Raises ConfigError: clients cannot remove a controller."""
        raise self._needs_zookeeper()

    def _needs_zookeeper(self) -> ConfigError:
        return ConfigError("cluster URL", self._url, "zookeeper://HOST:PORT[/chroot]")
