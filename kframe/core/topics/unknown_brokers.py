"""Nodes that are no brokers hold no replicas (``kframe.never.replicas``).

Brokers find a controller that is no broker because UpdateMetadata names it as one. When they create a topic they may
therefore assign replicas to it. A node of ``kframe.never.replicas`` that registers is a broker and treated as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.core.context import Context
from kframe.core.event_log import names_of
from kframe.core.topics.replica_assignment import Assignments, current, set_assignments
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.config import NEVER_REPLICAS
from kframe.model.ids import NO_STATE, ReplicaFlag
from kframe.model.log_entries import Message

_REMOVING = np.uint8(ReplicaFlag.REMOVING)


def unknown_brokers(context: Context) -> Int32:
    """Indexes of the nodes that must not hold replicas. Only brokers that an assignment or ISR names are included."""
    brokers = context.cluster.brokers
    indexes = [brokers.find(broker_id) for broker_id in sorted(context.config[NEVER_REPLICAS])]
    return np.array([index for index in indexes if index is not None and not brokers.registered[index]], np.int32)


def is_unknown(context: Context, broker_ids: NDArray[Any]) -> Bool:
    """Whether each broker id belongs to a node that must not hold replicas."""
    never = sorted(context.config[NEVER_REPLICAS] - set(context.cluster.brokers.registered_ids()))
    return np.isin(broker_ids, np.array(never, np.int64))


def assigned_rows(context: Context) -> tuple[Int32, Int32]:
    """Rows assigned to unknown brokers, ascending. The first result has those without a state, the second the others.

    Topics queued for deletion are skipped, and so are replicas that are being removed.
    """
    unknown = unknown_brokers(context)
    if len(unknown) == 0:
        return unknown, unknown
    p, topics = context.cluster.partitions, context.cluster.topics
    rows = context.replica_index.rows_on(context.mask(unknown))
    rows = rows[np.append(topics.deleting, 1)[p.topic[rows]] == 0]
    rows = rows[_contains(current(p, rows).target(), unknown)]
    stateless = p.partition_epoch[rows] == NO_STATE
    return rows[stateless], rows[~stateless]


def replace_in_memory(context: Context, rows: Int32) -> Int32:
    """Replace unknown brokers in the assignments of ``rows``, which have no state; return the rows that changed.

    The caller stores the assignments. A replica is dropped if no broker is available, or if it was being removed. A
    list that would become empty stays.
    """
    p, unknown = context.cluster.partitions, unknown_brokers(context)
    if len(unknown) == 0 or len(rows) == 0:
        return rows[:0]
    rows = rows[_contains(current(p, rows), unknown)]
    repaired = replace(context, rows, unknown)
    assigned = repaired.replicas.counts > 0
    context.log_refused(
        "Partition", rows[~assigned], "stays assigned to a node that is no broker: no broker is available"
    )
    fewer = assigned & (repaired.replicas.counts < p.replica_count[rows])
    _log_replaced(context, rows[assigned], int(np.count_nonzero(fewer)))
    set_assignments(context, rows[assigned], repaired.take(assigned))
    return rows[assigned]


def replacements(context: Context, rows: Int32) -> tuple[Int32, Ragged]:
    """Those of ``rows``, which have a state, that can leave unknown brokers, and their target lists (indexes).

    No replica is dropped. A row with too few brokers waits until more have registered.
    """
    p, unknown = context.cluster.partitions, unknown_brokers(context)
    target, replaced = current(p, rows).target().replicas, replace(context, rows, unknown).target().replicas
    complete = target.counts == replaced.counts
    context.log_refused(
        "Partition", rows[~complete], "stays assigned to a node that is no broker until more brokers register"
    )
    return rows[complete], replaced.take(np.flatnonzero(complete))


def replace(context: Context, rows: Int32, unknown: Int32) -> Assignments:
    """The assignments of ``rows`` with live brokers, round-robin, at the positions of ``unknown`` brokers (indexes).

    A position without a candidate is dropped, and so is an unknown broker that is being removed.
    """
    brokers, p = context.cluster.brokers, context.cluster.partitions
    before = current(p, rows)
    lists, values = before.replicas, before.replicas.values.copy()
    live = np.flatnonzero(brokers.live).astype(np.int32)
    live = live[np.argsort(brokers.ids[live])]
    for broker in unknown.tolist():
        positions = np.flatnonzero((values == broker) & ((before.flags & _REMOVING) == 0))
        owners = lists.owners[positions]
        first, pending = np.arange(len(positions)) + p.topic[rows[owners]], np.arange(len(positions))
        for attempt in range(len(live) if len(positions) else 0):
            candidate = live[(first[pending] + attempt) % len(live)]
            assigned = Ragged(lists.offsets, values).take(owners[pending])
            fits = ~assigned.any(assigned.values == candidate[assigned.owners])
            values[positions[pending[fits]]] = candidate[fits]
            pending = pending[~fits]
    repaired = Assignments(Ragged(lists.offsets, values), before.flags)
    return repaired.keep(~np.isin(values, unknown))


def _contains(assignments: Assignments, brokers: Int32) -> Bool:
    return assignments.replicas.any(np.isin(assignments.replicas.values, brokers))


def _log_replaced(context: Context, rows: Int32, fewer: int) -> None:
    if len(rows):
        names = names_of(context.cluster, rows)
        context.log.add(Message.NON_BROKERS_REPLACED, partitions=names, count=len(rows), fewer=fewer)
