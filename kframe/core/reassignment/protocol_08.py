"""Moving partitions the way Kafka 0.8 did (``reassignment.protocol=0.8``): twelve steps, no cancel, no override.

Storage knows only the assigned replicas, OAR + RAR while the move is under way, and what an operator has left there to
be reassigned; that record alone says where a partition is going, so that the next controller finds it.
(Kafka 0.8.2 ``onPartitionReassignment``; ``spec/controller.md`` section 7.8. OAR: original, RAR: reassigned replicas.)
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.reassignment.partition_reassignment import behind, lead_by_target, raise_epochs, stop
from kframe.core.state_machines import replica_state_machine
from kframe.core.topics import topic_metadata
from kframe.core.topics.replica_assignment import Assignments, give
from kframe.core.topics.stored_reassignments import forget_stored, locate, strike
from kframe.model.asks import ReadReassignments, WriteReassignments
from kframe.model.columns import Bool, Int32, Ragged
from kframe.model.ids import ReplicaState
from kframe.model.lists import distinct, members, same_lists
from kframe.model.tables import Targets


def enabled(context: Context) -> bool:
    """Whether this controller moves partitions this way."""
    return bool(context.config["reassignment.protocol"] == "0.8")


def submit(context: Context, rows: Int32, targets: Ragged) -> Operation[Int32]:
    """Begin moves of ``rows`` (unique, ascending) to ``targets`` (broker indexes), as a client asks for; return the
    rows that are refused.

    Refused are moves to the present list, to a replica that is not live, and of partitions that move already. The
    others are left in storage beside what stands there: the next controller has nothing else to find them by.
    """
    refused = _refused(context, rows, targets) | _moving(context, rows)
    chosen, wanted = rows[~refused], targets.take(np.flatnonzero(~refused))
    if len(chosen):
        left = yield from ask(ReadReassignments())
        more = _as_targets(context, chosen, wanted)
        yield from ask(WriteReassignments(more if left is None else left.join(more)))
        yield from _start(context, chosen, wanted)
    return rows[refused]


def submit_stored(context: Context) -> Operation[Int32]:
    """Take up what an operator has left in storage, as a new controller does too; what is refused is taken out.

    A broker that is named twice counts once. What moves already goes on as it began.
    """
    left = yield from ask(ReadReassignments())
    if left is None:
        return np.empty(0, np.int32)
    left = left.take(np.unique(left.last_named()))
    rows, known = locate(context, left)
    order = known[np.argsort(rows[known])]
    wanted = Ragged(left.replicas.offsets, context.cluster.brokers.index_of(left.replicas.values)).take(order)
    chosen, wanted = rows[order], distinct(wanted)
    moving = _moving(context, chosen)
    refused = _refused(context, chosen, wanted) & ~moving
    fresh = ~moving & ~refused
    yield from _start(context, chosen[fresh], wanted.take(np.flatnonzero(fresh)))
    yield from strike(context, left, rows, chosen[refused])
    return chosen[~refused]


def _start(context: Context, rows: Int32, targets: Ragged) -> Operation[None]:
    """Steps 1 to 3, and all others for those of ``rows`` whose RAR is in sync already."""
    yield from _begin(context, rows, targets)
    done = [row for row in rows.tolist() if row in context.term.legacy_reassignments and _in_sync(context, row)]
    yield from complete(context, np.array(done, np.int32))


def complete(context: Context, rows: Int32) -> Operation[None]:
    """Steps 5 to 12, for those of ``rows`` that move and whose RAR is in sync."""
    cluster = context.cluster
    p, brokers = cluster.partitions, cluster.brokers
    ready = [
        row for row in np.unique(rows).tolist() if row in context.term.legacy_reassignments and _in_sync(context, row)
    ]
    if not ready:
        return
    chosen = np.array(ready, np.int32)
    reached = Ragged.of([brokers.index_of(context.term.legacy_reassignments[row]).tolist() for row in ready])
    target = members(p.lists("replica", chosen), reached)
    arrived = replica_state_machine.replicas_of(context, chosen).where(target)
    yield from replica_state_machine.transition(context, arrived, ReplicaState.ONLINE)
    departed = give(context, chosen, Assignments(reached, np.zeros(len(reached.values), np.uint8)))
    yield from lead_by_target(context, chosen)
    yield from stop(context, behind(context, chosen, departed))
    yield from topic_metadata.store(context, chosen)
    yield from forget_stored(context, chosen, only_if_reached=False)
    for row in ready:
        del context.term.legacy_reassignments[row]
    p.reassigning[chosen] = 0
    yield from context.announce(context.registered(), chosen)


def _begin(context: Context, rows: Int32, targets: Ragged) -> Operation[None]:
    """Steps 1 to 3: the assigned replicas grow to OAR + RAR, the old ones learn of it, the new ones start."""
    if len(rows) == 0:
        return
    p = context.cluster.partitions
    before = p.lists("replica", rows)
    added = ~members(targets, before)
    grown = [
        [*before[i].tolist(), *targets[i][added[targets.offsets[i] : targets.offsets[i + 1]]].tolist()]
        for i in range(len(rows))
    ]
    lists = Ragged.of(grown)
    wanted = Assignments(lists, np.zeros(len(lists.values), np.uint8))
    unstored = yield from topic_metadata.store(context, rows, wanted)
    taken = np.flatnonzero(~np.isin(rows, unstored))
    rows, targets, before, wanted = rows[taken], targets.take(taken), before.take(taken), wanted.take(taken)
    if len(rows) == 0:
        return
    give(context, rows, wanted)
    for i, row in enumerate(rows.tolist()):
        context.term.legacy_reassignments[row] = tuple(context.cluster.brokers.ids_of(targets[i]))
    p.reassigning[rows] = 1
    yield from raise_epochs(context, rows, before)
    replicas = replica_state_machine.replicas_of(context, rows)
    fresh = p.replica_state[replicas.slots(p)] == ReplicaState.NON_EXISTENT
    yield from replica_state_machine.transition(context, replicas.where(fresh), ReplicaState.NEW)


def _refused(context: Context, rows: Int32, targets: Ragged) -> Bool:
    p, live = context.cluster.partitions, context.cluster.brokers.live
    same = same_lists(targets, p.lists("replica", rows))
    dead = targets.any(live[targets.values] == 0)
    refused: Bool = same | dead | (targets.counts == 0)
    return refused


def _moving(context: Context, rows: Int32) -> Bool:
    return np.array([row in context.term.legacy_reassignments for row in rows.tolist()], np.bool_)


def _in_sync(context: Context, row: int) -> bool:
    cluster = context.cluster
    return set(context.term.legacy_reassignments[row]) <= set(cluster.brokers.ids_of(cluster.partitions.isr_of(row)))


def _as_targets(context: Context, rows: Int32, targets: Ragged) -> Targets:
    cluster = context.cluster
    p = cluster.partitions
    wanted = [
        ((cluster.topics.names[p.topic[row]], int(p.partition[row])), cluster.brokers.ids_of(targets[i]))
        for i, row in enumerate(rows.tolist())
    ]
    return Targets.of(wanted)
