"""The engine of a snapshot, and its sweep: the only place that asks for the mode of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kframe.engines.engine import Engine
from kframe.errors import ParameterError

if TYPE_CHECKING:
    from kframe.engines.results.sweep import Sweep
    from kframe.engines.zookeeper.observe import BatchWatch
    from kframe.model.elections import LeaderSelector
    from kframe.model.ids import ElectionKind
    from kframe.ports.clock import Clock
    from kframe.ports.progress import Progress
    from kframe.snapshot import Snapshot


def engine_of(
    snapshot: Snapshot,
    config: Mapping[str, object] | None = None,
    selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
    clock: Clock | None = None,
    batches: BatchWatch | None = None,
) -> Engine:
    """The controller of a cluster, which takes it over as it stands, without a failover. Only the mode's modules are
    imported.

    ``config`` holds Kafka's configuration keys; it prevails over the cluster-wide settings in the snapshot. In a KRaft
    cluster it may also name levels of features, such as ``metadata.version``, where the snapshot does not say them.
    ``clock`` is asked for the time that encoding takes; by default none passes. With ``batches`` each batch of requests
    to brokers is passed to it instead of being encoded and counted. A KRaft controller sends no requests: neither has a
    use. Raises SnapshotError if the snapshot does not say who leads, ConfigError for a key or value.
    """
    if snapshot.is_kraft:
        from kframe.engines.kraft.engine import KraftEngine

        return KraftEngine(snapshot, config, selectors)
    from kframe.engines.zookeeper.engine import ZookeeperEngine

    return ZookeeperEngine(snapshot, config, selectors, clock, batches)


def failures_of(
    snapshot: Snapshot, config: Mapping[str, object] | None, *, depth: int, racks: bool, elr: bool | None,
    progress: Progress,
) -> Sweep:  # fmt: skip
    """Every failure of a cluster; see ``kframe.whatif.sweep``. ZooKeeper mode counts without a controller."""
    if snapshot.is_kraft:
        from kframe.engines.kraft.sweep import sweep_kraft

        return sweep_kraft(snapshot, config, depth=depth, racks=racks, elr=elr, progress=progress)
    if elr is not None:
        raise ParameterError(
            "elr", "a cluster in ZooKeeper mode", "a KRaft cluster, which has eligible leader replicas"
        )
    from kframe.engines.zookeeper.sweep import sweep_zookeeper

    return sweep_zookeeper(snapshot, config, depth=depth, racks=racks, progress=progress)
