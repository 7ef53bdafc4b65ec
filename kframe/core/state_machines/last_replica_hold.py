"""Hold back the election of a last in-sync replica that may have lost records (``HOLD_LAST``).

The last in-sync replica may come back with an empty disk or without records that it had not flushed. No ZooKeeper-mode
controller can tell (KIP-966), and Kafka's elects it. With ``HOLD_LAST`` its partition stays without a leader until an
operator holds an unclean election, or the topic allows unclean elections.

A broker flushes its logs after a granted controlled shutdown. Any other registration in this term leaves them
unverified. So does a partition that an earlier controller left without a leader although its last replica is online.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context
from kframe.model.arrays import Int32, UInt8
from kframe.model.config import HOLD_LAST
from kframe.model.ids import NO_LEADER


def on_states_loaded(context: Context, rows: Int32) -> None:
    """The states of ``rows``, of an earlier controller, were just read: at failover, or when a topic became readable.

    Before elections, mark online brokers that are the whole ISR of a partition without a leader.
    """
    if not context.config[HOLD_LAST]:
        return
    cluster, p = context.cluster, context.cluster.partitions
    rows = rows[(p.leader[rows] == NO_LEADER) & (p.isr_count[rows] == 1)]
    last = p.isr[p.slot_start[rows]]
    context.term.unverified_logs.update(last[cluster.brokers.live[last] != 0].tolist())


def on_shutdown_response(context: Context, broker: int, granted: bool) -> None:
    """Record whether the last controlled shutdown request of a broker (index) was granted.

    A broker whose request is refused retries. If it stops or crashes instead, Kafka calls that an unclean shutdown
    (Kafka 3.9 ``KafkaServer.controlledShutdown``).
    """
    if granted:
        context.term.granted_shutdowns.add(broker)
    else:
        context.term.granted_shutdowns.discard(broker)


def on_broker_failure(context: Context, brokers: Int32) -> None:
    """These brokers (indexes) are about to be unregistered. This is clean if their controlled shutdown was granted."""
    failed = set(brokers.tolist())
    granted = failed & context.term.granted_shutdowns
    context.term.granted_shutdowns -= failed
    if context.config[HOLD_LAST]:
        context.term.clean_shutdowns -= failed
        context.term.clean_shutdowns |= granted


def on_broker_startup(context: Context, brokers: Int32) -> None:
    """These brokers (indexes) have registered. They are verified after a controlled shutdown, else not."""
    if context.config[HOLD_LAST]:
        context.term.unverified_logs.difference_update(brokers.tolist())
        context.term.unverified_logs.update(set(brokers.tolist()) - context.term.clean_shutdowns)


def hold_unverified(context: Context, rows: Int32, leader: Int32, unclean_permitted: UInt8) -> Int32:
    """The ``leader`` (k,) chosen for each of ``rows`` (k,), or NO_LEADER where the election is held back.

    An election is held back if no live broker leads, the chosen replica is the whole ISR and unverified, and
    ``unclean_permitted`` (k,) is 0.
    """
    p, live = context.cluster.partitions, np.append(context.cluster.brokers.live, 0)
    is_whole_isr = (p.isr_count[rows] == 1) & (live[p.leader[rows]] == 0) & (unclean_permitted == 0)
    last = np.full(len(rows), NO_LEADER, np.int32)
    last[is_whole_isr] = p.isr[p.slot_start[rows[is_whole_isr]]]
    postponed = (leader == last) & np.isin(leader, list(context.term.unverified_logs))
    context.log_refused(
        "Partition",
        rows[postponed],
        "stays offline: its last in-sync replica may have lost records in a crash; an unclean election lets it lead",
    )
    return np.where(postponed, NO_LEADER, leader).astype(np.int32)
