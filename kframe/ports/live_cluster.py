"""The interface to a live cluster in either mode. A plugin offers it by ``kframe_clusters``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.ports.progress import Progress, ignore_progress
from kframe.ports.store import Store

if TYPE_CHECKING:
    from kframe.snapshot.instances import Instance
    from kframe.snapshot.snapshot import Snapshot

ControllerKind: TypeAlias = Literal["kframe", "broker", "kraft", "unknown"]
"""The kind of the active controller: an instance of kframe, a registered broker, or a KRaft controller that migrates
the cluster. Anything else, such as an instance that could not write its record, is unknown."""


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
    """Unreadable nodes that a controller leaves out, by path, with the reason (``Store.quarantined``)."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterStatus:
    """The status of a live cluster. None is unknown or absent."""

    controller_id: int | None
    controller_epoch: int | None
    elected_ms: int | None
    """When the controller was elected, by its own clock: milliseconds since 1970."""
    cluster_id: str | None
    broker_ids: tuple[int, ...]
    topics: int
    partitions: int | None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Other unreadable nodes, by path, with the reason: those that are not in ``LiveCounts.quarantined``."""
    warnings: tuple[str, ...] = ()
    """The findings of an audit of access rights."""
    kind: ControllerKind | None = None
    instance: Instance | None = None
    """The instance of kframe that is controller."""
    standbys: tuple[Instance, ...] = ()
    """The other live instances of kframe."""
    counts: LiveCounts | None = None
    """None if topics were not read, and for a cluster that was captured."""
    snapshot: Snapshot | None = None
    """The cluster as it was captured."""

    @classmethod
    def of(cls, snapshot: Snapshot, controller_epoch: int | None, kind: ControllerKind | None) -> ClusterStatus:
        """The status of a cluster that was captured whole, without the time of its election."""
        return cls(
            snapshot.controller_id,
            controller_epoch,
            None,
            snapshot.cluster_id,
            tuple(broker.broker_id for broker in snapshot.brokers if broker.registered),
            len(snapshot.topics),
            len(snapshot),
            kind=kind,
            snapshot=snapshot,
        )


@dataclass(frozen=True, slots=True)
class Resignation:
    """The controller that lost the role, and the controller epoch that ended."""

    controller_id: int
    controller_epoch: int


class LiveCluster(Protocol):
    """One live cluster. Each call connects for itself. All raise StoreError where storage cannot be reached."""

    def store(self) -> Store:
        """A store for one controller, not open yet."""

    def reader(self) -> Store:
        """A read-only store, not open yet. Opening it writes nothing either."""

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """Read everything, write nothing. ``Snapshot.capture`` names what changed meanwhile and what is unreadable.

        Raises SnapshotError where there is no cluster.
        """

    def status(self, progress: Progress = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        """Read everything once, and audit access rights. Raises SnapshotError where there is no cluster.

        ``quick`` reads topic names only: partitions are not counted, and unreadable topics are not detected.
        """

    def audit(self) -> tuple[str, ...]:
        """Check access rights, and log a warning if they are too wide. Return the findings, a line each."""

    def broker_addresses(self) -> Mapping[int, str]:
        """Where each broker that is registered now listens, by id, ascending: HOST:PORT of its listeners."""

    def depose(self, controller_id: int | None = None) -> Resignation:
        """Remove the present controller, so that another is elected.

        Raises ControllerFenced, and changes nothing, if there is no controller, if it is not ``controller_id``, or if
        it has changed since it was read.
        """


def listener_addresses(snapshot: Snapshot) -> dict[int, str]:
    """The listeners of registered brokers by id, as ``LISTENER://HOST:PORT``, separated by commas."""
    return {
        broker.broker_id: ", ".join(f"{end.listener}://{end.host}:{end.port}" for end in broker.endpoints or ())
        for broker in snapshot.brokers
        if broker.registered
    }
