"""Remove from ISRs the brokers that registered again while no controller was active (``CHECK_AT_FAILOVER``).

A broker that fails leaves its ISRs and rejoins them by catching up, since it may come back with an empty disk. If no
controller is active in the meantime, the next one finds the broker registered and in its ISRs. Kafka's controller lets
it lead again. Storage shows the failure: a state written before a member of its ISR registered
belongs to an earlier registration of that broker.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.operations import unassigned_isr_members
from kframe.model.config import CHECK_AT_FAILOVER


def remove_all(context: Context) -> Operation[None]:
    """At failover, before dead brokers leave their ISRs: remove members that registered after the ISR was written.

    They stay in ISRs without another live member. A store that does not report when states were written
    (``ClusterState.state_zxid``) removes none.
    """
    cluster, p = context.cluster, context.cluster.partitions
    state_zxid, cluster.state_zxid = cluster.state_zxid, None
    if state_zxid is None or not context.config[CHECK_AT_FAILOVER]:
        return
    epochs, live, rows = cluster.brokers.broker_epoch, cluster.brokers.live, context.announced_rows()
    rows = rows[state_zxid[rows] < epochs.max(initial=-1)]
    isr = p.lists("isr", rows)
    known = epochs[isr.values] <= state_zxid[rows][isr.owners]
    affected = isr.any(~known) & isr.any(known & (live[isr.values] != 0))
    yield from unassigned_isr_members.remove_members(
        context,
        rows[affected],
        isr.take(np.flatnonzero(affected)),
        known[affected[isr.owners]],
        "registered again without a controller",
    )
