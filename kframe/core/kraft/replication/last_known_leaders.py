"""The last-known leader of a partition without ISR and ELR (Kafka 4.4 ``PartitionChangeBuilder``, KIP-966)."""

from __future__ import annotations

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.stored_partitions import StoredPartitions
from kframe.model.arrays import Bool, Int32, Ragged, UInt8, offsets_of
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.releases import ReleaseRule


def last_known_leaders(last_known: Ragged, *, enabled: bool) -> Int32:
    """(k,) the last-known leader where there is exactly one. NO_LEADER elsewhere."""
    leaders = np.full(len(last_known), NO_LEADER, np.int32)
    if enabled and len(last_known.values):
        single = last_known.counts == 1
        leaders[single] = last_known.values[last_known.offsets[:-1][single]]
    return leaders


def elect_inactive(
    context: KraftContext, last_known_leader: Int32, isr: Ragged, elr: Ragged, chosen: tuple[Int32, UInt8]
) -> tuple[Int32, UInt8]:
    """The chosen leaders and unclean elections.

    Releases without LAST_KNOWN_ACTIVE elect each last-known leader, active or not.
    """
    leader, unclean = chosen
    is_last = (last_known_leader != NO_LEADER) & (isr.counts == 0) & (elr.counts == 0)
    inactive: Bool = is_last & (leader != last_known_leader)
    if not inactive.any() or context.follows(ReleaseRule.LAST_KNOWN_ACTIVE):
        return leader, unclean
    return np.where(inactive, last_known_leader, leader), np.where(inactive, np.uint8(1), unclean)


def last_known_elrs(
    context: KraftContext,
    stored: StoredPartitions,
    leader: Int32,
    writes_leader: Bool,
    empties_isr: Bool,
) -> tuple[Ragged, Bool]:
    """The last leader of each partition that becomes leaderless, empty where it has a leader again; (k,) its changes.

    Releases without LAST_KNOWN_WITH_LEADER store it when the ISR becomes empty, and remove it while a leader stays.
    """
    leaderless, has_stored = leader == NO_LEADER, stored.last_known_elr.counts > 0
    begins = writes_leader & leaderless & ~has_stored
    ends = writes_leader & ~leaderless & has_stored
    if empties_isr.any() or has_stored.any() or begins.any():
        is_single = stored.last_known_elr.counts == 1
        is_stored = is_single & (last_known_leaders(stored.last_known_elr, enabled=True) == stored.leader)
        early_begins = empties_isr & ~is_stored
        stays = (stored.leader != NO_LEADER) & ~(writes_leader & leaderless)
        early_ends = has_stored & ~early_begins & ((writes_leader & ~leaderless) | stays)
        differs = (begins != early_begins) | (ends != early_ends)
        if differs.any() and not context.follows(ReleaseRule.LAST_KNOWN_WITH_LEADER):
            begins, ends = early_begins, early_ends
    return Ragged(offsets_of(begins.astype(np.int32)), stored.leader[begins]), begins | ends
