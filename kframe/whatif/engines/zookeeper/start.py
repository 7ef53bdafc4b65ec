"""What a controller of a cluster in ZooKeeper mode starts with, apart from the partitions of the snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.snapshot import Snapshot
from kframe.whatif.engines.known_facts import KnownFacts
from kframe.whatif.engines.settings import assumptions_of, config_of, controller_epoch_of


class ZookeeperStart(Struct, frozen=True, eq=False):
    """A cluster and the settings of its controller. ``snapshot`` has no columns of partitions: a caller that does not
    need them either frees their memory before the controller has its own."""

    snapshot: Snapshot
    cluster: ClusterState
    controller_epoch: int
    known: KnownFacts
    config: ControllerConfig
    assumptions: tuple[str, ...]

    @staticmethod
    def of(snapshot: Snapshot, config: Mapping[str, object] | None = None) -> ZookeeperStart:
        """That of a snapshot. Raises SnapshotError if it does not say who leads, ConfigError for a key or value."""
        return ZookeeperStart(
            snapshot.without_partitions(),
            snapshot.to_cluster(),
            controller_epoch_of(snapshot),
            KnownFacts.of(snapshot, config),
            config_of(snapshot, config),
            assumptions_of(snapshot, config),
        )
