"""Reference kernel of ``_isr_proposals.pyx``."""

from __future__ import annotations

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.ids import NO_STATE, PartitionFlag, ProposalCheck, RecoveryState

__all__ = ["check_isr_proposals"]


def check_isr_proposals(
    rows: Int32,
    sender: int,
    new_leader_epoch: Int32,
    new_partition_epoch: Int32,
    new_recovery: UInt8,
    isr_offsets: Int32,
    isr_values: Int32,
    refused_members: UInt8,
    malformed: UInt8,
    eligible: UInt8,
    slot_start: Int32,
    isr_count: Int16,
    isr: Int16,
    leader: Int16,
    leader_epoch: Int32,
    partition_epoch: Int32,
    status: UInt8,
    check: UInt8,
) -> int:
    """All checks of a row, of which the first counts."""
    for i, row in enumerate(rows.tolist()):
        if row < 0 or partition_epoch[row] == NO_STATE:
            check[i] = ProposalCheck.STATELESS
            continue
        members = slice(isr_offsets[i], isr_offsets[i + 1])
        proposed = isr_values[members].tolist()
        stored = isr[slot_start[row] : slot_start[row] + isr_count[row]].tolist()
        epoch, new_epoch = partition_epoch[row], new_partition_epoch[i]
        recovering = new_recovery[i] == RecoveryState.RECOVERING
        is_repeated = (
            proposed == stored and leader[row] == sender and new_recovery[i] == status[row] & PartitionFlag.RECOVERING
        )
        wrong = recovering and (len(proposed) > 1 or not status[row] & PartitionFlag.RECOVERING)
        ineligible = any(broker < 0 or not eligible[broker] for broker in proposed)
        checks = {
            ProposalCheck.NEWER_EPOCH: new_epoch > epoch or new_leader_epoch[i] > leader_epoch[row],
            ProposalCheck.OLDER_LEADER_EPOCH: new_leader_epoch[i] < leader_epoch[row],
            ProposalCheck.REPEATED: is_repeated,
            ProposalCheck.OLDER_PARTITION_EPOCH: new_epoch < epoch,
            ProposalCheck.MALFORMED: malformed[i] or wrong,
            ProposalCheck.INELIGIBLE_MEMBER: ineligible or refused_members[members].any(),
            ProposalCheck.VALID: True,
        }
        check[i] = next(number for number, applies in checks.items() if applies)
    return int((check[: len(rows)] == ProposalCheck.VALID).sum())
