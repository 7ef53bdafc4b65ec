"""A live cluster as the commands reach it, whatever it is kept in: a plugin offers it by ``kframe_clusters``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.ports import Store
from kframe.snapshot.files import Progress, ignore_progress
from kframe.snapshot.instances import Instance
from kframe.snapshot.snapshot import Snapshot

ControllerKind: TypeAlias = Literal["kframe", "broker", "kraft", "unknown"]
"""What holds the role: an instance of kframe, a registered broker, a KRaft controller that migrates the cluster, or
something else, such as an instance that could not write its record."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveCounts:
    """A cluster as a new controller reads it."""

    cluster: ClusterState
    """Without partition and replica states."""
    deletions: int
    """Topics marked for deletion."""
    targets: frozenset[TopicPartition]
    """Partitions named in ``/admin/reassign_partitions`` or its like."""
    broker_defaults: Mapping[str, str]
    """Cluster-wide dynamic settings of brokers."""
    quarantined: Mapping[str, str]
    """What a controller leaves out because it cannot be read, by path, with the reason (``Store.quarantined``)."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterStatus:
    """How a live cluster stands; None is unknown or not there."""

    controller_id: int | None
    controller_epoch: int | None
    elected_ms: int | None
    """When the controller was elected, by its own clock: milliseconds since 1970."""
    cluster_id: str | None
    broker_ids: tuple[int, ...]
    topics: int
    partitions: int | None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """What cannot be read, by path, with the reason, of the nodes that are not in ``LiveCounts.quarantined``."""
    warnings: tuple[str, ...] = ()
    """What an audit of access rights found."""
    kind: ControllerKind | None = None
    instance: Instance | None = None
    """The instance of kframe that is controller."""
    standbys: tuple[Instance, ...] = ()
    """The other live instances of kframe."""
    counts: LiveCounts | None = None
    """None if topics were not read."""


@dataclass(frozen=True, slots=True)
class Resignation:
    """Who has lost the role, and the controller epoch that ended."""

    controller_id: int
    controller_epoch: int


class LiveCluster(Protocol):
    """One live cluster; each call connects for itself. All raise StoreError where storage cannot be reached."""

    def store(self) -> Store:
        """A store for one controller, not open yet."""

    def reader(self) -> Store:
        """A store for somebody who only reads, not open yet: opening it writes nothing either."""

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """Read everything, write nothing; ``Snapshot.capture`` says what moved meanwhile and what cannot be read.

        Raises SnapshotError where there is no cluster.
        """

    def status(self, progress: Progress = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        """Read everything once, and look at access rights. Raises SnapshotError where there is no cluster.

        ``quick`` reads topics' names only: partitions are not counted, and what is broken in topics is not found.
        """

    def audit(self) -> tuple[str, ...]:
        """Look at access rights, log a warning if they are too wide, and return what was found, a line each."""

    def broker_addresses(self) -> Mapping[int, str]:
        """Where each broker that is registered now listens, by id, ascending: HOST:PORT of its listeners."""

    def depose(self, controller_id: int | None = None) -> Resignation:
        """Take the role from the present controller, so that another is elected: nothing happens if it has changed
        since we looked. Raises ControllerFenced in that case, if there is no controller, or not ``controller_id``."""
