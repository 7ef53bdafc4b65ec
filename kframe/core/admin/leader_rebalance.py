"""Leaders move back to their preferred replicas by themselves (``auto.leader.rebalance.enable``).

Kafka 3.9 ``checkAndTriggerAutoLeaderRebalance``; ``spec/controller.md`` section 11.4.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.core.admin.elect_leaders import AUTOMATIC, report_preferred
from kframe.core.context import Context, Operation
from kframe.core.event_log import names_of
from kframe.core.selectors.builtin import elect_builtin
from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.scala_hash_order import scala_hash_order
from kframe.model.columns import Int32
from kframe.model.effects import SetTimer
from kframe.model.events import RebalanceLeaders
from kframe.model.ids import NO_STATE, ElectionKind, PartitionState
from kframe.model.log_entries import Message

TIMER: Final = "auto-leader-rebalance"
#: The first look comes this long after a failover.
FIRST_CHECK_MS: Final = 5_000.0


def start(context: Context) -> Operation[None]:
    """Set the timer for the first look, if rebalancing is on."""
    if context.config["auto.leader.rebalance.enable"]:
        yield SetTimer(TIMER, FIRST_CHECK_MS, RebalanceLeaders())


def rebalance(context: Context) -> Operation[None]:
    """Broker by broker: if it leads too few of the partitions that prefer it, elect it where it is online and in sync.

    All partitions led elsewhere decide whether there are too many (strictly more than the limit), also those that
    cannot move. The next look is set in any case.
    """
    cluster = context.cluster
    context.log.add(Message.AUTO_REBALANCE)
    p = cluster.partitions
    limit = context.config["leader.imbalance.per.broker.percentage"] / 100.0
    kept = np.flatnonzero((p.replica_count > 0) & np.append(cluster.topics.deleting == 0, False)[p.topic])
    preferred = p.preferred_of(kept)
    elsewhere = (p.partition_epoch[kept] != NO_STATE) & (p.leader[kept] != preferred)
    brokers = len(cluster.brokers)
    share = np.bincount(preferred, elsewhere, brokers) / np.maximum(np.bincount(preferred, minlength=brokers), 1)
    crowded = cluster.brokers.ids[np.flatnonzero(share > limit)].tolist()
    for broker_id in scala_hash_order(crowded):
        mine = elsewhere & (preferred == cluster.brokers.find(broker_id))
        rows = _able_to_move(context, kept[mine].astype(np.int32))
        names = names_of(cluster, rows)
        context.log.add(Message.ELECTION_STARTED, type="PREFERRED", partitions=names, trigger=AUTOMATIC)
        moves = yield from partition_state_machine.transition(
            context, rows, PartitionState.ONLINE, leader_election.PREFERRED
        )
        report_preferred(context, moves)
    interval_ms = context.config["leader.imbalance.check.interval.seconds"] * 1000.0
    yield SetTimer(TIMER, interval_ms, RebalanceLeaders())


def _able_to_move(context: Context, rows: Int32) -> Int32:
    """Those whose preferred replica is online and in the ISR: an election of the others would be futile."""
    leader = elect_builtin(context.cluster, ElectionKind.PREFERRED, rows, np.zeros(len(rows), np.uint8))
    return rows[leader >= 0]
