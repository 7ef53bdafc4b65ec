"""Elect the last in-sync replica. The rule is a scalar selector and a bulk selector."""

from __future__ import annotations

from kframe.plugin import ElectionBatch, ElectionKind, Int32, PartitionElection, SelectorSpec, Tier, hookimpl

KINDS = (ElectionKind.OFFLINE, ElectionKind.REASSIGN, ElectionKind.CONTROLLED_SHUTDOWN)


def last_in_sync(election: PartitionElection) -> int | None:
    """Return the id of the new leader of a partition, or None."""
    in_sync = [broker for broker in election.eligible if broker in election.isr]
    return in_sync[-1] if in_sync else None


class LastInSync:
    """The same rule for a batch. It writes in candidate order, so the last eligible candidate remains."""

    name = "last-in-sync-bulk"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Write the index of the new leader of each partition to ``leader``."""
        candidates = batch.candidates
        may_lead = (batch.eligible & batch.in_sync) != 0
        longest = int(candidates.counts.max())
        for position in range(longest):
            rows = (candidates.counts > position).nonzero()[0]
            slots = candidates.offsets[rows] + position
            rows, slots = rows[may_lead[slots]], slots[may_lead[slots]]
            leader[rows] = candidates.values[slots]


@hookimpl
def kframe_leader_selectors() -> list[SelectorSpec]:
    """Register both selectors."""
    doc = "The last candidate that is eligible and in sync."
    return [
        SelectorSpec("last-in-sync-scalar", Tier.SCALAR, lambda: last_in_sync, KINDS, doc),
        SelectorSpec("last-in-sync-bulk", Tier.BULK, LastInSync, KINDS, doc),
    ]
