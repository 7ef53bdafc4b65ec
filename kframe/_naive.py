"""The naive twins of ``_core.pyx``, ``_hosting.pyx`` and ``_state.pyx``: same names, arguments, answers; to be read.

A twin says in plain loops over single rows and slots what its kernel does in one pass; the tests hold the kernel to it,
and ``KFRAME_KERNELS=naive`` runs everything on the twins. Shapes, dtypes, what is IN and what is OUT, and the source of
each rule stand with the kernel.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe._naive_hosts import assign_replicas, index_hosts, read_hosts, size_hosts
from kframe.model.columns import Int16, Int32, Int64, UInt8
from kframe.model.ids import NO_LEADER, NO_STATE, ElectionKind, PartitionState, RecoveryState, ReplicaFlag, ReplicaState

__all__ = [
    "DEBUG",
    "assign_replicas",
    "check_moves",
    "choose_leaders",
    "copy_assignments",
    "count_by_broker",
    "group_by_broker",
    "index_hosts",
    "list_hosted",
    "list_in_states",
    "list_leaderless",
    "list_recipients",
    "list_strays",
    "mark_dead_isr",
    "mark_reassigned",
    "plan_elections",
    "plan_removals",
    "read_hosts",
    "size_hosts",
    "start_partitions",
    "start_replicas",
    "store_states",
    "tally_rows",
]

#: NumPy checks every index, but this is not the debug build of the kernels.
DEBUG: Final = False


def choose_leaders(
    kind: int, rows: Int32, slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16,
    replica_flags: UInt8, live: UInt8, unclean_allowed: UInt8, leader: Int32,
) -> int:  # fmt: skip
    """The first candidate that is online and in sync; in an OFFLINE election perhaps the first that is online."""
    found = 0
    for i, row in enumerate(rows.tolist()):
        slots = _slots(row, slot_start, replica_count)
        if kind == ElectionKind.PREFERRED:
            slots = slots[:1]
        elif kind == ElectionKind.REASSIGN:
            slots = [slot for slot in slots if not replica_flags[slot] & ReplicaFlag.REMOVING]
        online = [int(replica[slot]) for slot in slots if _slot_online(slot, replica, replica_flags, live)]
        in_sync = _values(isr, _slots(row, slot_start, isr_count))
        eligible = online if kind == ElectionKind.INITIAL else [broker for broker in online if broker in in_sync]
        if not eligible and kind == ElectionKind.OFFLINE and unclean_allowed[i]:
            eligible = online
        leader[i] = eligible[0] if eligible else NO_LEADER
        found += bool(eligible)
    return found


def mark_dead_isr(
    rows: Int32, slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16,
    replica_flags: UInt8, live: UInt8, dead: UInt8,
) -> int:  # fmt: skip
    """A row is marked if none of its ISR members is online."""
    found = 0
    for i, row in enumerate(rows.tolist()):
        assigned = _slots(row, slot_start, replica_count)
        in_sync = _values(isr, _slots(row, slot_start, isr_count))
        online = [broker for broker in in_sync if _broker_online(broker, assigned, replica, replica_flags, live)]
        dead[i] = not online
        found += not online
    return found


def plan_elections(
    kind: int, recovery_supported: bool, rows: Int32, leader: Int32, old_epoch: Int32, old_recovery: UInt8,
    slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16, replica_flags: UInt8,
    live: UInt8, shutting_down: UInt8, leader_epoch: Int32, recovery: UInt8, isr_offsets: Int32, isr_values: Int32,
) -> int:  # fmt: skip
    """Each row's ISR by its kind of election, the next leader epoch, and RECOVERING where an outsider was elected."""
    unclean = 0
    isr_offsets[0] = 0
    for i, row in enumerate(rows.tolist()):
        assigned = _slots(row, slot_start, replica_count)
        members = _values(isr, _slots(row, slot_start, isr_count))
        leader_epoch[i], recovery[i] = old_epoch[row] + np.int32(1), old_recovery[row]
        if kind == ElectionKind.INITIAL:
            leader_epoch[i], recovery[i] = 0, RecoveryState.RECOVERED
            members = [int(replica[slot]) for slot in assigned if _slot_online(slot, replica, replica_flags, live)]
        elif kind == ElectionKind.OFFLINE and leader[i] not in members:
            unclean += 1
            members = [int(leader[i])]
            if recovery_supported:
                recovery[i] = RecoveryState.RECOVERING
        elif kind == ElectionKind.OFFLINE:
            members = [broker for broker in members if _broker_online(broker, assigned, replica, replica_flags, live)]
        elif kind == ElectionKind.CONTROLLED_SHUTDOWN:
            members = [broker for broker in members if not shutting_down[broker]]
        _append(i, members, isr_offsets, isr_values)
    return unclean


