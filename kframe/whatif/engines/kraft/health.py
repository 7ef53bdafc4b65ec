"""The health of a KRaft cluster, in the conditions of ``kframe.whatif.results.health``."""

from __future__ import annotations

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.leader_selection import acceptable_replicas
from kframe.model.arrays import Bool, Int32
from kframe.model.ids import NO_LEADER
from kframe.model.row_views import values_at
from kframe.whatif.results.health import ClusterHealth, blocks, broker_loads


def kraft_health(context: KraftContext, configs_known: bool) -> ClusterHealth:
    """Return the health of all partitions.

    ``registered`` marks the brokers that are registered and not fenced. ``under_min_isr`` takes the effective
    ``min.insync.replicas`` (Kafka 4.4 ``ReplicationControlManager.getTopicEffectiveMinIsr``).
    ``needs_unclean_election``: no member of the ISR or the ELR is active, and another replica is. ``may_lose_data``
    also has offline partitions whose ISR and ELR are empty: only the last-known leader could lead them.
    """
    metadata = context.metadata
    p, brokers = metadata.partitions, metadata.brokers
    counted = p.topic >= 0
    offline = counted & (p.leader == NO_LEADER)
    under_min_isr, at_min_isr, under_replicated = (np.zeros(len(p), np.bool_) for _ in range(3))
    for block in blocks(len(p)):
        rows = np.flatnonzero(counted[block]).astype(np.int32) + np.int32(block.start)
        if not len(rows):
            continue
        effective, is_offline, isr_count = context.min_isr(rows), values_at(offline, rows), values_at(p.isr_count, rows)
        under_min_isr[rows] = is_offline | (isr_count < effective)
        at_min_isr[rows] = ~is_offline & (isr_count == effective)
        assigned, adding = values_at(p.replica_count, rows), values_at(p.adding_count, rows)
        under_replicated[rows] = isr_count < assigned - adding
    up = np.zeros(len(brokers), np.uint8)
    for broker_id, registration in brokers.registrations.items():
        up[brokers.index_of(broker_id)] = not registration.fenced
    needs_unclean_election = _needs_unclean_election(context, offline)
    return ClusterHealth(
        counted,
        offline,
        under_min_isr if configs_known else None,
        at_min_isr if configs_known else None,
        under_replicated,
        needs_unclean_election,
        needs_unclean_election | (offline & (p.isr_count == 0) & (p.elr_count == 0)),
        up,
        *broker_loads(p, len(brokers)),
    )


def _needs_unclean_election(context: KraftContext, offline: Bool) -> Bool:
    metadata = context.metadata
    needed = np.zeros(len(offline), np.bool_)
    rows: Int32 = np.flatnonzero(offline).astype(np.int32)
    if not len(rows):
        return needed
    p, active = metadata.partitions, metadata.brokers.active
    clean = np.zeros(len(rows), np.bool_)
    for name in ("isr", "elr"):
        members = p.lists(name, rows)
        clean |= members.any(active[members.values] != 0)
    replicas = p.lists("replica", rows)
    acceptable = acceptable_replicas(metadata, p.slot_start[rows], replicas, active)
    needed[rows] = ~clean & replicas.any(acceptable != 0)
    return needed
