"""What a snapshot says about its partitions, beside their states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kframe.errors import ParameterError
from kframe.snapshot import Snapshot
from kframe.whatif.engines.observers import ObserverRows
from kframe.whatif.engines.settings import knows_min_insync


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """Facts that the results of a what-if depend on.

    ``epochs``: whether leader epochs and partition epochs are known. ``min_insync``: whether ``min.insync.replicas`` of
    all topics is.
    """

    epochs: tuple[bool, bool]
    min_insync: bool
    observers: ObserverRows

    @staticmethod
    def of(snapshot: Snapshot, config: Mapping[str, object] | None) -> KnownFacts:
        """Those of a snapshot, and of the settings that a user states. Raises SnapshotError if it does not say who
        leads."""
        snapshot.known_leaders()
        partitions = snapshot.partitions
        return KnownFacts(
            (partitions.leader_epoch is not None, partitions.partition_epoch is not None),
            knows_min_insync(snapshot.topics, config),
            ObserverRows.of(snapshot),
        )


def known_row(cluster: Any, topic: str, partition: int) -> int:
    """The row of a partition in a cluster of any mode. Raises InputError for an unknown one."""
    row: int | None = cluster.row(topic, partition)
    if row is None:
        raise ParameterError("partitions", f"{topic}-{partition}", "a partition of the snapshot")
    return row
