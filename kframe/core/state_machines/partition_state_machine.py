"""The partition state machine: bulk moves between NonExistent, New, Online and Offline.

Kafka 3.9 ``ZkPartitionStateMachine``. A partition comes Online by the initial-leader rule if it is New, else by an
election; New, Offline and NonExistent change only what the controller remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation
from kframe.core.state_machines import leader_election
from kframe.core.state_machines.leader_election import Strategy
from kframe.core.state_machines.transitions import PARTITION_MOVES, bits, leaves
from kframe.model.changes import StateChange
from kframe.model.columns import Int32
from kframe.model.ids import PartitionState
from kframe.model.log_entries import Message
from kframe.model.requests import Occasion


def _nobody() -> Int32:
    return np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionMoves:
    """What became of a bulk move. Rows initialised from New stand in ``initialised``, not in ``elected``, since Kafka
    does not report them either; whoever asks "did any leader change?" looks at ``elected``."""

    initialised: Int32 = field(default_factory=_nobody)
    elected: Int32 = field(default_factory=_nobody)
    failed: Int32 = field(default_factory=_nobody)
    invalid: Int32 = field(default_factory=_nobody)


def startup(context: Context) -> Operation[None]:
    """Derive every partition's state from its leadership, then bring online what can be."""
    p, live = context.cluster.partitions, context.cluster.brokers.live
    context.log.add(Message.INITIALIZING_PARTITIONS)
    kernels.initialize_partition_states(
        p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.replica, p.replica_flags, live, p.state
    )
    context.log.add(Message.ONLINE_PARTITIONS)
    context.gauges.touch_everything()
    yield from trigger_online(context)


def trigger_online(
    context: Context, topic: int | None = None, following: StateChange | None = None
) -> Operation[PartitionMoves]:
    """Try to bring every New or Offline partition online, or those of one topic; topics queued for deletion are left
    out."""
    rows = _waiting(context)
    if topic is not None:
        rows = rows[context.cluster.partitions.topic[rows] == topic]
    moves = yield from move(context, rows, PartitionState.ONLINE, leader_election.OFFLINE, following)
    return moves


def _waiting(context: Context) -> Int32:
    """Rows that are New or Offline, ascending; topics queued for deletion are left out."""
    p, deleting = context.cluster.partitions, context.cluster.topics.deleting
    found, wanted = np.empty(len(p), np.int32), bits([PartitionState.NEW, PartitionState.OFFLINE])
    return found[: kernels.list_in_states(p.topic, p.state, wanted, deleting, found)].copy()


def move(
    context: Context,
    rows: Int32,
    target: PartitionState,
    strategy: Strategy = leader_election.OFFLINE,
    following: StateChange | None = None,
) -> Operation[PartitionMoves]:
    """Move ``rows`` (unique, ascending) to ``target``; ``strategy`` elects those that come online and had a leader.

    Illegal moves change nothing, are logged and returned as ``invalid``; the others go on. One batch is sent last.
    """
    if len(rows) == 0:
        return PartitionMoves()
    state = context.cluster.partitions.state
    legal = np.empty(len(rows), np.uint8)
    if kernels.check_transitions(rows, state, leaves(PARTITION_MOVES, target), legal) == len(rows):
        invalid = _nobody()
    else:
        rows, invalid = rows[legal != 0], rows[legal == 0]
        context.log_failed(invalid, target, "this is no legal transition")
    if target is PartitionState.ONLINE:
        moves = yield from _bring_online(context, rows, strategy, invalid, following)
        return moves
    if target is PartitionState.NEW:
        context.log.add_partitions(Message.PARTITION_NEW, context.cluster, rows)
    state[rows] = target
    context.gauges.touch(rows)
    return PartitionMoves(invalid=invalid)


def _bring_online(
    context: Context, rows: Int32, strategy: Strategy, invalid: Int32, following: StateChange | None
) -> Operation[PartitionMoves]:
    """New partitions first, then elections; requests of both go out in one batch."""
    state = context.cluster.partitions.state
    batch = context.batch(Occasion.ELECTION)
    fresh = state[rows] == PartitionState.NEW
    initialised = yield from leader_election.initialise(context, rows[fresh], batch)
    context.log.add_partitions(Message.PARTITION_INITIALIZED, context.cluster, initialised)
    state[initialised] = PartitionState.ONLINE
    elected, failed = yield from leader_election.elect(context, rows[~fresh], strategy, batch, following)
    context.log.add_partitions(Message.LEADER_ELECTED, context.cluster, elected)
    state[elected] = PartitionState.ONLINE
    context.gauges.touch(initialised)
    context.gauges.touch(elected)
    yield from context.send(batch)
    return PartitionMoves(initialised, elected, failed, invalid)
