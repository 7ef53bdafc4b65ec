"""What selectors see and may not do, in plain loops: the twins of ``kframe._select``'s kernels over columns."""

from __future__ import annotations

from kframe.model.columns import Int16, Int32, UInt8
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag


def gather(
    kind: int,
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_flags: UInt8,
    live: UInt8,
    offsets: Int32,
    candidates: Int32,
    eligible: UInt8,
    in_sync: UInt8,
    isr_offsets: Int32,
    isr_values: Int32,
    clean: UInt8,
) -> int:
    """See ``kframe._select.gather``."""
    seen: list[tuple[int, bool, bool]] = []
    members: list[int] = []
    offsets[0] = isr_offsets[0] = 0
    for i, row in enumerate(rows.tolist()):
        start, count = int(slot_start[row]), int(replica_count[row])
        slots = [
            at for at in range(start, start + count)
            if not (kind == ElectionKind.REASSIGN and replica_flags[at] & ReplicaFlag.REMOVING)
        ]  # fmt: skip
        may = [bool(live[replica[at]]) and not replica_flags[at] & ReplicaFlag.OFFLINE_DIR for at in slots]
        of_row = isr[start : start + int(isr_count[row])].tolist()
        if kind == ElectionKind.INITIAL:
            of_row = [int(replica[at]) for at, one in zip(slots, may, strict=True) if one]
        listed = [(int(replica[at]), one, int(replica[at]) in of_row) for at, one in zip(slots, may, strict=True)]
        clean[i] = any(one and member for _, one, member in listed)
        seen += listed
        members += of_row
        offsets[i + 1], isr_offsets[i + 1] = len(seen), len(members)
    for at, (broker, one, member) in enumerate(seen):
        candidates[at], eligible[at], in_sync[at] = broker, one, member
    isr_values[: len(members)] = members
    return len(seen)


def copy_rows(rows: Int32, topic: Int32, partition: Int32, leader: Int16, leader_epoch: Int32, values: Int32) -> None:
    """See ``kframe._select.copy_rows``."""
    columns: tuple[Int16 | Int32, ...] = (topic, partition, leader, leader_epoch)
    for line, column in enumerate(columns):
        for i, row in enumerate(rows.tolist()):
            values[line, i] = column[row]


def count_unlawful(
    kind: int,
    offsets: Int32,
    candidates: Int32,
    eligible: UInt8,
    in_sync: UInt8,
    unclean_allowed: UInt8,
    leader: Int32,
) -> int:
    """See ``kframe._select.count_unlawful``."""
    found = 0
    for i, chosen in enumerate(leader.tolist()):
        places = list(range(int(offsets[i]), int(offsets[i + 1])))
        places = places[:1] if kind == ElectionKind.PREFERRED else places
        lawful = [at for at in places if candidates[at] == chosen and eligible[at]]
        lawful = [at for at in lawful if in_sync[at] or unclean_allowed[i]]
        found += chosen != NO_LEADER and not lawful
    return found
