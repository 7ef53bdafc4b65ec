"""A leader selector that spreads leaders over racks, and a template for other selectors.

Losing a rack costs as many elections as it has leaders. For each partition of a batch, this selector elects the
candidate whose rack has the fewest leaders so far. Among equals it takes the first in Kafka's candidate order. For
brokers without racks it therefore decides as Kafka does. PREFERRED elections leave no choice, so it is not used for
them.
"""

from __future__ import annotations

from kframe.plugin import ElectionBatch, ElectionKind, Int32, SelectorSpec, Tier, hookimpl


class RackSpread:
    """Elects the eligible candidate whose rack leads the fewest partitions of the batch so far."""

    name = "rack-spread"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector. Each choice depends on earlier ones, so this is a loop with cost O(candidates)."""
        offsets = batch.candidates.offsets.tolist()
        brokers = batch.candidates.values.tolist()
        racks = batch.broker_rack[batch.candidates.values].tolist()
        may_lead = batch.may_lead.tolist()
        # By rack number. The last element, index -1, counts brokers without a rack.
        leaders_by_rack = [0] * (len(batch.racks) + 1)
        for position in range(len(batch)):
            slots = [slot for slot in range(offsets[position], offsets[position + 1]) if may_lead[slot]]
            if slots:
                chosen = min(slots, key=lambda slot: leaders_by_rack[racks[slot]])
                leaders_by_rack[racks[chosen]] += 1
                leader[position] = brokers[chosen]


@hookimpl
def kframe_leader_selectors() -> list[SelectorSpec]:
    """Register the selector."""
    return [
        SelectorSpec(
            name=RackSpread.name,
            tier=Tier.BULK,
            factory=RackSpread,
            kinds=(ElectionKind.OFFLINE, ElectionKind.REASSIGN, ElectionKind.CONTROLLED_SHUTDOWN, ElectionKind.INITIAL),
            doc="Spreads the leaders that it elects evenly over the racks.",
        )
    ]
