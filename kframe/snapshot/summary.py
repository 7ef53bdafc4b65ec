"""The health of a cluster in a snapshot. Conditions are those of the brokers' metrics, as in a what-if."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from kframe.model.arrays import Bool, Int32, Int64
from kframe.model.lists import members
from kframe.snapshot.facts import MIN_INSYNC_CONFIG
from kframe.snapshot.snapshot import Snapshot

#: Kafka's default of ``min.insync.replicas``.
_MIN_INSYNC_DEFAULT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """(n,) masks over partitions; None where the snapshot lacks the columns of the condition.

    ``offline``: no leader, or a leader that is known to be unregistered. ``under_replicated``: fewer in sync than
    assigned, replicas being added and observers not counted. ``under_min_isr``: offline, or fewer in sync than
    ``min.insync.replicas``, which is at most the number of replicas (Kafka ``Partition.effectiveMinIsr``).
    ``at_min_isr``: not offline, and exactly as many. ``preferred_replica_imbalance``: led, but not by the preferred
    replica.
    """

    offline: Bool | None
    under_replicated: Bool | None
    under_min_isr: Bool | None
    at_min_isr: Bool | None
    preferred_replica_imbalance: Bool | None
    reassigning: Bool | None

    def counts(self) -> dict[str, int | None]:
        """How many partitions are in each condition."""
        masks = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if mask is None else int(mask.sum()) for name, mask in masks.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Per broker of the snapshot, (b,) int64: partitions led and preferred, replicas assigned and in sync."""

    leaders: Int64 | None
    preferred: Int64
    replicas: Int64
    in_sync: Int64 | None


@dataclass(frozen=True, slots=True, eq=False)
class BrokerBytes:
    """Bytes of replicas per broker of the snapshot, (b,) int64. The skew is as in Summary."""

    by_broker: Int64
    skew: float | None


class Summary(Struct, frozen=True):
    """Counts of one cluster. None is unknown. A skew is the fullest broker's count over the mean of the brokers that
    are not known to be unregistered."""

    brokers: int
    registered_brokers: int
    unregistered_brokers: int
    unknown_brokers: int
    racks: int
    topics: int
    deleting_topics: int | None
    partitions: int
    replicas: int
    offline: int | None
    under_replicated: int | None
    under_min_isr: int | None
    at_min_isr: int | None
    preferred_replica_imbalance: int | None
    reassigning: int | None
    leader_skew: float | None
    replica_skew: float | None


def summarize(snapshot: Snapshot, conditions: Conditions | None = None, loads: Loads | None = None) -> Summary:
    """Count everything once. ``conditions`` and ``loads`` are those of the snapshot, if they are known already."""
    loads = loads or loads_of(snapshot)
    registered = [facts.registered for facts in snapshot.brokers]
    present = np.array([state is not False for state in registered], bool)
    deleting = snapshot.topics.deleting
    return Summary(
        brokers=len(registered),
        registered_brokers=registered.count(True),
        unregistered_brokers=registered.count(False),
        unknown_brokers=registered.count(None),
        racks=len({facts.rack for facts in snapshot.brokers} - {None}),
        topics=len(snapshot.topics),
        deleting_topics=None if deleting is None else int(deleting.sum()),
        partitions=len(snapshot),
        replicas=len(snapshot.partitions.replicas.values),
        leader_skew=None if loads.leaders is None else skew_of(loads.leaders[present]),
        replica_skew=skew_of(loads.replicas[present]),
        **(conditions or conditions_of(snapshot)).counts(),
    )


def conditions_of(snapshot: Snapshot) -> Conditions:
    """The condition of every partition."""
    partitions = snapshot.partitions
    leader, isr, adding = partitions.leader, partitions.isr, partitions.adding_replicas
    reassigning = None
    if adding is not None and partitions.removing_replicas is not None:
        reassigning = (adding.counts > 0) | (partitions.removing_replicas.counts > 0)
    if leader is None or isr is None:
        return Conditions(None, None, None, None, None, reassigning)
    unregistered = [facts.broker_id for facts in snapshot.brokers if facts.registered is False]
    offline = (leader < 0) | np.isin(leader, unregistered)
    replicas = partitions.replicas
    expected = replicas.counts - (0 if adding is None else adding.counts)
    in_sync = isr.counts
    if (observers := partitions.observers) is not None:
        counted = observers if adding is None else observers.keep(~members(observers, adding))
        expected = expected - counted.counts
        in_sync = isr.keep(~members(isr, observers)).counts
    is_preferred = replicas.any(replicas.first & (replicas.values == leader[replicas.owners]))
    min_insync = _min_insync(snapshot)
    return Conditions(
        offline,
        in_sync < expected,
        None if min_insync is None else offline | (isr.counts < min_insync),
        None if min_insync is None else ~offline & (isr.counts == min_insync),
        (leader >= 0) & (replicas.counts > 0) & ~is_preferred,
        reassigning,
    )


def loads_of(snapshot: Snapshot) -> Loads:
    """The load of each broker."""
    partitions, ids = snapshot.partitions, np.array([facts.broker_id for facts in snapshot.brokers], np.int32)
    replicas, leader = partitions.replicas, partitions.leader
    return Loads(
        None if leader is None else _counted(leader[leader >= 0], ids),
        _counted(replicas.values[replicas.first], ids),
        _counted(replicas.values, ids),
        None if partitions.isr is None else _counted(partitions.isr.values, ids),
    )


def bytes_of_brokers(snapshot: Snapshot, sizes: Int64) -> BrokerBytes:
    """The bytes on each broker. ``sizes`` (n,) are the bytes of a replica of each partition, at most 2^53 in all."""
    replicas, ids = snapshot.partitions.replicas, [facts.broker_id for facts in snapshot.brokers]
    index = np.searchsorted(np.array(ids, np.int32), replicas.values)
    by_broker = np.bincount(index, sizes[replicas.owners], len(ids)).astype(np.int64)
    present = np.array([facts.registered is not False for facts in snapshot.brokers], bool)
    return BrokerBytes(by_broker, skew_of(by_broker[present]))


def _min_insync(snapshot: Snapshot) -> Int32 | None:
    """(n,) the effective ``min.insync.replicas`` of each partition: its topic's, the cluster's or Kafka's default.

    It is at most the number of the partition's replicas.
    """
    topics = snapshot.topics
    if topics.configs is None:
        return None
    default = (snapshot.broker_default_configs or {}).get(MIN_INSYNC_CONFIG, str(_MIN_INSYNC_DEFAULT))
    min_insync = np.full(len(topics), int(default), np.int32)
    for index in topics.configs:
        min_insync[index] = topics.min_insync(index) or min_insync[index]
    of_partitions = np.repeat(min_insync, topics.partition_counts)
    return np.minimum(of_partitions, snapshot.partitions.replicas.counts, dtype=np.int32)


def _counted(broker_ids: Int32, ids: Int32) -> Int64:
    """How often each of ``ids`` (ascending) occurs."""
    return np.bincount(np.searchsorted(ids, broker_ids), minlength=len(ids)).astype(np.int64)


def skew_of(loads: Int64) -> float | None:
    """The largest load by the mean; None if all are 0, or if there are none."""
    mean = float(loads.mean()) if len(loads) else 0.0
    return round(float(loads.max()) / mean, 3) if mean else None
