"""Live clusters at ``kafka://`` URLs: what their brokers report to any client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NoReturn

from kframe.plugin import ConfigError
from kframe.plugin.live import ClusterStatus, Progress, ignore_progress, listener_addresses
from kframe.plugin.snapshot import Snapshot
from kframe_kafka_wire.capture import capture
from kframe_kafka_wire.client import AdminClient, client_security
from kframe_kafka_wire.node import bootstrap_addresses
from kframe_kafka_wire.security import ListenerSecurity


def open_cluster(url: str, config: Mapping[str, str]) -> KafkaCluster:
    """The cluster at ``kafka://HOST:PORT[,HOST:PORT]...``. Raises ConfigError.

    ``config`` has the keys of Kafka's clients.
    """
    return KafkaCluster(url, bootstrap_addresses(url), client_security(config))


class KafkaCluster:
    """Implements ``kframe.snapshot.live.LiveCluster``, except what needs ZooKeeper."""

    def __init__(self, url: str, addresses: Sequence[tuple[str, int]], security: ListenerSecurity) -> None:
        """Does not connect. Raises ConfigError."""
        self._url = url
        self._addresses = addresses
        self._security = security
        security.credentials()

    def store(self) -> NoReturn:
        """Raises ConfigError: brokers offer no store."""
        raise self._needs_zookeeper()

    def reader(self) -> NoReturn:
        """Raises ConfigError: brokers offer no store."""
        raise self._needs_zookeeper()

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """Read everything that brokers report, write nothing; see ``capture.capture``."""
        with closing(AdminClient(self._addresses, self._security)) as client:
            return capture(client, self._url, self._security.protocol, progress)

    def status(self, progress: Progress = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        """Read everything that brokers report; see ``LiveCluster.status``. ``quick`` makes no difference."""
        return ClusterStatus.of(self.capture(progress), None, None)

    def audit(self) -> tuple[str, ...]:
        """Nothing: brokers do not report who may change the metadata."""
        return ()

    def broker_addresses(self) -> dict[int, str]:
        """See ``LiveCluster.broker_addresses``: the listener that answers."""
        return listener_addresses(self.capture())

    def depose(self, controller_id: int | None = None) -> NoReturn:
        """Raises ConfigError: clients cannot remove a controller."""
        raise self._needs_zookeeper()

    def _needs_zookeeper(self) -> ConfigError:
        return ConfigError("cluster URL", self._url, "zookeeper://HOST:PORT[/chroot]")
