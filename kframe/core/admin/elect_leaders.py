"""Elections that somebody asks for (ElectLeaders; Kafka 3.9 ``processReplicaLeaderElection``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import names_of
from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.partition_state_machine import PartitionTransitions
from kframe.errors import ErrorCode
from kframe.model.asks import DropPreferredElection, ReadPreferredElection
from kframe.model.columns import Int16, Int32
from kframe.model.effects import Enqueue
from kframe.model.events import ElectionRequested, ElectionType, PreferredElectionLeft, TopicPartition
from kframe.model.ids import NO_STATE, PartitionState
from kframe.model.log_entries import Message


@dataclass(frozen=True, slots=True, eq=False)
class ElectionResponse:
    """The answer to ElectLeaders: a code for each known row, and one for each partition that is not known.

    ``rows`` ascend. In an election of all partitions those that needed none are left out.
    """

    rows: Int32
    codes: Int16
    unknown: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
    error: ErrorCode = ErrorCode.NONE


#: Kafka's names of what asks for an election.
ADMIN_CLIENT: Final = "AdminClientTriggered"
ZOOKEEPER: Final = "ZkTriggered"
AUTOMATIC: Final = "AutoTriggered"

#: What a partition is told for which no leader could be elected.
_NOBODY_FOUND = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    context: Context, request: ElectionRequested, trigger: str = ADMIN_CLIENT
) -> Operation[ElectionResponse]:
    """Elect leaders for the partitions named, or for all; ``trigger`` is Kafka's name of what asks for it.

    A partition that never had a leader is answered as one for which none can be elected. Kafka 3.9 fails on it and
    answers nobody (``reliability.md`` X11).
    """
    cluster = context.cluster
    p = cluster.partitions
    rows, unknown = _resolve(context, request)
    codes = np.zeros(len(rows), np.int16)
    deleting = cluster.doomed(rows)
    stateless = p.partition_epoch[rows] == NO_STATE
    settled = ~deleting & ~stateless & _already_valid(context, request.election_type, rows)
    codes[deleting] = ErrorCode.INVALID_TOPIC_EXCEPTION
    codes[stateless & ~deleting] = _NOBODY_FOUND[request.election_type]
    codes[settled] = ErrorCode.ELECTION_NOT_NEEDED
    electable = rows[codes == 0]
    strategy = leader_election.PREFERRED if request.election_type is ElectionType.PREFERRED else leader_election.UNCLEAN
    names = names_of(context.cluster, electable)
    context.log.add(Message.ELECTION_STARTED, type=request.election_type.name, partitions=names, trigger=trigger)
    moves = yield from partition_state_machine.transition(context, electable, PartitionState.ONLINE, strategy)
    if trigger != ADMIN_CLIENT:
        report_preferred(context, moves)
    codes[np.isin(rows, moves.failed)] = _NOBODY_FOUND[request.election_type]
    codes[np.isin(rows, moves.invalid)] = ErrorCode.UNKNOWN_SERVER_ERROR
    if request.partitions is None:
        told = codes != ErrorCode.ELECTION_NOT_NEEDED
        rows, codes = rows[told], codes[told]
    return ElectionResponse(rows, codes, unknown)


def report_preferred(context: Context, moves: PartitionTransitions) -> None:
    """Report what became of an election that no client waits for (Kafka 3.9
    ``removePartitionsFromPreferredReplicaElection``)."""
    context.log.add_partitions(Message.PREFERRED_COMPLETED, context.cluster, moves.elected)
    context.log.add_partitions(Message.PREFERRED_FAILED, context.cluster, moves.failed)


def elect_stored(context: Context) -> Operation[None]:
    """Elect preferred leaders for the partitions that an operator has left in storage; the record goes in any case.

    A partition that is unknown or never had a leader is passed over. Kafka 3.9 fails on the latter at every failover,
    before it takes the record away (``reliability.md`` X10).
    """
    left = yield from ask(ReadPreferredElection())
    if left is None:
        return
    yield from elect_leaders(context, ElectionRequested(ElectionType.PREFERRED, left), ZOOKEEPER)
    yield from ask(DropPreferredElection())
    yield Enqueue(PreferredElectionLeft())


def refused(request: ElectionRequested, error: ErrorCode) -> ElectionResponse:
    """The answer of a controller that is not active: every partition named gets ``error``."""
    unknown = tuple((partition, error) for partition in request.partitions or ())
    return ElectionResponse(np.empty(0, np.int32), np.empty(0, np.int16), unknown, error)


def _resolve(
    context: Context, request: ElectionRequested
) -> tuple[Int32, tuple[tuple[TopicPartition, ErrorCode], ...]]:
    """Rows of the partitions named, ascending and each once, and the names that the controller does not know.

    All partitions are those that brokers know: with a state, and not of a topic under deletion.
    """
    if request.partitions is None:
        return context.announced_rows(), ()
    found = {name: context.cluster.row(*name) for name in request.partitions}
    unknown = tuple((name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name, row in found.items() if row is None)
    return np.array(sorted({row for row in found.values() if row is not None}), np.int32), unknown


def _already_valid(
    context: Context, election_type: ElectionType, rows: Int32
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the present leader already is what the election would be held for."""
    cluster = context.cluster
    p = cluster.partitions
    leader = p.leader[rows]
    if election_type is ElectionType.PREFERRED:
        valid = (leader >= 0) & (leader == p.preferred_of(rows))
    else:
        valid = (leader >= 0) & (np.append(cluster.brokers.live, 0)[leader] != 0)
    return np.asarray(valid, np.bool_)
