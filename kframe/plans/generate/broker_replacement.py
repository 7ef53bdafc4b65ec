"""Plans that replace brokers: each broker's replicas go to its replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kframe.model.arrays import Ragged, offsets_of
from kframe.model.cluster import ClusterState
from kframe.model.plan import Plan
from kframe.model.tables import Targets


def replacement_brokers(cluster: ClusterState, brokers: Sequence[int]) -> dict[int, int]:
    """A live broker for each of ``brokers`` (ids) while others remain, of the same rack if possible."""
    live = cluster.brokers.ids[cluster.brokers.live != 0].tolist()
    free = sorted(set(live) - set(brokers))
    replacements = {}
    for broker_id in brokers[: len(free)]:
        rack = _rack(cluster, broker_id)
        replacements[broker_id] = next((candidate for candidate in free if _rack(cluster, candidate) == rack), free[0])
        free.remove(replacements[broker_id])
    return replacements


def replacement_plan(cluster: ClusterState, replacements: Mapping[int, int]) -> Plan:
    """Move every led partition whose replicas are all on brokers that ``replacements`` has as keys."""
    p, brokers = cluster.partitions, cluster.brokers
    replacement = np.full(len(brokers), -1, np.int32)
    replacement[brokers.look_up(np.array(list(replacements), np.int32))] = list(replacements.values())
    rows = np.flatnonzero((p.topic >= 0) & (p.leader >= 0))
    elsewhere = replacement[p.replica[p.slots_of(rows)]] < 0
    owner = np.repeat(np.arange(len(rows)), p.replica_count[rows])
    rows = rows[np.bincount(owner[elsewhere], minlength=len(rows)) == 0]
    topics, topic = np.unique(p.topic[rows], return_inverse=True)
    replicas = Ragged(offsets_of(p.replica_count[rows]), replacement[p.replica[p.slots_of(rows)]])
    names = tuple(cluster.topics.names[index] for index in topics.tolist())
    targets = Targets(names, topic.astype(np.int32), p.partition[rows], replicas, np.zeros(len(rows), np.bool_))
    return Plan("exchange", targets, np.zeros(len(rows), np.bool_))


def _rack(cluster: ClusterState, broker_id: int) -> str | None:
    index = cluster.brokers.find(broker_id)
    registration = None if index is None else cluster.brokers.registrations[index]
    return None if registration is None else registration.rack
