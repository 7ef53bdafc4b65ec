"""Reference twins of ``_selectors.pyx``, except for the loop that calls native selectors."""

from __future__ import annotations

from kframe.model.columns import Int16, Int32, Partitions, UInt8
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag

#: A candidate: broker index, eligible, in sync, may lead.
Candidate = tuple[int, bool, bool, bool]


def candidates_of(kind: int, row: int, p: Partitions, live: UInt8, allowed: bool) -> list[Candidate]:
    """Who is asked to lead a row, and may."""
    start, isr = int(p.slot_start[row]), p.isr_of(row).tolist()
    slots = [
        at for at in range(start, start + int(p.replica_count[row]))
        if not (kind == ElectionKind.REASSIGN and p.replica_flags[at] & ReplicaFlag.REMOVING)
    ]  # fmt: skip
    seen = []
    for at in slots:
        broker = int(p.replica[at])
        eligible = bool(live[broker]) and not p.replica_flags[at] & ReplicaFlag.OFFLINE_DIR
        seen.append((broker, eligible, eligible if kind == ElectionKind.INITIAL else broker in isr))
    unclean = bool(allowed) and kind == ElectionKind.OFFLINE and not any(one and member for _, one, member in seen)
    heads = seen[:1] if kind == ElectionKind.PREFERRED else seen
    return [(*one, one in heads and one[1] and (one[2] or unclean)) for one in seen]


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
    offsets[0] = put = 0
    for i, row in enumerate(rows.tolist()):
        if put + int(p.replica_count[row]) > len(candidates):
            return -1
        seen = candidates_of(kind, row, p, live, bool(allowed[i]))
        for at, (broker, _, _, may) in enumerate(seen, put):
            candidates[at], may_lead[at] = broker, may
        put += len(seen)
        offsets[i + 1] = put
        first[i] = next((broker for broker, _, _, may in seen if may), NO_LEADER)
    return put


def mark_candidates(kind: int, rows: Int32, p: Partitions, live: UInt8, eligible: UInt8, in_sync: UInt8) -> None:
    """See ``kframe.kernels._selectors.mark_candidates``."""
    seen = [one for row in rows.tolist() for one in candidates_of(kind, row, p, live, False)]
    for at, (_, may, member, _) in enumerate(seen):
        eligible[at], in_sync[at] = may, member


def count_violations(
    kind: int, rows: Int32, p: Partitions, live: UInt8, allowed: UInt8, first: Int16, leader: Int32
) -> int:  # fmt: skip
    """See ``kframe.kernels._selectors.count_violations``."""
    found = 0
    for row, unclean, chosen in zip(rows.tolist(), allowed.tolist(), leader.tolist(), strict=True):
        lawful = [broker for broker, _, _, may in candidates_of(kind, row, p, live, unclean) if may]
        found += chosen != NO_LEADER and chosen not in lawful
    return found


def take_first(offsets: Int32, values: Int32, mask: UInt8, out: Int32) -> bool:
    """See ``kframe.kernels._selectors.take_first``."""
    for i in range(len(out)):
        first, last = int(offsets[i]), int(offsets[i + 1])
        if first < 0 or last > len(mask):
            return False
        hits = [at for at in range(first, last) if mask[at]]
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
