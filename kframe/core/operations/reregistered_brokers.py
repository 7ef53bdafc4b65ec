"""Remove from ISRs the brokers that registered again while no controller was active (``CHECK_AT_FAILOVER``).

A broker that fails leaves its ISRs and rejoins them by catching up, since it may come back with an empty disk. If no
controller is active in the meantime, the next one finds the broker registered and in its ISRs. Kafka's controller lets
it lead again. Storage shows the failure: a state written before a member of its ISR registered belongs to an earlier
registration of that broker. The same is true of a topic that was unreadable when the broker registered.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.operations import unassigned_isr_members
from kframe.core.reassignment import partition_reassignment
from kframe.model.arrays import Int32, Int64
from kframe.model.config import CHECK_AT_FAILOVER
from kframe.model.ids import NO_BROKER_EPOCH


def remove_all(context: Context) -> Operation[None]:
    """Remove such members at failover, before dead brokers leave their ISRs."""
    state_zxid, context.cluster.state_zxid = context.cluster.state_zxid, None
    if state_zxid is not None and context.config[CHECK_AT_FAILOVER]:
        rows = context.announced_rows()
        yield from remove(context, rows, state_zxid[rows])


def remove(context: Context, rows: Int32, zxid: Int64 | None) -> Operation[None]:
    """Remove from the ISRs of ``rows`` the members that registered after transaction ``zxid``, which wrote the state.

    They stay in ISRs without another live member. A leader that stays gets a new leader epoch before it is notified. If
    its log is lost, it would write other records at offsets that followers have under the old epoch, and they would not
    truncate their logs. A store that does not report when states were written (None) changes nothing.
    """
    brokers, p = context.cluster.brokers, context.cluster.partitions
    if zxid is None or not context.config[CHECK_AT_FAILOVER]:
        return
    epochs, live = brokers.broker_epoch, brokers.live
    older = zxid < epochs.max(initial=-1)
    rows, zxid = rows[older], zxid[older]
    isr = p.lists("isr", rows)
    known = epochs[isr.values] <= zxid[isr.owners]
    affected = isr.any(~known) & isr.any(known & (live[isr.values] != 0))
    yield from unassigned_isr_members.remove_members(
        context,
        rows[affected],
        isr.take(np.flatnonzero(affected)),
        known[affected[isr.owners]],
        "registered again without a controller",
    )
    leader = p.leader[rows]
    leads, epoch = np.append(brokers.live, 0)[leader] != 0, np.append(epochs, NO_BROKER_EPOCH)[leader]
    yield from partition_reassignment.raise_epochs(context, rows[leads & (epoch > zxid)])
