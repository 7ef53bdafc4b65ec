"""Every failure of one broker, two brokers and one rack."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot import Snapshot
from kframe.whatif.engines.choice import failures_of
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
    """Fail each registered broker and each rack, and each two brokers if ``depth`` is 2. Each failure starts from
    ``snapshot``. Of a KRaft cluster also fail each log directory.

    The numbers are those of ``WhatIf(snapshot, config).fail(…)`` with the built-in leader election. ``elr`` turns
    eligible leader replicas of a KRaft cluster on or off first. Raises SnapshotError if the snapshot does not say who
    leads, ConfigError for a key or value, and ParameterError for ``elr`` that the cluster cannot have.
    """
    snapshot.known_leaders()
    return failures_of(snapshot, config, depth=depth, racks=racks, elr=elr, progress=progress)
