"""The status of a live cluster, read as a new controller reads it, without writing anything.

The store's own calls read it, so that status and controller leave out the same unreadable nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import TopicPartition
from kframe.plugin.live import ControllerKind, Instance, LiveCounts
from kframe.plugin.store import (
    Load,
    ReadConfigs,
    ReadController,
    ReadDeletions,
    ReadIsrChanges,
    ReadLogDirEvents,
    ReadPreferredElection,
    ReadReassignments,
)
from kframe.plugin.znodes import ControllerZnode
from kframe_zookeeper.bulk.nodes import ReadNode
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes.cluster import decode_controller, kraft_epoch


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """Who holds the role, by ``/controller`` and the records of instances."""

    kind: ControllerKind | None
    """None if there is no controller."""
    elected_ms: int | None
    instance: Instance | None
    standbys: tuple[Instance, ...]


def role_of(holder: ReadNode | None, brokers: frozenset[int], instances: list[tuple[Instance, int]]) -> RoleStatus:
    """The role from ``/controller``; ``brokers`` are registered ids, ``instances`` have their sessions.

    An instance holds the role if both records are ephemeral in one session: an id proves nothing.
    """
    active = next((instance for instance, session in instances if holder is not None and session == holder.owner), None)
    standbys = tuple(instance for instance, _ in instances if instance is not active)
    if holder is None:
        return RoleStatus(None, None, None, standbys)
    try:
        record = decode_controller(holder.data)
    except ZnodeError:
        return RoleStatus("kframe" if active else "unknown", None, active, standbys)
    return RoleStatus(_kind(record, brokers, active), _elected_ms(record), active, standbys)


def counts_of(store: ZooKeeperStore) -> LiveCounts:
    """Read everything that a new controller reads, by an open store. Raises StoreError."""
    store.perform(ReadController())
    cluster, deletions = store.perform(Load()), store.perform(ReadDeletions())
    for name in deletions:
        index = cluster.topics.find(name)
        if index is not None:
            cluster.topics.deleting[index] = 1
    store.perform(ReadPreferredElection())
    store.perform(ReadIsrChanges())
    store.perform(ReadLogDirEvents())
    targets = store.perform(ReadReassignments())
    quarantined = store.quarantined()
    defaults = store.perform(ReadConfigs(None))  # A controller reads these only when they change.
    requested = () if targets is None else zip(targets.topic.tolist(), targets.partition.tolist(), strict=True)
    names = () if targets is None else targets.names
    remaining: frozenset[TopicPartition] = frozenset((names[topic], partition) for topic, partition in requested)
    return LiveCounts(cluster, len(deletions), remaining, defaults, quarantined)


def _kind(record: ControllerZnode, brokers: frozenset[int], active: Instance | None) -> ControllerKind:
    if active is not None:
        return "kframe"
    if kraft_epoch(record) is not None:
        return "kraft"
    return "broker" if record.brokerid in brokers else "unknown"


def _elected_ms(record: ControllerZnode) -> int | None:
    """When a controller was elected, if its record says so."""
    timestamp = record.timestamp
    return int(timestamp) if timestamp is not UNSET and timestamp.isascii() and timestamp.isdecimal() else None
