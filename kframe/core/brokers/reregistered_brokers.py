"""Who came back while no controller looked.

A broker that goes leaves the ISRs that it is in, and gets back by catching up: it may come back with less than it had,
in the worst case with an empty disk. If nobody is controller while it is away, the next one finds it registered, and in
its ISRs as before; Kafka's lets it lead what it led. But storage knows better: a state that was written before a member
of its ISR was registered speaks of an earlier registration of that broker. Under ``CHECK_AT_FAILOVER`` such ones leave
their ISRs where another one lives, as they would have if somebody had looked.
"""

from __future__ import annotations

import numpy as np

from kframe.core.brokers import unassigned_isr_members
from kframe.core.context import Context, Operation
from kframe.model.config import CHECK_AT_FAILOVER


def expel_all(context: Context) -> Operation[None]:
    """At failover, before the dead leave their ISRs: take out of all ISRs who was registered since they were written.

    A store that does not say when states were written (``ClusterState.written_at``) has nobody taken out.
    """
    cluster, p = context.cluster, context.cluster.partitions
    written_at, cluster.written_at = cluster.written_at, None
    if written_at is None or not context.config[CHECK_AT_FAILOVER]:
        return
    epochs, live, rows = cluster.brokers.broker_epoch, cluster.brokers.live, context.announced_rows()
    rows = rows[written_at[rows] < epochs.max(initial=-1)]
    isr = p.lists("isr", rows)
    known = epochs[isr.values] <= written_at[rows][isr.owners]
    concerned = isr.any(~known) & isr.any(known & (live[isr.values] != 0))
    yield from unassigned_isr_members.take_out(
        context, rows[concerned], isr.take(np.flatnonzero(concerned)), known[concerned[isr.owners]], "was away unseen"
    )
