"""Whose logs nobody vouches for, and which elections are held back on that account.

The last replica in sync may come back with less than it had: with an empty disk, or without what it had not flushed. No
controller can tell (KIP-966, which Kafka has without ZooKeeper only), and Kafka's elects it. With ``HOLD_LAST`` such a
partition stays without a leader until an operator holds an unclean election of it, or its topic allows them anyway.

A broker whose controlled shutdown was granted flushes its logs before it goes. Any other broker that registers in this
time in office is not vouched for, nor is one that an earlier controller left a partition to without electing it.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context
from kframe.model.columns import Int32, UInt8
from kframe.model.config import HOLD_LAST
from kframe.model.ids import NO_LEADER


def take_over(context: Context) -> None:
    """At failover, before anything is elected or leaves an ISR: whoever lives, is alone in an ISR and does not lead was
    away when nobody else was left."""
    if not context.config[HOLD_LAST]:
        return
    cluster, p = context.cluster, context.cluster.partitions
    rows = context.announced_rows()
    rows = rows[(p.leader[rows] == NO_LEADER) & (p.isr_count[rows] == 1)]
    last = p.isr[p.slot_start[rows]]
    context.term.unverified_logs.update(last[cluster.brokers.live[last] != 0].tolist())


def shutdown_answered(context: Context, broker: int, granted: bool) -> None:
    """Remember whether the last controlled shutdown request of a broker (index) was granted: it leads nothing more that
    has other replicas. A broker that is refused asks again; if it stops or crashes instead, Kafka calls that an unclean
    shutdown (Kafka 3.9 ``KafkaServer.controlledShutdown``)."""
    if granted:
        context.term.granted_shutdowns.add(broker)
    else:
        context.term.granted_shutdowns.discard(broker)


def departed(context: Context, brokers: Int32) -> None:
    """These brokers (indexes) are about to be unregistered. Those whose controlled shutdown was granted go in order."""
    leaving = set(brokers.tolist())
    granted = leaving & context.term.granted_shutdowns
    context.term.granted_shutdowns -= leaving
    if context.config[HOLD_LAST]:
        context.term.clean_shutdowns -= leaving
        context.term.clean_shutdowns |= granted


def arrived(context: Context, brokers: Int32) -> None:
    """These brokers (indexes) have registered."""
    if context.config[HOLD_LAST]:
        context.term.unverified_logs.difference_update(brokers.tolist())
        context.term.unverified_logs.update(set(brokers.tolist()) - context.term.clean_shutdowns)


def without_doubtful(context: Context, rows: Int32, leader: Int32, unclean_permitted: UInt8) -> Int32:
    """The ``leader`` (k,) chosen for each of ``rows`` (k,), NO_LEADER where the election is held back.

    That is where nobody leads, the one chosen is alone in the ISR and not vouched for, and ``unclean_permitted`` (k,)
    is 0.
    """
    p, live = context.cluster.partitions, np.append(context.cluster.brokers.live, 0)
    alone = (p.isr_count[rows] == 1) & (live[p.leader[rows]] == 0) & (unclean_permitted == 0)
    last = np.full(len(rows), NO_LEADER, np.int32)
    last[alone] = p.isr[p.slot_start[rows[alone]]]
    held = (leader == last) & np.isin(leader, list(context.term.unverified_logs))
    context.log_refused(
        "Partition", rows[held],
        "held back: the last replica in sync came back from a crash, perhaps; an unclean election lets it lead",
    )  # fmt: skip
    return np.where(held, NO_LEADER, leader).astype(np.int32)
