"""Automatic preferred leader election (``auto.leader.rebalance.enable``).

Kafka 3.9 ``checkAndTriggerAutoLeaderRebalance``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.event_log import names_of
from kframe.core.operations.elect_leaders import AUTOMATIC, report_preferred
from kframe.core.selectors.builtin import elect_builtin
from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.scala_hash_order import scala_hash_order
from kframe.model.arrays import Int32
from kframe.model.effects import SetTimer
from kframe.model.events import RebalanceLeaders
from kframe.model.ids import NO_STATE, ElectionKind, PartitionState
from kframe.model.log_entries import Message

TIMER: Final = "auto-leader-rebalance"
#: Delay of the first check after a failover.
FIRST_CHECK_MS: Final = 5_000.0


def start(context: Context) -> Operation[None]:
    """Set the timer of the first check, if rebalancing is enabled."""
    if context.config["auto.leader.rebalance.enable"]:
        yield SetTimer(TIMER, FIRST_CHECK_MS, RebalanceLeaders())


def rebalance(context: Context) -> Operation[None]:
    """Elect each broker whose imbalance exceeds the limit as leader where it is preferred, online and in sync.

    The imbalance counts all partitions with another leader than the preferred replica, even those that no election can
    change. The next check is set in any case.
    """
    cluster = context.cluster
    context.log.add(Message.AUTO_REBALANCE)
    p = cluster.partitions
    limit = context.config["leader.imbalance.per.broker.percentage"] / 100.0
    candidates = np.flatnonzero((p.replica_count > 0) & np.append(cluster.topics.deleting == 0, False)[p.topic])
    preferred = p.preferred_of(candidates)
    elsewhere = (p.partition_epoch[candidates] != NO_STATE) & (p.leader[candidates] != preferred)
    brokers = len(cluster.brokers)
    share = np.bincount(preferred, elsewhere, brokers) / np.maximum(np.bincount(preferred, minlength=brokers), 1)
    imbalanced = cluster.brokers.ids[np.flatnonzero(share > limit)].tolist()
    for broker_id in scala_hash_order(imbalanced):
        affected = elsewhere & (preferred == cluster.brokers.find(broker_id))
        rows = _electable(context, candidates[affected].astype(np.int32))
        names = names_of(cluster, rows)
        context.log.add(Message.ELECTION_STARTED, type="PREFERRED", partitions=names, trigger=AUTOMATIC)
        result = yield from partition_state_machine.transition(
            context, rows, PartitionState.ONLINE, leader_election.PREFERRED
        )
        report_preferred(context, result)
    interval_ms = context.config["leader.imbalance.check.interval.seconds"] * 1000.0
    yield SetTimer(TIMER, interval_ms, RebalanceLeaders())


def _electable(context: Context, rows: Int32) -> Int32:
    """The rows whose preferred replica is online and in the ISR."""
    leader = elect_builtin(context.cluster, ElectionKind.PREFERRED, rows, np.zeros(len(rows), np.uint8))
    return rows[leader >= 0]
