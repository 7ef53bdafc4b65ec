"""Reference kernels of ``_selectors.pyx``, except for the loop that calls native selectors."""

from __future__ import annotations

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.columns import Partitions
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag

__all__ = ["batch_seed", "count_violations", "gather_candidates", "mark_candidates", "take_first"]

#: A candidate: broker index, eligible, in sync, may lead.
Candidate = tuple[int, bool, bool, bool]


def candidates_of(kind: int, row: int, p: Partitions, live: UInt8, allowed: bool) -> list[Candidate]:
    """The candidates of a row."""
    start, isr = int(p.slot_start[row]), p.isr_of(row).tolist()
    slots = [
        slot
        for slot in range(start, start + int(p.replica_count[row]))
        if not (kind == ElectionKind.REASSIGN and p.replica_status[slot] & ReplicaFlag.REMOVING)
    ]
    candidates = []
    for slot in slots:
        broker = int(p.replica[slot])
        eligible = bool(live[broker]) and not p.replica_status[slot] & ReplicaFlag.OFFLINE_DIR
        candidates.append((broker, eligible, eligible if kind == ElectionKind.INITIAL else broker in isr))
    unclean = (
        bool(allowed)
        and kind == ElectionKind.OFFLINE
        and not any(eligible and in_sync for _, eligible, in_sync in candidates)
    )
    considered = candidates[:1] if kind == ElectionKind.PREFERRED else candidates
    return [
        (broker, eligible, in_sync, (broker, eligible, in_sync) in considered and eligible and (in_sync or unclean))
        for broker, eligible, in_sync in candidates
    ]


def gather_candidates(
    kind: int,
    rows: Int32,
    p: Partitions,
    live: UInt8,
    allowed: UInt8,
    offsets: Int32,
    candidates: Int32,
    may_lead: UInt8,
    first: Int16,
) -> int:
    """See ``kframe.kernels._selectors.gather_candidates``."""
    offsets[0] = end = 0
    for i, row in enumerate(rows.tolist()):
        if end + int(p.replica_count[row]) > len(candidates):
            return -1
        row_candidates = candidates_of(kind, row, p, live, bool(allowed[i]))
        for position, (broker, _, _, may) in enumerate(row_candidates, end):
            candidates[position], may_lead[position] = broker, may
        end += len(row_candidates)
        offsets[i + 1] = end
        first[i] = next((broker for broker, _, _, may in row_candidates if may), NO_LEADER)
    return end


def mark_candidates(kind: int, rows: Int32, p: Partitions, live: UInt8, eligible: UInt8, in_sync: UInt8) -> None:
    """See ``kframe.kernels._selectors.mark_candidates``."""
    candidates = [candidate for row in rows.tolist() for candidate in candidates_of(kind, row, p, live, False)]
    for position, (_, is_eligible, is_in_sync, _) in enumerate(candidates):
        eligible[position], in_sync[position] = is_eligible, is_in_sync


def count_violations(
    kind: int, rows: Int32, p: Partitions, live: UInt8, allowed: UInt8, first: Int16, leader: Int32
) -> int:
    """See ``kframe.kernels._selectors.count_violations``."""
    count = 0
    for row, unclean, chosen in zip(rows.tolist(), allowed.tolist(), leader.tolist(), strict=True):
        eligible = [broker for broker, _, _, may in candidates_of(kind, row, p, live, unclean) if may]
        count += chosen != NO_LEADER and chosen not in eligible
    return count


def take_first(offsets: Int32, values: Int32, mask: UInt8, out: Int32) -> bool:
    """See ``kframe.kernels._selectors.take_first``."""
    for i in range(len(out)):
        first, last = int(offsets[i]), int(offsets[i + 1])
        if first < 0 or last > len(mask):
            return False
        hits = [position for position in range(first, last) if mask[position]]
        if hits:
            out[i] = values[hits[0]]
    return True


def batch_seed(kind: int, rows: Int32, topic: Int32, partition: Int32, leader_epoch: Int32) -> int:
    """See ``kframe.kernels._selectors.batch_seed``."""
    values = [kind, len(rows)]
    for row in rows[:: -(-len(rows) // 8) or 1].tolist():
        values += [int(topic[row]), int(partition[row]), int(leader_epoch[row])]
    seed = 0
    for value in values:
        seed = ((seed ^ value % 2**32) * 0x9E3779B1) % 2**32
        seed ^= seed >> 15
    return seed
