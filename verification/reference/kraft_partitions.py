"""Reference kernels of ``_kraft_partitions.pyx``."""

from __future__ import annotations

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.directories import LOST, MIGRATING, UNASSIGNED
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.releases import CompletionRule
from verification.reference.columns import slots_of, values_at

__all__ = [
    "choose_kraft_leaders",
    "mark_acceptable_replicas",
    "mark_completed_reassignments",
    "mark_list_changes",
    "mark_missing_members",
    "update_elrs",
]


def _list(offsets: Int32, values: Int32, index: int) -> list[int]:
    lists: list[int] = values[offsets[index] : offsets[index + 1]].tolist()
    return lists


def mark_completed_reassignments(
    replica_offsets: Int32,
    replicas: Int32,
    isr_offsets: Int32,
    isr: Int32,
    adding_offsets: Int32,
    adding: Int32,
    removing_offsets: Int32,
    removing: Int32,
    rule: int,
    completed: UInt8,
    keeps_replica: UInt8,
    keeps_member: UInt8,
) -> int:
    """Remove the removing replicas, and compare the rest with the adding replicas and the ISR."""
    keeps_replica[:] = keeps_member[:] = 1
    for i in range(len(completed)):
        added, removed = _list(adding_offsets, adding, i), _list(removing_offsets, removing, i)
        remaining = [broker for broker in _list(replica_offsets, replicas, i) if broker not in removed]
        members = [broker for broker in _list(isr_offsets, isr, i) if broker not in removed]
        done = bool(added or removed) and set(added) <= set(members)
        if removed and not (remaining and members):
            done = False
        fewer_added = rule == CompletionRule.ALL_IF_FEWER_ADDED and len(added) < len(removed)
        if (fewer_added or rule == CompletionRule.ALL) and not set(remaining) <= set(members):
            done = False
        completed[i] = done
        for k in range(replica_offsets[i], replica_offsets[i + 1]):
            keeps_replica[k] = not done or int(replicas[k]) not in removed
        for k in range(isr_offsets[i], isr_offsets[i + 1]):
            keeps_member[k] = not done or int(isr[k]) not in removed
    return int(completed.sum())


def update_elrs(
    rows: Int32,
    slot_start: Int32,
    isr_count: Int16,
    elr_count: Int16,
    isr: Int16,
    member: Int16,
    target_offsets: Int32,
    target_isr: Int32,
    min_isr: Int32,
    unclean_broker: int,
    elr_offsets: Int32,
    elr: Int32,
) -> int:
    """The union of the stored ELR and ISR, without the target ISR and the unclean broker."""
    count = 0
    elr_offsets[0] = 0
    for i, row in enumerate(rows.tolist()):
        target = _list(target_offsets, target_isr, i)
        known = values_at(member, slots_of(row, slot_start, elr_count))
        known += values_at(isr, slots_of(row, slot_start, isr_count))
        if len(target) < min_isr[i]:
            for broker in dict.fromkeys(known):
                if broker not in target and broker != unclean_broker:
                    elr[count] = broker
                    count += 1
        elr_offsets[i + 1] = count
    return count


def mark_acceptable_replicas(
    starts: Int32,
    offsets: Int32,
    replicas: Int32,
    directory: Int32,
    active: UInt8,
    directory_brokers: Int16,
    lists_no_directory: UInt8,
    acceptable: UInt8,
) -> int:
    """A replica is acceptable on an active broker, in a directory that is online."""
    for i, start in enumerate(starts.tolist()):
        for k, broker in enumerate(_list(offsets, replicas, i)):
            index = int(directory[start + k])
            online = index in (MIGRATING, UNASSIGNED)
            listed = index != LOST and bool(directory_brokers[index] == broker or lists_no_directory[broker])
            acceptable[offsets[i] + k] = bool(active[broker]) and (online or listed)
    return int(acceptable[: len(replicas)].sum())


def choose_kraft_leaders(
    kinds: UInt8,
    leader: Int32,
    stored_offsets: Int32,
    stored: Int32,
    acceptable: UInt8,
    replica_offsets: Int32,
    replicas: Int32,
    isr_offsets: Int32,
    isr: Int32,
    elr_offsets: Int32,
    elr: Int32,
    last_known_leader: Int32,
    new_leader: Int32,
    unclean: UInt8,
) -> int:
    """The first candidate in the ISR, or in the ELR if the ISR is empty. Else the last-known or an unclean leader."""
    for i in range(len(new_leader)):
        target, present = _list(replica_offsets, replicas, i), int(leader[i])
        in_sync, eligible = _list(isr_offsets, isr, i), _list(elr_offsets, elr, i)
        slots = range(stored_offsets[i], stored_offsets[i + 1])
        usable = {int(stored[slot]) for slot in slots if acceptable[slot]}
        preferred = target[:1] if kinds[i] == KraftElection.PREFERRED else []
        valid = [broker for broker in (*preferred, present, *target) if broker in (in_sync or eligible)]
        candidates = [broker for broker in valid if broker in usable]
        last_known = int(last_known_leader[i])
        unclean[i] = 0
        if not candidates:
            if not in_sync and not eligible and last_known in usable:
                candidates = [last_known]
            elif kinds[i] == KraftElection.UNCLEAN:
                candidates = [broker for broker in target if broker in usable]
            unclean[i] = bool(candidates)
        new_leader[i] = candidates[0] if candidates else NO_LEADER
    return int((new_leader != NO_LEADER).sum())


def mark_list_changes(offsets: Int32, values: Int32, other_offsets: Int32, other_values: Int32, differs: UInt8) -> int:
    """Lists of different values, or in another order, differ."""
    for i in range(len(differs)):
        differs[i] = _list(offsets, values, i) != _list(other_offsets, other_values, i)
    return int(differs.sum())


def mark_missing_members(
    offsets: Int32, values: Int32, other_offsets: Int32, other_values: Int32, missing: UInt8
) -> int:
    """A list is marked unless it is a subset of the other."""
    for i in range(len(missing)):
        missing[i] = not set(_list(offsets, values, i)) <= set(_list(other_offsets, other_values, i))
    return int(missing.sum())
