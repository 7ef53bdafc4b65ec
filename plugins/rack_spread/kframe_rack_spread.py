"""Leaders spread over racks: the smallest useful leader selector, and the template to copy.

Losing a rack costs as many elections as it has leaders. In one batch of elections this selector gives each partition
to the candidate whose rack has been given the fewest so far; of equals, to the first in Kafka's candidate order.
Where brokers name no rack it therefore decides as Kafka does. PREFERRED elections leave no choice, so it has no part
in them.
"""

from __future__ import annotations

from kframe.plugin import ElectionBatch, ElectionKind, Int32, SelectorSpec, Tier, hookimpl


class RackSpread:
    """Of the candidates that may lead, the one whose rack leads the fewest partitions of the batch so far."""

    name = "rack-spread"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector. Each choice depends on those before it, so this is a loop; cost O(candidates)."""
        offsets = batch.candidates.offsets.tolist()
        brokers = batch.candidates.values.tolist()
        racks = batch.broker_rack[batch.candidates.values].tolist()
        may_lead = batch.may_lead.tolist()
        leaders_in = [0] * (len(batch.racks) + 1)  # by rack number; the last, at -1, counts brokers that name none
        for position in range(len(batch)):
            slots = [slot for slot in range(offsets[position], offsets[position + 1]) if may_lead[slot]]
            if slots:
                chosen = min(slots, key=lambda slot: leaders_in[racks[slot]])
                leaders_in[racks[chosen]] += 1
                leader[position] = brokers[chosen]


@hookimpl
def kframe_leader_selectors() -> list[SelectorSpec]:
    """Offer it."""
    return [
        SelectorSpec(
            name=RackSpread.name,
            tier=Tier.BULK,
            factory=RackSpread,
            kinds=(ElectionKind.OFFLINE, ElectionKind.REASSIGN, ElectionKind.CONTROLLED_SHUTDOWN, ElectionKind.INITIAL),
            doc="Spreads the leaders that it elects evenly over the racks.",
        )
    ]
