"""Nodes that are no brokers hold no replicas (``spec/wire.md`` section 17).

A controller that is no broker is told to brokers as one of them, for they find it by that. When they create a topic by
themselves they may therefore give it replicas. ``kframe.never.replicas`` has the ids of such nodes. One of them that is
registered all the same is a broker, and treated as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.core.context import Context
from kframe.core.event_log import names_of
from kframe.core.topics.replica_assignment import Assignments, current, give
from kframe.model.columns import Bool, Int32, Ragged
from kframe.model.config import NEVER_REPLICAS
from kframe.model.ids import NO_STATE, ReplicaFlag
from kframe.model.log_entries import Message

_REMOVING = np.uint8(ReplicaFlag.REMOVING)


def outsiders(context: Context) -> Int32:
    """Indexes of the nodes that must not hold replicas, as far as anything names them."""
    brokers = context.cluster.brokers
    indexes = [brokers.find(broker_id) for broker_id in sorted(context.config[NEVER_REPLICAS])]
    return np.array([one for one in indexes if one is not None and not brokers.registered[one]], np.int32)


def is_outsider(context: Context, broker_ids: NDArray[Any]) -> Bool:
    """Whether each broker id is one of theirs, named by anything before or not."""
    never = sorted(context.config[NEVER_REPLICAS] - set(context.cluster.brokers.registered_ids()))
    return np.isin(broker_ids, np.array(never, np.int64))


def held(context: Context) -> tuple[Int32, Int32]:
    """Rows that outsiders are assigned to, ascending: those without a state, and the others. What an outsider is about
    to leave, and topics queued for deletion, are left out."""
    strangers = outsiders(context)
    if len(strangers) == 0:
        return strangers, strangers
    p, topics = context.cluster.partitions, context.cluster.topics
    rows = context.replica_index.rows_on(context.mask(strangers))
    rows = rows[np.append(topics.deleting, 1)[p.topic[rows]] == 0]
    rows = rows[_holds(current(p, rows), strangers)]
    bare = p.partition_epoch[rows] == NO_STATE
    return rows[bare], rows[~bare]


def expel(context: Context, rows: Int32) -> Int32:
    """Put brokers where outsiders stand in the assignments of ``rows``; return the rows that changed, not stored yet.

    Rows have no state yet, so that no data has to move. Where no broker is left for it a replica is dropped, and so is
    one that was about to leave; a list that would become empty stays.
    """
    p, strangers = context.cluster.partitions, outsiders(context)
    if len(strangers) == 0 or len(rows) == 0:
        return rows[:0]
    rows = rows[_names(current(p, rows), strangers)]
    repaired = replace(context, rows, strangers)
    left = repaired.replicas.counts > 0
    context.log_refused("Partition", rows[~left], "stays assigned to what is no broker: no broker is left for it")
    fewer = left & (repaired.replicas.counts < p.replica_count[rows])
    _log_repaired(context, rows[left], int(np.count_nonzero(fewer)))
    give(context, rows[left], repaired.take(left))
    return rows[left]


def relieved(context: Context, rows: Int32) -> tuple[Int32, Ragged]:
    """Those of ``rows``, which have a state, that can be moved off outsiders, and the lists (indexes) to reach.

    Nothing is dropped here: a row for which brokers are wanting waits until some have registered.
    """
    p, strangers = context.cluster.partitions, outsiders(context)
    target, reached = current(p, rows).target().replicas, replace(context, rows, strangers).target().replicas
    whole = target.counts == reached.counts
    context.log_refused("Partition", rows[~whole], "stays assigned to what is no broker, until more brokers are there")
    return rows[whole], reached.take(np.flatnonzero(whole))


def replace(context: Context, rows: Int32, strangers: Int32) -> Assignments:
    """The assignments of ``rows`` with live brokers that each list lacks, taking turns, in the places of ``strangers``.

    What finds nobody is left out, and so is a stranger that is being removed.
    """
    brokers, p = context.cluster.brokers, context.cluster.partitions
    now = current(p, rows)
    lists, values = now.replicas, now.replicas.values.copy()
    free = np.flatnonzero(brokers.live).astype(np.int32)
    free = free[np.argsort(brokers.ids[free])]
    for stranger in strangers.tolist():
        places = np.flatnonzero((values == stranger) & ((now.flags & _REMOVING) == 0))
        owners = lists.owners[places]
        turn, open_ = np.arange(len(places)) + p.topic[rows[owners]], np.arange(len(places))
        for tried in range(len(free) if len(places) else 0):
            candidate = free[(turn[open_] + tried) % len(free)]
            taken = Ragged(lists.offsets, values).take(owners[open_])
            fits = ~taken.any(taken.values == candidate[taken.owners])
            values[places[open_[fits]]] = candidate[fits]
            open_ = open_[~fits]
    repaired = Assignments(Ragged(lists.offsets, values), now.flags)
    return repaired.keep(~np.isin(values, strangers))


def _names(assignments: Assignments, strangers: Int32) -> Bool:
    return assignments.replicas.any(np.isin(assignments.replicas.values, strangers))


def _holds(assignments: Assignments, strangers: Int32) -> Bool:
    return _names(assignments.target(), strangers)


def _log_repaired(context: Context, rows: Int32, fewer: int) -> None:
    if len(rows):
        names = names_of(context.cluster, rows)
        context.log.add(Message.NON_BROKERS_REPLACED, partitions=names, count=len(rows), fewer=fewer)
