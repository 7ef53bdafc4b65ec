"""What the controller must answer, by a plain model of the metadata: proposals of ISRs, registrations, topics.

Each function returns what is wrong with a response, or with a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import (
    KraftElection,
    RequestRefused,
    directory_assignments,
    isr_proposals,
    reassignment,
    registration,
    topic_requests,
)
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState


def _is_stale(image: Image, broker_id: int, broker_epoch: int) -> bool:
    """Whether a request is of a process that is not registered."""
    broker = image.brokers.get(broker_id)
    return broker is None or broker.broker_epoch != broker_epoch


def _difference(expected: object, answered: object) -> str | None:
    return None if answered == expected else f"the controller answers {answered}, expected {expected}"


def _error_of(response: Any) -> ErrorCode:
    """The error of a refusal, NONE of another response."""
    return response.error if isinstance(response, RequestRefused) else ErrorCode.NONE


def compare_isr_results(
    node: tuple[int, int],
    proposals: Sequence[isr_proposals.KraftIsrProposal],
    image: Image,
    end: int,
    response: Any,
) -> str | None:
    """The response to AlterPartition of a broker id and broker epoch."""
    if _is_stale(image, *node):
        return _difference(ErrorCode.STALE_BROKER_EPOCH, _error_of(response))
    if isinstance(response, RequestRefused):
        return _difference(ErrorCode.NONE, response.error)
    expected = [_isr_error(image, node[0], proposal) for proposal in proposals]
    # A proposal that completes a reassignment may move the leadership.
    answered = [ErrorCode.NONE if result.error is ErrorCode.NEW_LEADER_ELECTED else result.error for result in response]
    return _difference(expected, answered)


def compare_assignments(
    node: tuple[int, int],
    assignments: Sequence[directory_assignments.DirectoryAssignment],
    image: Image,
    end: int,
    response: Any,
) -> str | None:
    """The response to AssignReplicasToDirs of a broker id and broker epoch."""
    if _is_stale(image, *node):
        return _difference(ErrorCode.STALE_BROKER_EPOCH, _error_of(response))
    if isinstance(response, RequestRefused):
        return _difference(ErrorCode.NONE, response.error)
    expected = [_assignment_error(image, node[0], (each.topic_id, each.partition)) for each in assignments]
    return _difference(expected, [result.error for result in response])


def _assignment_error(image: Image, broker_id: int, key: PartitionKey) -> ErrorCode:
    if key[0] not in image.topics.values():
        return ErrorCode.UNKNOWN_TOPIC_ID
    if key not in image.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if image.has_replica(key, broker_id) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def compare_registration(
    request: registration.BrokerRegistrationRequest, image: Image, end: int, response: Any
) -> str | None:
    """The response to BrokerRegistration: the epoch of the process, or the end of the log; or a valid session."""
    broker = image.brokers.get(request.broker_id)
    is_same = broker is not None and broker.incarnation_id == request.incarnation_id
    if isinstance(response, RequestRefused):
        if response.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION and broker is not None and not is_same:
            return None
        return f"a registration is refused: {response}"
    return _difference(broker.broker_epoch if broker is not None and is_same else end, response)


def compare_creation(topic: topic_requests.CreatableTopic, image: Image, end: int, response: Any) -> str | None:
    """The response to the creation of a topic by numbers. Fenced brokers get replicas too, beside one that is not
    (Kafka 4.4 ``StripedReplicaPlacer``). A partition whose brokers all stop is refused."""
    if isinstance(response, RequestRefused):
        return f"a creation is refused: {response}"
    expected = ErrorCode.NONE
    if topic.name in image.topics:
        expected = ErrorCode.TOPIC_ALREADY_EXISTS
    elif topic.replication_factor > len(image.brokers) or all(broker.fenced for broker in image.brokers.values()):
        expected = ErrorCode.INVALID_REPLICATION_FACTOR
    is_stopping = any(broker.in_shutdown and not broker.fenced for broker in image.brokers.values())
    if is_stopping and expected is ErrorCode.NONE and response[0].error is ErrorCode.INVALID_REPLICATION_FACTOR:
        return None
    return _difference(expected, response[0].error)


def compare_deletion(name: str, image: Image, end: int, response: Any) -> str | None:
    """The response to the deletion of a topic."""
    if isinstance(response, RequestRefused):
        return f"a deletion is refused: {response}"
    expected = ErrorCode.NONE if name in image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _difference(expected, response[0].error)


def compare_unregistration(broker_id: int, image: Image, end: int, response: Any) -> str | None:
    """The response to UnregisterBroker."""
    expected = ErrorCode.NONE if broker_id in image.brokers else ErrorCode.BROKER_ID_NOT_REGISTERED
    return _difference(expected, _error_of(response))


def compare_reassignment(
    requested: reassignment.RequestedReassignment, image: Image, end: int, response: Any
) -> str | None:
    """The response to AlterPartitionReassignments of a partition. A cancellation may need an unclean election."""
    if isinstance(response, RequestRefused):
        return f"a reassignment is refused: {response}"
    (result,) = response
    state = _state(image, requested.topic, requested.partition)
    expected = ErrorCode.NONE
    if state is None:
        expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif requested.replicas is None:
        origin = set(state.replicas) - set(state.adding)
        is_unclean = not origin & set(state.isr)
        if not (state.adding or state.removing):
            expected = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elif not origin or (is_unclean and not image.is_unclean(image.topics[requested.topic])):
            expected = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    elif not set(requested.replicas) <= image.brokers.keys():
        expected = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return _difference(expected, result.error)


def compare_reassignments(image: Image, end: int, response: Any) -> str | None:
    """The response to ListPartitionReassignments of all partitions."""
    if isinstance(response, RequestRefused):
        return f"a list is refused: {response}"
    expected = {
        (image.names[topic_id], number): (state.replicas, state.adding, state.removing)
        for (topic_id, number), state in image.partitions.items()
        if state.adding or state.removing
    }
    return _difference(
        expected, {(each.topic, each.partition): (each.replicas, each.adding, each.removing) for each in response}
    )


def compare_elections(
    kind: KraftElection, partitions: Sequence[tuple[str, int]], image: Image, end: int, response: Any
) -> str | None:
    """The response to ElectLeaders of named partitions."""
    if isinstance(response, RequestRefused):
        return f"an election is refused: {response}"
    expected = [_election_error(image, kind, _state(image, *partition)) for partition in partitions]
    return _difference(expected, [result.error for result in response])


def _election_error(image: Image, kind: KraftElection, state: PartitionState | None) -> ErrorCode:
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def can_lead(member: int) -> bool:
        broker = image.brokers.get(member)
        return broker is not None and broker.is_active and broker.has_online(state.directory_of(member))

    if kind is KraftElection.UNCLEAN:
        if state.leader >= 0:
            return ErrorCode.ELECTION_NOT_NEEDED
        return ErrorCode.NONE if any(map(can_lead, state.replicas)) else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    preferred = state.replicas[0]
    if state.leader == preferred:
        return ErrorCode.ELECTION_NOT_NEEDED
    able = [member for member in {*state.isr, *state.elr} if can_lead(member)]
    # Another broker leads where the leader is lost, or cannot lead any longer.
    is_elected = preferred in able or (bool(able) and state.leader not in able)
    return ErrorCode.NONE if is_elected else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def _state(image: Image, topic: str, partition: int) -> PartitionState | None:
    topic_id = image.topics.get(topic)
    return None if topic_id is None else image.partitions.get((topic_id, partition))


def _isr_error(image: Image, broker_id: int, proposal: isr_proposals.KraftIsrProposal) -> ErrorCode:
    """The error of a proposal of a registered broker (Kafka 4.4 ``validateAlterPartitionData``)."""
    state = image.partitions.get((proposal.topic_id, proposal.partition))
    if proposal.topic_id not in image.topics.values():
        return ErrorCode.UNKNOWN_TOPIC_ID
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if proposal.leader_epoch > state.leader_epoch or proposal.partition_epoch > state.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member for member, _ in proposal.isr]
    if len(set(members)) < len(members) or not set(members) <= set(state.replicas) or broker_id not in members:
        return ErrorCode.INVALID_REQUEST
    eligible = all(
        (broker := image.brokers.get(member)) is not None
        and broker.is_active
        and epoch in (isr_proposals.UNKNOWN_EPOCH, broker.broker_epoch)
        for member, epoch in proposal.isr
    )
    return ErrorCode.NONE if eligible else ErrorCode.INELIGIBLE_REPLICA
