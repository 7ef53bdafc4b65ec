"""Every failure of one broker, two brokers and one rack."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.errors import ParameterError
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot import Snapshot
from kframe.whatif.results.sweep import Sweep


def sweep(
    snapshot: Snapshot,
    config: Mapping[str, object] | None = None,
    *,
    depth: int = 2,
    racks: bool = True,
    elr: bool | None = None,
    progress: Progress = ignore_progress,
) -> Sweep:
    """Fail each registered broker and each rack, and each two brokers if ``depth`` is 2; racks alone if it is 0. Each
    failure starts from ``snapshot``. Of a KRaft cluster also fail each log directory, unless ``depth`` is 0. ZooKeeper
    mode counts without a controller.

    The numbers are those of ``WhatIf(snapshot, config).fail(…)`` with the built-in leader election. ``elr`` turns
    eligible leader replicas of a KRaft cluster on or off first. Raises SnapshotError if the snapshot does not say who
    leads, ConfigError for a key or value, and ParameterError for ``elr`` that the cluster cannot have.
    """
    snapshot.known_leaders()
    if snapshot.is_kraft:
        from kframe.whatif.engines.kraft.sweep import count_failures

        counted = count_failures(snapshot, config, depth=depth, racks=racks, elr=elr, progress=progress).sweep()
    elif elr is not None:
        raise ParameterError(
            "elr", "a cluster in ZooKeeper mode", "a KRaft cluster, which has eligible leader replicas"
        )
    else:
        from kframe.whatif.engines.zookeeper.sweep import sweep_zookeeper

        counted = sweep_zookeeper(snapshot, config, depth=depth, racks=racks, progress=progress)
    return counted if depth else counted.of_racks()
