"""Snapshot to controller context and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int8, Int32, Ragged, positions_within
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, NO_STATE, RecoveryState, ReplicaFlag
from kframe.model.slot_columns import BROKERS_MAX
from kframe.model.topics import UNSET
from kframe.snapshot.content import SnapshotContent
from kframe.snapshot.facts import (
    MIN_INSYNC_CONFIG,
    UNCLEAN_CONFIG,
    BrokerFacts,
    PartitionFacts,
    Source,
    TopicFacts,
    own_configs,
)

_LOOKUP_MAX: Final = 1 << 20


def cluster_of(snapshot: SnapshotContent) -> ClusterState:
    """See ``Snapshot.to_cluster``. Broker indexes ascend by id, topic indexes by name."""
    cluster = ClusterState()
    _add_brokers(cluster, snapshot)
    topics, partitions = snapshot.topics, snapshot.partitions
    to_index = broker_indexer(cluster.brokers.ids)
    ids = None if topics.topic_ids is None else [topic_id.tobytes() for topic_id in topics.topic_ids]
    cluster.partitions.reserve(len(partitions), partitions.slot_count)
    for block, block_rows in topics.blocks():
        part = partitions.part(block_rows.start, block_rows.stop)
        rows = cluster.add_topics(
            topics.names[block],
            topics.partition_counts[block],
            _map_values(part.replicas, to_index),
            None if part.isr is None else _map_values(part.isr, to_index),
            _leadership(part, to_index),
            None if ids is None else ids[block],
            None if topics.partitions is None else topics.partitions[block_rows],
        )
        for column, flag in (
            (part.adding_replicas, ReplicaFlag.ADDING),
            (part.removing_replicas, ReplicaFlag.REMOVING),
        ):
            if column is not None:
                _flag(cluster, rows, _map_values(column, to_index), flag)
    cluster.topics.unclean, cluster.topics.min_insync = topic_settings(topics)
    if topics.deleting is not None:
        cluster.topics.deleting[:] = topics.deleting
    return cluster


def topic_settings(topics: TopicFacts) -> tuple[Int8, Int32]:
    """(t,) ``unclean`` and ``min_insync`` of each topic, as ``Topics`` has them."""
    unclean, min_insync = np.full(len(topics), UNSET, np.int8), np.full(len(topics), UNSET, np.int32)
    for index in topics.configs or {}:
        own_unclean, own_min_insync = topics.unclean(index), topics.min_insync(index)
        unclean[index] = UNSET if own_unclean is None else int(own_unclean)
        min_insync[index] = UNSET if own_min_insync is None else own_min_insync
    return unclean, min_insync


def snapshot_of(cluster: ClusterState) -> SnapshotContent:
    """See ``Snapshot.from_cluster``."""
    topics, partitions = cluster.topics, cluster.partitions
    names_and_indexes = sorted((name, index) for index, name in enumerate(topics.names) if topics.find(name) == index)
    order = np.array([index for _, index in names_and_indexes], np.int64)
    rows = _canonical_rows(cluster, order)
    stored = partitions.partition_epoch[rows] != NO_STATE
    ids = cluster.brokers.ids
    isr = partitions.lists("isr", rows)
    facts = PartitionFacts(
        replicas=_map_values(partitions.lists("replica", rows), ids.take),
        leader=_leader_ids(np.where(stored, partitions.leader[rows], NO_LEADER), ids),
        isr=_map_values(_with_empty_rows(isr, ~stored), ids.take),
        leader_epoch=np.where(stored, partitions.leader_epoch[rows], np.int32(-1)),
        controller_epoch=np.where(stored, partitions.controller_epochs_of(rows), np.int32(-1)),
        partition_epoch=partitions.partition_epoch[rows],
        leader_recovery_state=np.where(stored, partitions.recovery_of(rows), RecoveryState.RECOVERED).astype(np.int32),
        adding_replicas=cluster.replica_ids(rows, ReplicaFlag.ADDING),
        removing_replicas=cluster.replica_ids(rows, ReplicaFlag.REMOVING),
    )
    counts, numbers = topics.partition_count[order], partitions.partition[rows]
    topic_facts = TopicFacts(
        names=tuple(name for name, _ in names_and_indexes),
        partition_counts=counts,
        topic_ids=topics.ids[order],
        deleting=topics.deleting[order],
        configs=_configs(cluster, order),
        partitions=None if np.array_equal(numbers, positions_within(counts)) else numbers,
    )
    note = f"of a controller's memory: only {MIN_INSYNC_CONFIG} and {UNCLEAN_CONFIG}"
    return SnapshotContent(
        _broker_facts(cluster), topic_facts, facts, Source("cluster", ""), provenance={"topics.configs": note}
    )


def _add_brokers(cluster: ClusterState, snapshot: SnapshotContent) -> None:
    brokers = cluster.brokers
    brokers.index_of([facts.broker_id for facts in snapshot.brokers])
    known = [facts for facts in snapshot.brokers if facts.registered or facts.broker_epoch is not None]
    indexes = brokers.register(
        [Registration(facts.broker_id, facts.broker_epoch or 0, facts.endpoints or (), facts.rack) for facts in known]
    )
    unregistered = np.array([not facts.registered for facts in known], bool)
    brokers.unregister(indexes[unregistered])


def _broker_facts(cluster: ClusterState) -> tuple[BrokerFacts, ...]:
    brokers = cluster.brokers
    facts = []
    for index in np.argsort(brokers.ids):
        registration, registered = brokers.registrations[index], bool(brokers.registered[index])
        epoch = int(brokers.broker_epoch[index])
        facts.append(
            BrokerFacts(
                int(brokers.ids[index]),
                registered,
                None if epoch == NO_BROKER_EPOCH else epoch,
                None if registration is None else registration.endpoints,
                None if registration is None else registration.rack,
            )
        )
    return tuple(facts)


def _leadership(partitions: PartitionFacts, to_index: Any) -> dict[str, NDArray[Any]]:
    if partitions.leader is None:
        return {}
    zeros = np.zeros(len(partitions), np.int32)
    recovery = partitions.leader_recovery_state
    return {
        "leader": leader_indexes(partitions.leader, to_index),
        "leader_epoch": zeros if partitions.leader_epoch is None else partitions.leader_epoch,
        "controller_epoch": zeros if partitions.controller_epoch is None else partitions.controller_epoch,
        "partition_epoch": zeros if partitions.partition_epoch is None else partitions.partition_epoch,
        "recovery": zeros if recovery is None else recovery,
    }


def leader_indexes(leader: Int32, to_index: Any) -> NDArray[Any]:
    """Broker indexes of leaders by id; NO_LEADER where a partition has none."""
    led = leader >= 0
    if led.all():
        return np.asarray(to_index(leader))
    indexes = np.full(len(leader), NO_LEADER, np.int32)
    indexes[led] = to_index(leader[led])
    return indexes


def broker_indexer(ids: Int32) -> Any:
    """A function from broker ids, all of them in ``ids``, which ascend, to broker indexes: int16 as in columns, if they
    fit."""
    if 0 < len(ids) <= BROKERS_MAX and int(ids[-1]) - int(ids[0]) == len(ids) - 1:
        return lambda values: np.subtract(values, ids[0], dtype=np.int16, casting="unsafe")  # faster than a table
    if len(ids) and int(ids[-1]) < _LOOKUP_MAX:
        table = np.zeros(int(ids[-1]) + 1, np.int16 if len(ids) <= BROKERS_MAX else np.int32)
        table[ids] = np.arange(len(ids))
        return table.take
    return lambda values: np.searchsorted(ids, values).astype(np.int32)


def _map_values(lists: Ragged, function: Any) -> Ragged:
    return Ragged(lists.offsets, function(lists.values) if len(lists.values) else lists.values)


def _leader_ids(leader: Int32, ids: Int32) -> Int32:
    led = leader >= 0
    leader_ids = np.full(len(leader), NO_LEADER, np.int32)
    leader_ids[led] = ids[leader[led]]
    return leader_ids


def _with_empty_rows(lists: Ragged, rows: Bool) -> Ragged:
    """The lists, with those of ``rows`` made empty."""
    if not rows.any():
        return lists
    return lists.keep(~rows[lists.owners])


def _flag(cluster: ClusterState, rows: Int32, lists: Ragged, flag: ReplicaFlag) -> None:
    """Flag the slots of each row's replicas that are in its list."""
    partitions, counts = cluster.partitions, lists.counts
    nonempty = np.flatnonzero(counts)
    if not len(nonempty):
        return
    slots = partitions.slots_of(rows[nonempty])
    slot_rows = np.repeat(nonempty.astype(np.int64), partitions.replica_count[rows[nonempty]])
    slot_keys = slot_rows << 32 | partitions.replica[slots]
    listed_keys = np.repeat(nonempty.astype(np.int64), counts[nonempty]) << 32 | lists.values
    partitions.replica_status[slots[np.isin(slot_keys, listed_keys)]] |= np.uint8(flag)


def _canonical_rows(cluster: ClusterState, order: NDArray[np.int64]) -> Int32:
    """Rows topic by topic in ``order``, partitions ascending, without rows of deleted topics."""
    rank = np.full(len(cluster.topics), -1, np.int64)
    rank[order] = np.arange(len(order))
    partitions = cluster.partitions
    rows = np.flatnonzero(partitions.topic >= 0)
    ranks = rank[partitions.topic[rows]]
    return rows[np.lexsort((partitions.partition[rows], ranks))].astype(np.int32)


def _configs(cluster: ClusterState, order: NDArray[np.int64]) -> Mapping[int, Mapping[str, str]]:
    unclean, min_insync = cluster.topics.unclean[order], cluster.topics.min_insync[order]
    return {
        index: own_configs(
            None if unclean[index] == UNSET else bool(unclean[index]),
            None if min_insync[index] == UNSET else int(min_insync[index]),
        )
        for index in np.flatnonzero((unclean != UNSET) | (min_insync != UNSET)).tolist()
    }
