"""Requested elections (ElectLeaders; Kafka 3.9 ``processReplicaLeaderElection``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import names_of
from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.partition_state_machine import PartitionTransitions
from kframe.errors import ErrorCode
from kframe.model.arrays import Int16, Int32
from kframe.model.effects import Enqueue
from kframe.model.events import ElectionRequested, ElectionType, PreferredElectionStored, TopicPartition
from kframe.model.ids import NO_STATE, PartitionState
from kframe.model.log_entries import Message
from kframe.ports.store_requests import DropPreferredElection, ReadPreferredElection


@dataclass(frozen=True, slots=True, eq=False)
class ElectionResponse:
    """The response to ElectLeaders: a code for each known row, and one for each unknown partition.

    ``rows`` ascend. An election of all partitions omits those that needed none.
    """

    rows: Int32
    codes: Int16
    unknown: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
    error: ErrorCode = ErrorCode.NONE


#: Kafka's names of election triggers.
ADMIN_CLIENT: Final = "AdminClientTriggered"
ZOOKEEPER: Final = "ZkTriggered"
AUTOMATIC: Final = "AutoTriggered"

#: The code of a partition for which no leader could be elected.
_NO_LEADER_ELECTED = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    context: Context, request: ElectionRequested, trigger: str = ADMIN_CLIENT
) -> Operation[ElectionResponse]:
    """Elect leaders of the requested partitions, or of all.

    A partition that never had a leader gets the code of one without an eligible leader. Kafka 3.9 fails on it and does
    not answer.
    """
    cluster = context.cluster
    p = cluster.partitions
    rows, unknown = _resolve(context, request)
    codes = np.zeros(len(rows), np.int16)
    deleting = cluster.is_deleting(rows)
    stateless = p.partition_epoch[rows] == NO_STATE
    not_needed = ~deleting & ~stateless & _already_valid(context, request.election_type, rows)
    codes[deleting] = ErrorCode.INVALID_TOPIC_EXCEPTION
    codes[stateless & ~deleting] = _NO_LEADER_ELECTED[request.election_type]
    codes[not_needed] = ErrorCode.ELECTION_NOT_NEEDED
    electable = rows[codes == 0]
    strategy = leader_election.PREFERRED if request.election_type is ElectionType.PREFERRED else leader_election.UNCLEAN
    names = names_of(context.cluster, electable)
    context.log.add(Message.ELECTION_STARTED, type=request.election_type.name, partitions=names, trigger=trigger)
    result = yield from partition_state_machine.transition(context, electable, PartitionState.ONLINE, strategy)
    if trigger != ADMIN_CLIENT:
        report_preferred(context, result)
    codes[np.isin(rows, result.failed)] = _NO_LEADER_ELECTED[request.election_type]
    codes[np.isin(rows, result.invalid)] = ErrorCode.UNKNOWN_SERVER_ERROR
    if request.partitions is None:
        reported = codes != ErrorCode.ELECTION_NOT_NEEDED
        rows, codes = rows[reported], codes[reported]
    return ElectionResponse(rows, codes, unknown)


def report_preferred(context: Context, result: PartitionTransitions) -> None:
    """Log the result of an election without a client (Kafka 3.9 ``removePartitionsFromPreferredReplicaElection``)."""
    context.log.add_partitions(Message.PREFERRED_COMPLETED, context.cluster, result.elected)
    context.log.add_partitions(Message.PREFERRED_FAILED, context.cluster, result.failed)


def elect_stored(context: Context) -> Operation[None]:
    """Elect preferred leaders of the partitions in ``/admin/preferred_replica_election``, and delete the record.

    A partition that is unknown or never had a leader is skipped. Kafka 3.9 fails on the latter at every failover,
    before it deletes the record.
    """
    stored = yield from ask(ReadPreferredElection())
    if stored is None:
        return
    yield from elect_leaders(context, ElectionRequested(ElectionType.PREFERRED, stored), ZOOKEEPER)
    yield from ask(DropPreferredElection())
    yield Enqueue(PreferredElectionStored())


def refused(request: ElectionRequested, error: ErrorCode) -> ElectionResponse:
    """The refusal of a request: ``error`` for every partition."""
    unknown = tuple((partition, error) for partition in request.partitions or ())
    return ElectionResponse(np.empty(0, np.int32), np.empty(0, np.int16), unknown, error)


def _resolve(
    context: Context, request: ElectionRequested
) -> tuple[Int32, tuple[tuple[TopicPartition, ErrorCode], ...]]:
    """Rows of the requested partitions, ascending and each once, and the unknown names.

    A request for all partitions means those with a state whose topic is not queued for deletion.
    """
    if request.partitions is None:
        return context.announced_rows(), ()
    requested = {name: context.cluster.row(*name) for name in request.partitions}
    unknown = tuple((name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name, row in requested.items() if row is None)
    return np.array(sorted({row for row in requested.values() if row is not None}), np.int32), unknown


def _already_valid(
    context: Context, election_type: ElectionType, rows: Int32
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the present leader makes the election unnecessary."""
    cluster = context.cluster
    p = cluster.partitions
    leader = p.leader[rows]
    if election_type is ElectionType.PREFERRED:
        valid = (leader >= 0) & (leader == p.preferred_of(rows))
    else:
        valid = (leader >= 0) & (np.append(cluster.brokers.live, 0)[leader] != 0)
    return np.asarray(valid, np.bool_)
