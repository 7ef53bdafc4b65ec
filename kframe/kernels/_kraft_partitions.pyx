"""Kernels of KRaft's decision for a partition: reassignments, ELRs and leaders, and comparisons of lists.

Lists are CSR: list ``i`` of ``values`` is ``values[offsets[i]:offsets[i + 1]]``. Brokers and directories are indexes.
Reference: ``reference/kraft_partitions.py``. Kafka 4.4 ``PartitionChangeBuilder`` has the rules.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.constants cimport NO_LEADER
from kframe.kernels.prefetch cimport prefetch_list
from kframe.kernels.scan cimport in_list
from kframe.kernels.types cimport broker_t

cdef enum:
    ELECTION_UNCLEAN = 1
    ELECTION_PREFERRED = 2

# Which replicas complete a reassignment.
cdef enum:
    COMPLETION_ALL = 1
    COMPLETION_ALL_IF_FEWER_ADDED = 2

# Reserved directory indexes.
cdef enum:
    DIRECTORY_UNASSIGNED = 1
    DIRECTORY_LOST = 2


cdef inline bint all_in(
    const int32_t[::1] values, Py_ssize_t start, Py_ssize_t end,
    const int32_t[::1] others, Py_ssize_t others_start, Py_ssize_t others_end,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(start, end):
        if not in_list(others, others_start, others_end, values[k]):
            return False
    return True


def mark_completed_reassignments(
    const int32_t[::1] replica_offsets,   # IN   (k + 1,)
    const int32_t[::1] replicas,          # IN   (r,)
    const int32_t[::1] isr_offsets,       # IN   (k + 1,)
    const int32_t[::1] isr,               # IN   (i,)
    const int32_t[::1] adding_offsets,    # IN   (k + 1,)
    const int32_t[::1] adding,            # IN   (a,)
    const int32_t[::1] removing_offsets,  # IN   (k + 1,)
    const int32_t[::1] removing,          # IN   (d,)
    int rule,                             # IN   CompletionRule
    uint8_t[::1] completed,               # OUT  (k,) 1 where the reassignment is complete
    uint8_t[::1] keeps_replica,           # OUT  (r,) 0 for removing replicas of complete reassignments
    uint8_t[::1] keeps_member,            # OUT  (i,) 0 for removing ISR members of complete reassignments
):
    """Mark the complete reassignments and what they remove; return how many are complete.

    Complete: a replica and an ISR member remain after the removal, and all adding replicas are in that ISR, by some
    rules also all remaining replicas (``PartitionReassignmentReplicas``).
    """
    cdef Py_ssize_t i, k, a, b, c, d, remaining, members, matches = 0
    cdef bint done, needs_all
    with nogil:
        for i in range(completed.shape[0]):
            a, b, c, d = adding_offsets[i], adding_offsets[i + 1], removing_offsets[i], removing_offsets[i + 1]
            remaining = members = 0
            done = b > a or d > c
            needs_all = rule == COMPLETION_ALL or (rule == COMPLETION_ALL_IF_FEWER_ADDED and b - a < d - c)
            for k in range(replica_offsets[i], replica_offsets[i + 1]):
                keeps_replica[k] = not in_list(removing, c, d, replicas[k])
                remaining += keeps_replica[k]
                if needs_all and keeps_replica[k]:
                    done = done and in_list(isr, isr_offsets[i], isr_offsets[i + 1], replicas[k])
            for k in range(isr_offsets[i], isr_offsets[i + 1]):
                keeps_member[k] = not in_list(removing, c, d, isr[k])
                members += keeps_member[k]
            for k in range(a, b):
                done = done and in_list(isr, isr_offsets[i], isr_offsets[i + 1], adding[k])
                done = done and not in_list(removing, c, d, adding[k])
            if d > c and (remaining == 0 or members == 0):
                done = False
            completed[i] = done
            matches += done
            if not done:
                keeps_replica[replica_offsets[i]:replica_offsets[i + 1]] = 1
                keeps_member[isr_offsets[i]:isr_offsets[i + 1]] = 1
    return matches


def update_elrs(
    const int32_t[::1] rows,            # IN   (k,)
    const int32_t[::1] slot_start,      # IN   (n,)
    const int16_t[::1] isr_count,       # IN   (n,)
    const int16_t[::1] elr_count,       # IN   (n,)
    const broker_t[::1] isr,            # IN   (s,)
    const broker_t[::1] member,         # IN   (s,)
    const int32_t[::1] target_offsets,  # IN   (k + 1,)
    const int32_t[::1] target_isr,      # IN   (t,)
    const int32_t[::1] min_isr,         # IN   (k,)
    int unclean_broker,                 # IN   broker that returned from an unclean stop, or -1
    int32_t[::1] elr_offsets,           # OUT  (k + 1,)
    int32_t[::1] elr,                   # OUT  (e,) room for the ELR and the ISR of each row
):
    """Write the eligible leader replicas of each row for a new ISR; return how many there are in all.

    None where the new ISR has ``min_isr`` members. Else the stored ELR and ISR, without the new ISR and the broker that
    returned from an unclean stop.
    """
    cdef Py_ssize_t i, k, start, row, count = 0
    cdef int32_t broker
    with nogil:
        elr_offsets[0] = 0
        for i in range(rows.shape[0]):
            row = rows[i]
            start = slot_start[row]
            if target_offsets[i + 1] - target_offsets[i] < min_isr[i]:
                for k in range(elr_count[row] + isr_count[row]):
                    broker = member[start + k] if k < elr_count[row] else isr[start + k - elr_count[row]]
                    if broker == unclean_broker or in_list(elr, elr_offsets[i], count, broker):
                        continue
                    if not in_list(target_isr, target_offsets[i], target_offsets[i + 1], broker):
                        elr[count] = broker
                        count += 1
            elr_offsets[i + 1] = <int32_t>count
    return count


def mark_acceptable_replicas(
    const int32_t[::1] starts,             # IN   (k,) first slot of each row
    const int32_t[::1] offsets,            # IN   (k + 1,)
    const int32_t[::1] replicas,           # IN   (r,)
    const int32_t[::1] directory,          # IN   (s,)
    const uint8_t[::1] active,             # IN   (b,) 1 for brokers that may lead
    const int16_t[::1] directory_brokers,  # IN   (d,) broker that lists the directory, or -1
    const uint8_t[::1] lists_no_directory,  # IN  (b,) 1 for registrations without directories
    uint8_t[::1] acceptable,               # OUT  (r,)
):
    """Mark the replicas on active brokers whose directory is online; return how many (4.4 ``LeaderAcceptor``).

    Unassigned and migrating replicas count as online, lost ones do not.
    """
    cdef Py_ssize_t i, k, matches = 0
    cdef int32_t broker, directory_index
    with nogil:
        for i in range(starts.shape[0]):
            prefetch_list(starts, offsets, i, directory)
            for k in range(offsets[i], offsets[i + 1]):
                broker, directory_index = replicas[k], directory[starts[i] + k - offsets[i]]
                acceptable[k] = active[broker] and (
                    directory_index <= DIRECTORY_UNASSIGNED
                    or directory_index != DIRECTORY_LOST
                    and (directory_brokers[directory_index] == broker or lists_no_directory[broker]))
                matches += acceptable[k]
    return matches


cdef inline bint is_acceptable(
    int32_t broker, const int32_t[::1] replicas, const uint8_t[::1] acceptable, Py_ssize_t start, Py_ssize_t end,
) noexcept nogil:
    """Whether a broker is a stored replica that is marked as acceptable."""
    cdef Py_ssize_t k
    for k in range(start, end):
        if replicas[k] == broker:
            return acceptable[k]
    return False


def choose_kraft_leaders(
    const uint8_t[::1] kinds, const int32_t[::1] leader,  # IN   (k,) KraftElection; present leader, or NO_LEADER
    const int32_t[::1] stored_offsets,      # IN   (k + 1,)
    const int32_t[::1] stored,              # IN   (r,) stored replicas
    const uint8_t[::1] acceptable,          # IN   (r,) 1 for stored replicas that may lead
    const int32_t[::1] replica_offsets,     # IN   (k + 1,)
    const int32_t[::1] replicas,            # IN   (t,) target replicas
    const int32_t[::1] isr_offsets, const int32_t[::1] isr,  # IN   (k + 1,), (i,) target ISR
    const int32_t[::1] elr_offsets, const int32_t[::1] elr,  # IN   (k + 1,), (e,) target ELR
    const int32_t[::1] last_known_leader,   # IN   (k,) broker that may be elected if ISR and ELR are empty, or -1
    int32_t[::1] new_leader,                # OUT  (k,) broker index, or NO_LEADER
    uint8_t[::1] unclean,                   # OUT  (k,) 1 where the leader may lack records
):
    """Choose the leader of each row (4.4 ``PartitionChangeBuilder.electLeader``); return how many there are.

    PREFERRED tries the first replica first. Then the present leader, the replicas in order, the last-known leader, and
    for UNCLEAN the first acceptable replica. All but the last two are in the ISR, or in the ELR if the ISR is empty.
    """
    cdef Py_ssize_t i, k, start, end, first, last, matches = 0
    cdef int32_t chosen, broker
    cdef bint in_sync
    with nogil:
        for i in range(new_leader.shape[0]):
            start, end = stored_offsets[i], stored_offsets[i + 1]
            first, last = replica_offsets[i], replica_offsets[i + 1]
            chosen, unclean[i] = NO_LEADER, 0
            for k in range(-2, last - first):  # -2 is the preferred replica, -1 the present leader
                if k == -2 and (kinds[i] != ELECTION_PREFERRED or first == last):
                    continue
                broker = leader[i] if k == -1 else replicas[first] if k == -2 else replicas[first + k]
                if isr_offsets[i] < isr_offsets[i + 1]:
                    in_sync = in_list(isr, isr_offsets[i], isr_offsets[i + 1], broker)
                else:
                    in_sync = in_list(elr, elr_offsets[i], elr_offsets[i + 1], broker)
                if in_sync and is_acceptable(broker, stored, acceptable, start, end):
                    chosen = broker
                    break
            if chosen == NO_LEADER and last_known_leader[i] >= 0 and isr_offsets[i] == isr_offsets[i + 1]:
                if elr_offsets[i] == elr_offsets[i + 1] and is_acceptable(
                        last_known_leader[i], stored, acceptable, start, end):
                    chosen, unclean[i] = last_known_leader[i], 1
            if chosen == NO_LEADER and kinds[i] == ELECTION_UNCLEAN:
                for k in range(first, last):
                    if is_acceptable(replicas[k], stored, acceptable, start, end):
                        chosen, unclean[i] = replicas[k], 1
                        break
            new_leader[i] = chosen
            matches += chosen != NO_LEADER
    return matches


def mark_list_changes(
    const int32_t[::1] offsets,        # IN   (k + 1,)
    const int32_t[::1] values,         # IN   (v,)
    const int32_t[::1] other_offsets,  # IN   (k + 1,)
    const int32_t[::1] other_values,   # IN   (w,)
    uint8_t[::1] differs,              # OUT  (k,) 1 where length, values or order differ
):
    """Compare lists with others in order; return how many differ."""
    cdef Py_ssize_t i, k, start, other, count, matches = 0
    with nogil:
        for i in range(differs.shape[0]):
            start, other, count = offsets[i], other_offsets[i], offsets[i + 1] - offsets[i]
            differs[i] = other_offsets[i + 1] - other != count
            if not differs[i]:
                for k in range(count):
                    differs[i] |= values[start + k] != other_values[other + k]
            matches += differs[i]
    return matches


def mark_missing_members(
    const int32_t[::1] offsets,        # IN   (k + 1,)
    const int32_t[::1] values,         # IN   (v,)
    const int32_t[::1] other_offsets,  # IN   (k + 1,)
    const int32_t[::1] other_values,   # IN   (w,)
    uint8_t[::1] missing,              # OUT  (k,) 1 where a value is not in the other list
):
    """Mark the lists that have a value which the other list lacks; return how many."""
    cdef Py_ssize_t i, matches = 0
    with nogil:
        for i in range(missing.shape[0]):
            missing[i] = not all_in(
                values, offsets[i], offsets[i + 1], other_values, other_offsets[i], other_offsets[i + 1])
            matches += missing[i]
    return matches
