"""The partition state machine, in bulk (Kafka 3.9 ``ZkPartitionStateMachine``).

A partition that is New comes Online with its first leader, any other by an election. All other transitions change only
what the controller remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation
from kframe.core.state_machines import leader_election
from kframe.core.state_machines.leader_election import Strategy
from kframe.core.state_machines.transitions import PARTITION_TRANSITIONS, bits, source_states
from kframe.model.arrays import Int32
from kframe.model.changes import StateChange
from kframe.model.ids import PartitionState
from kframe.model.log_entries import Message


def _no_rows() -> Int32:
    return np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionTransitions:
    """The rows of a bulk transition, by outcome. ``elected`` excludes ``initialised`` rows, as Kafka's result does."""

    initialised: Int32 = field(default_factory=_no_rows)
    elected: Int32 = field(default_factory=_no_rows)
    failed: Int32 = field(default_factory=_no_rows)
    invalid: Int32 = field(default_factory=_no_rows)


def startup(context: Context) -> Operation[None]:
    """Derive the state of every partition from its leader. Then bring online the partitions that can be led."""
    p, live = context.cluster.partitions, context.cluster.brokers.live
    context.log.add(Message.INITIALIZING_PARTITIONS)
    kernels.initialize_partition_states(
        p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.replica, p.replica_status, live, p.status
    )
    context.log.add(Message.ONLINE_PARTITIONS)
    context.gauges.touch_everything()
    yield from trigger_online(context)


def trigger_online(
    context: Context, topic: int | None = None, following: StateChange | None = None
) -> Operation[PartitionTransitions]:
    """Bring every New or Offline partition online, or those of one topic, except topics queued for deletion.

    ``following`` is a change that the next write will contain for any result of the election (``Context.write``).
    """
    p, deleting = context.cluster.partitions, context.cluster.topics.deleting
    rows, states = np.empty(len(p), np.int32), bits([PartitionState.NEW, PartitionState.OFFLINE])
    rows = rows[: kernels.list_in_states(p.topic, p.status, states, deleting, rows)].copy()
    if topic is not None:
        rows = rows[p.topic[rows] == topic]
    return (yield from transition(context, rows, PartitionState.ONLINE, leader_election.OFFLINE, following))


def transition(
    context: Context,
    rows: Int32,
    target: PartitionState,
    strategy: Strategy = leader_election.OFFLINE,
    following: StateChange | None = None,
) -> Operation[PartitionTransitions]:
    """Change ``rows`` (unique, ascending) to ``target``; ``strategy`` elects the leaders of those that had one.

    Rows for which the transition is illegal are logged, returned as ``invalid`` and left as they are. One batch of
    requests is sent at the end.
    """
    if len(rows) == 0:
        return PartitionTransitions()
    p = context.cluster.partitions
    legal = np.empty(len(rows), np.uint8)
    if kernels.check_transitions(rows, p.status, source_states(PARTITION_TRANSITIONS, target), legal) == len(rows):
        invalid = _no_rows()
    else:
        rows, invalid = rows[legal != 0], rows[legal == 0]
        context.log_failed(invalid, target, "this is no legal transition")
    if target is PartitionState.ONLINE:
        return (yield from _bring_online(context, rows, strategy, invalid, following))
    if target is PartitionState.NEW:
        context.log.add_partitions(Message.PARTITION_NEW, context.cluster, rows)
    p.set_states(rows, target)
    context.gauges.touch_leaders(rows)
    return PartitionTransitions(invalid=invalid)


def _bring_online(
    context: Context, rows: Int32, strategy: Strategy, invalid: Int32, following: StateChange | None
) -> Operation[PartitionTransitions]:
    """Initialise New partitions, elect leaders of the others, and send the requests of both in one batch."""
    p = context.cluster.partitions
    batch = context.batch()
    is_new = p.states_of(rows) == PartitionState.NEW
    new, others = (rows, rows[:0]) if is_new.all() else (rows[is_new], rows[~is_new])
    initialised = yield from leader_election.initialise(context, new, batch)
    context.log.add_partitions(Message.PARTITION_INITIALIZED, context.cluster, initialised)
    p.set_states(initialised, PartitionState.ONLINE)
    elected, failed = yield from leader_election.elect(context, others, strategy, batch, following)
    context.log.add_partitions(Message.LEADER_ELECTED, context.cluster, elected)
    p.set_states(elected, PartitionState.ONLINE)
    context.gauges.touch_leaders(initialised)
    context.gauges.touch_leaders(elected)
    yield from context.send(batch)
    return PartitionTransitions(initialised, elected, failed, invalid)
