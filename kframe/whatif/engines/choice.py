"""The engine of a snapshot, and the settings that its mode has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kframe.model.elections import LeaderSelector
    from kframe.model.ids import ElectionKind
    from kframe.ports.clock import Clock
    from kframe.snapshot import Snapshot
    from kframe.whatif.engines.engine import Engine


def engine_of(
    snapshot: Snapshot,
    config: Mapping[str, object] | None = None,
    selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
    clock: Clock | None = None,
) -> Engine:
    """The controller of a cluster, which takes it over as it stands, without a failover. Only the mode's modules are
    imported.

    ``config`` holds Kafka's configuration keys; it prevails over the cluster-wide settings in the snapshot. In a KRaft
    cluster it may also name levels of features, such as ``metadata.version``, where the snapshot does not say them.
    ``clock`` is asked for the time that encoding takes; by default none passes. A KRaft controller encodes no requests.
    Raises SnapshotError if the snapshot does not say who leads, ConfigError for a key or value.
    """
    if snapshot.is_kraft:
        from kframe.whatif.engines.kraft.engine import KraftEngine

        return KraftEngine(snapshot, config, selectors)
    from kframe.whatif.engines.zookeeper.engine import ZookeeperEngine
    from kframe.whatif.engines.zookeeper.start import ZookeeperStart

    start = ZookeeperStart.of(snapshot, config)
    del snapshot  # Of a caller that has no other reference, its columns are free before the store has its own.
    return ZookeeperEngine(start, selectors, clock)


def applicable_config(config: Mapping[str, object], snapshot: Snapshot) -> dict[str, object]:
    """Those of the settings for several clusters that apply to one of them. Levels of features, such as
    ``metadata.version``, are for KRaft clusters whose snapshots lack them, and the release of controllers is for all
    KRaft clusters."""
    from kframe.model.kraft.releases import RELEASE_KEY

    if snapshot.is_kraft and (snapshot.kraft is None or snapshot.kraft.features is None):
        return dict(config)
    release = {key: value for key, value in config.items() if snapshot.is_kraft and key == RELEASE_KEY}
    return _of_any_mode(config) | release


def check_config(config: Mapping[str, object]) -> None:
    """Raise ConfigError for a key or value that no cluster can have. Levels of features are not checked."""
    from kframe.model.config import ControllerConfig

    ControllerConfig(_of_any_mode(config))


def _of_any_mode(config: Mapping[str, object]) -> dict[str, object]:
    """The settings that a cluster in any mode may have."""
    from kframe.core.kraft.context import SUPPORTED_FEATURES
    from kframe.model.kraft.releases import RELEASE_KEY

    return {key: value for key, value in config.items() if key not in SUPPORTED_FEATURES and key != RELEASE_KEY}