def plan_removals(
    broker: int, rows: Int32, old_leader: Int16, old_epoch: Int32, old_recovery: UInt8, partition_epoch: Int32,
    slot_start: Int32, isr_count: Int16, isr: Int16, changed: Int32, leader: Int32, leader_epoch: Int32,
    recovery: UInt8, expected: Int32, isr_offsets: Int32, isr_values: Int32,
) -> int:  # fmt: skip
    """The broker leaves every ISR that it is in, but the last member of one stays; whom it led has no leader."""
    found = 0
    isr_offsets[0] = 0
    for row in rows.tolist():
        members = _values(isr, _slots(row, slot_start, isr_count))
        if broker in members:
            changed[found] = row
            leader[found] = NO_LEADER if old_leader[row] == broker else old_leader[row]
            leader_epoch[found], recovery[found] = old_epoch[row] + 1, old_recovery[row]
            expected[found] = partition_epoch[row]
            remaining = members if len(members) == 1 else [member for member in members if member != broker]
            _append(found, remaining, isr_offsets, isr_values)
            found += 1
    return found


def list_hosted(
    rows: Int32, chosen: UInt8, slot_start: Int32, replica_count: Int16, replica: Int16, hosted: Int32, places: Int32
) -> int:
    """Row and place of every replica on a chosen broker, row by row."""
    found = 0
    for row in rows.tolist():
        for slot in _slots(row, slot_start, replica_count):
            if chosen[replica[slot]]:
                hosted[found], places[found] = row, slot - slot_start[row]
                found += 1
    return found


def list_recipients(
    rows: Int32, slot_start: Int32, replica_count: Int16, replica: Int16, replica_flags: UInt8, allowed: UInt8,
    skip_flags: int, brokers: Int32, told: Int32,
) -> int:  # fmt: skip
    """A pair for each replica that is on an allowed broker and carries none of the flags to skip."""
    found = 0
    for row in rows.tolist():
        for slot in _slots(row, slot_start, replica_count):
            if allowed[replica[slot]] and not replica_flags[slot] & skip_flags:
                brokers[found], told[found] = replica[slot], row
                found += 1
    return found


def group_by_broker(brokers: Int32, rows: Int32, offsets: Int32, grouped: Int32, origin: Int32) -> int:
    """One broker after another, the pairs of each in the order in which they came."""
    filled = 0
    for broker in range(len(offsets)):
        offsets[broker] = filled
        for i in range(len(brokers)):
            if brokers[i] == broker:
                grouped[filled], origin[filled] = rows[i], i
                filled += 1
    return len(set(brokers.tolist()))


def copy_assignments(
    rows: Int32, slot_start: Int32, replica_count: Int16, replica: Int16, replica_flags: UInt8, broker_ids: Int32,
    kept_flags: int, values: Int32, flags: UInt8,
) -> int:  # fmt: skip
    """One row's list after another's, by broker id, with those flags that are asked for."""
    slots = [slot for row in rows.tolist() for slot in _slots(row, slot_start, replica_count)]
    for copied, slot in enumerate(slots):
        values[copied] = broker_ids[replica[slot]]
        flags[copied] = int(replica_flags[slot]) & kept_flags
    return len(slots)


