"""What the controller must answer, by a plain model of the metadata: proposals of ISRs, registrations, topics.

Each function returns what is wrong with a response, or with a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import RequestRefused, isr_proposals, registration, topic_requests
from verification.kraft.simulation.image import Image


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
    (Kafka 4.4 ``StripedReplicaPlacer``)."""
    if isinstance(response, RequestRefused):
        return f"a creation is refused: {response}"
    expected = ErrorCode.NONE
    if topic.name in image.topics:
        expected = ErrorCode.TOPIC_ALREADY_EXISTS
    elif topic.replication_factor > len(image.brokers) or all(broker.fenced for broker in image.brokers.values()):
        expected = ErrorCode.INVALID_REPLICATION_FACTOR
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
