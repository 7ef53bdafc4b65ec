"""Who is in an ISR and not assigned.

Where a move is overridden, the new assignment is stored first, and whom it drops is taken out of the ISR then. A
controller that loses the role in between leaves such replicas there. Kafka's next one does, too, until the leader
notices; should the leader die first, the ISR is in the end theirs alone, and nobody who is assigned may lead.
"""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core.brokers import alter_partition
from kframe.core.context import Context, Operation
from kframe.core.reassignment import partition_reassignment
from kframe.core.state_machines import replica_state_machine
from kframe.model.columns import Bool, Int32, Ragged
from kframe.model.config import STRICT_MOVES
from kframe.model.events import AlterPartitionRequested
from kframe.model.lists import members


def expel_all(context: Context) -> Operation[None]:
    """At failover, before the dead leave their ISRs: take out of all ISRs whoever is not assigned."""
    cluster, p = context.cluster, context.cluster.partitions
    found = np.empty(len(cluster), np.int32)
    count = kernels.list_unassigned_isr_members(
        p.topic, p.partition_epoch, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr,
        cluster.topics.deleting, found,
    )  # fmt: skip
    yield from _expel(context, found[:count].copy())


def proposed(context: Context, request: AlterPartitionRequested) -> Operation[None]:
    """A leader has proposed ISRs, accepted or not: ``correct`` it."""
    if context.config[STRICT_MOVES]:
        yield from correct(context, *alter_partition.wanted_by_leaders(context, request))


def correct(context: Context, rows: Int32, wanted: Ragged) -> Operation[None]:
    """Their leaders want these lists (broker indexes) as ISRs of ``rows``. One that wants who is not assigned has not
    heard of an assignment that was stored, since a controller lost the role before it told it: it is told under a new
    leader epoch. Once asked; golden traces show that Kafka lets such an ISR be."""
    p = context.cluster.partitions
    if not context.config[STRICT_MOVES] or len(rows) == 0:
        return
    misled = rows[wanted.any(~members(wanted, p.lists("replica", rows)))]
    misled = np.unique(misled[~context.cluster.doomed(misled)]).astype(np.int32)
    yield from _expel(context, misled)
    yield from partition_reassignment.announce(context, misled)


def _expel(context: Context, rows: Int32) -> Operation[None]:
    p = context.cluster.partitions
    isr = p.lists("isr", rows)
    yield from take_out(context, rows, isr, members(isr, p.lists("replica", rows)), "is not assigned")


def take_out(context: Context, rows: Int32, isr: Ragged, sound: Bool, why: str) -> Operation[None]:
    """Take out of the ``isr`` of ``rows`` whoever is not ``sound`` (a mask beside its values); ``why``, for the log.

    They stay where an ISR has nobody else, and where one of them leads and no other member lives.
    """
    p, live = context.cluster.partitions, context.cluster.brokers.live
    others_lead = isr.any(~sound & (isr.values == p.leader[rows][isr.owners]))
    could_lead = isr.any(sound & (live[isr.values] != 0))
    kept = ~isr.any(sound) | (others_lead & ~could_lead)
    context.log_refused("Partition", rows[kept], f"keeps in its ISR who {why}: nobody else could lead")
    leaving = ~sound & ~kept[isr.owners]
    for broker in np.unique(isr.values[leaving]).tolist():
        yield from replica_state_machine.remove_from_isrs(
            context, broker, rows[isr.owners[leaving & (isr.values == broker)]]
        )