def mark_reassigned(
    rows: Int32, offsets: Int32, values: Int32, flags: UInt8, compared_flags: int, slot_start: Int32,
    replica_count: Int16, replica: Int16, replica_flags: UInt8, differs: UInt8,
) -> int:  # fmt: skip
    """A row differs by its brokers, their order, or a flag that counts."""
    for i, row in enumerate(rows.tolist()):
        wanted = [(int(values[j]), int(flags[j]) & compared_flags) for j in range(offsets[i], offsets[i + 1])]
        slots = _slots(row, slot_start, replica_count)
        differs[i] = wanted != [(int(replica[slot]), int(replica_flags[slot]) & compared_flags) for slot in slots]
    return int(differs.sum())


def check_moves(positions: Int32, states: UInt8, allowed: int, valid: UInt8) -> int:
    """A move is legal if the state at its position is one of the allowed."""
    found = 0
    for i, position in enumerate(positions.tolist()):
        valid[i] = bool(allowed & 1 << int(states[position]))
        found += int(valid[i])
    return found


def list_leaderless(
    topic: Int32, leader: Int16, partition_epoch: Int32, slot_start: Int32, replica_count: Int16, replica: Int16,
    replica_flags: UInt8, live: UInt8, deleting: UInt8, rows: Int32,
) -> int:  # fmt: skip
    """Rows with a state whose leader is not online; those that are gone or queued for deletion do not count."""
    found = 0
    for row in range(len(topic)):
        if topic[row] < 0 or deleting[topic[row]] or partition_epoch[row] == NO_STATE:
            continue
        assigned = _slots(row, slot_start, replica_count)
        if not _broker_online(int(leader[row]), assigned, replica, replica_flags, live):
            rows[found] = row
            found += 1
    return found


def list_strays(
    topic: Int32, partition_epoch: Int32, slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16,
    isr: Int16, deleting: UInt8, rows: Int32,
) -> int:  # fmt: skip
    """Rows with a state whose ISR names who is not assigned; what is gone or queued for deletion does not count."""
    found = 0
    for row in range(len(topic)):
        if topic[row] < 0 or deleting[topic[row]] or partition_epoch[row] == NO_STATE:
            continue
        in_sync = _values(isr, _slots(row, slot_start, isr_count))
        if not set(in_sync) <= set(_values(replica, _slots(row, slot_start, replica_count))):
            rows[found] = row
            found += 1
    return found


def list_in_states(topic: Int32, state: UInt8, wanted: int, deleting: UInt8, rows: Int32) -> int:
    """Rows in a wanted state; those that are gone or queued for deletion do not count."""
    found = 0
    for row in range(len(topic)):
        if topic[row] >= 0 and not deleting[topic[row]] and wanted & 1 << int(state[row]):
            rows[found] = row
            found += 1
    return found


def start_partitions(
    leader: Int16, partition_epoch: Int32, slot_start: Int32, replica_count: Int16, replica: Int16,
    replica_flags: UInt8, live: UInt8, state: UInt8,
) -> int:  # fmt: skip
    """New without leadership, Online with an online leader, else Offline."""
    found = 0
    for row in range(len(leader)):
        assigned = _slots(row, slot_start, replica_count)
        if partition_epoch[row] == NO_STATE:
            state[row] = PartitionState.NEW
        elif _broker_online(int(leader[row]), assigned, replica, replica_flags, live):
            state[row] = PartitionState.ONLINE
        else:
            state[row] = PartitionState.OFFLINE
        found += state[row] != PartitionState.ONLINE
    return int(found)


def start_replicas(
    slot_start: Int32, replica_count: Int16, replica: Int16, replica_flags: UInt8, live: UInt8, replica_state: UInt8
) -> int:
    """Online where the replica is online, else ReplicaDeletionIneligible."""
    found = 0
    for row in range(len(slot_start)):
        for slot in _slots(row, slot_start, replica_count):
            online = _slot_online(slot, replica, replica_flags, live)
            replica_state[slot] = ReplicaState.ONLINE if online else ReplicaState.DELETION_INELIGIBLE
            found += online
    return found


def count_by_broker(
    leader: Int16, slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16,
    leads: Int32, preferred: Int32, hosts: Int32, in_sync: Int32,
) -> int:  # fmt: skip
    """Per broker: the rows that it leads, that prefer it, that it hosts, and whose ISR it is in."""
    for counts in (leads, preferred, hosts, in_sync):
        counts[:] = 0
    found = 0
    for row in range(len(leader)):
        if leader[row] >= 0:
            leads[leader[row]] += 1
            found += 1
        assigned = _values(replica, _slots(row, slot_start, replica_count))
        for broker in assigned[:1]:
            preferred[broker] += 1
        for broker in assigned:
            hosts[broker] += 1
        for broker in _values(isr, _slots(row, slot_start, isr_count)):
            in_sync[broker] += 1
    return found


def store_states(
    rows: Int32, new_leader: Int32, new_leader_epoch: Int32, new_recovery: UInt8, new_partition_epoch: Int32,
    new_controller_epoch: Int32, isr_offsets: Int32, isr_values: Int32, slot_start: Int32, leader: Int16,
    leader_epoch: Int32, recovery: UInt8, partition_epoch: Int32, controller_epoch: Int32, isr_count: Int16, isr: Int16,
) -> int:  # fmt: skip
    """Each row gets what stands beside it."""
    for i, row in enumerate(rows.tolist()):
        leader[row], leader_epoch[row], recovery[row] = new_leader[i], new_leader_epoch[i], new_recovery[i]
        partition_epoch[row], controller_epoch[row] = new_partition_epoch[i], new_controller_epoch[i]
        members = isr_values[isr_offsets[i] : isr_offsets[i + 1]].tolist()
        isr_count[row] = len(members)
        for slot, member in enumerate(members, int(slot_start[row])):
            isr[slot] = member
    return len(rows)


def tally_rows(
    rows: Int32, topic: Int32, partition_epoch: Int32, state: UInt8, leader: Int16, slot_start: Int32,
    replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16, replica_flags: UInt8, deleting: UInt8,
    deletion_started: UInt8, counted: UInt8, totals: Int64,
) -> int:  # fmt: skip
    """A row counts as led, offline or imbalanced (bits 0 to 2), and each total for the rows that have its bit."""
    changes = 0
    for row in rows.tolist():
        there, stated = topic[row] >= 0, topic[row] >= 0 and partition_epoch[row] != NO_STATE
        offline = there and state[row] == PartitionState.OFFLINE and not deletion_started[topic[row]]
        imbalanced = False
        if stated and replica_count[row] > 0 and not deleting[topic[row]]:
            first = int(slot_start[row])
            if replica_flags[first] & ReplicaFlag.ADDING:
                imbalanced = int(replica[first]) in _values(isr, _slots(row, slot_start, isr_count))
            else:
                imbalanced = bool(leader[row] != replica[first])
        now, before = [stated, offline, imbalanced], [bool(counted[row] >> bit & 1) for bit in range(3)]
        for bit in range(3):
            totals[bit] += bool(now[bit]) - before[bit]
        counted[row] = sum(bool(one) << bit for bit, one in enumerate(now))
        changes += now != before
    return changes


def _slots(row: int, slot_start: Int32, counts: Int16) -> list[int]:
    """The slots of a row that hold its assigned replicas, or its ISR, as ``counts`` says."""
    start = int(slot_start[row])
    return list(range(start, start + int(counts[row])))


def _values(column: Int16, slots: list[int]) -> list[int]:
    return [int(column[slot]) for slot in slots]


def _slot_online(slot: int, replica: Int16, replica_flags: UInt8, live: UInt8) -> bool:
    """Whether an assigned replica is online: its broker is live and its log directory is not offline."""
    return bool(live[replica[slot]]) and not replica_flags[slot] & ReplicaFlag.OFFLINE_DIR


def _broker_online(broker: int, assigned: list[int], replica: Int16, replica_flags: UInt8, live: UInt8) -> bool:
    """Whether a leader or ISR member is online; one that is not assigned is judged by its broker alone."""
    if broker < 0:
        return False
    for slot in assigned:
        if replica[slot] == broker:
            return _slot_online(slot, replica, replica_flags, live)
    return bool(live[broker])


def _append(position: int, members: list[int], offsets: Int32, values: Int32) -> None:
    """Write list number ``position`` behind those before it."""
    start = int(offsets[position])
    for k, member in enumerate(members):
        values[start + k] = member
    offsets[position + 1] = start + len(members)
