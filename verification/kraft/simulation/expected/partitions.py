"""What the controller must answer to proposals of ISRs, assignments of directories, and elections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kframe.errors import ErrorCode
from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import (
    KraftElection,
    RequestRefused,
    directory_assignments,
    isr_proposals,
)
from verification.kraft.simulation.expected.heartbeats import DIRECTORIES_LEVEL, states_after
from verification.kraft.simulation.expected.responses import (
    changes_of,
    difference,
    error_of,
    is_stale,
    state_of_partition,
)
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState, merged
from verification.kraft.simulation.requests import Decided

#: The broker epoch of an ISR member that the leader does not know.
_UNKNOWN_EPOCH: Final = -1


def compare_isr_results(
    node: tuple[int, int],
    proposals: Sequence[isr_proposals.KraftIsrProposal],
    image: Image,
    end: int,
    decided: Decided,
) -> str | None:
    """The response to AlterPartition of a broker id and broker epoch."""
    if is_stale(image, *node):
        return difference(ErrorCode.STALE_BROKER_EPOCH, error_of(decided))
    if isinstance(decided, RequestRefused):
        return difference(ErrorCode.NONE, decided.error)
    changes = changes_of(decided)
    expected = [_isr_result(image, node[0], proposal, changes) for proposal in proposals]
    return difference(expected, decided.response)


def _isr_result(
    image: Image,
    broker_id: int,
    proposal: isr_proposals.KraftIsrProposal,
    changes: Mapping[PartitionKey, records.PartitionChangeRecord],
) -> isr_proposals.IsrResult:
    """The error of a proposal, or the state that its change leaves. One that completes a reassignment may move the
    leadership."""
    key = proposal.topic_id, proposal.partition
    error = _isr_error(image, broker_id, proposal)
    if error is not ErrorCode.NONE:
        return _refused(key, error)
    before = image.partitions[key]
    after = merged(before, changes[key]) if key in changes else before
    if after.leader != broker_id:
        return _refused(key, ErrorCode.NEW_LEADER_ELECTED)
    members = tuple(member for member, _ in proposal.isr if member in after.replicas)
    return isr_proposals.IsrResult(
        *key, ErrorCode.NONE, broker_id, members, after.leader_epoch, after.partition_epoch, proposal.recovery
    )


def _refused(key: PartitionKey, error: ErrorCode) -> isr_proposals.IsrResult:
    return isr_proposals.IsrResult(*key, error, leader=-1, isr=(), leader_epoch=-1, partition_epoch=-1, recovery=0)


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
    if proposal.recovery and (len(members) > 1 or not state.recovery):
        return ErrorCode.INVALID_REQUEST
    eligible = all(
        (broker := image.brokers.get(member)) is not None
        and broker.is_active
        and epoch in (_UNKNOWN_EPOCH, broker.broker_epoch)
        for member, epoch in proposal.isr
    )
    return ErrorCode.NONE if eligible else ErrorCode.INELIGIBLE_REPLICA


def compare_assignments(
    node: tuple[int, int],
    assignments: Sequence[directory_assignments.DirectoryAssignment],
    image: Image,
    end: int,
    decided: Decided,
) -> str | None:
    """The response to AssignReplicasToDirs of a broker id and broker epoch."""
    if image.features["metadata.version"] < DIRECTORIES_LEVEL:
        return difference(ErrorCode.UNSUPPORTED_VERSION, error_of(decided))
    if is_stale(image, *node):
        return difference(ErrorCode.STALE_BROKER_EPOCH, error_of(decided))
    if isinstance(decided, RequestRefused):
        return difference(ErrorCode.NONE, decided.error)
    expected = [_assignment_error(image, node[0], (each.topic_id, each.partition)) for each in assignments]
    answered = [result.error for result in decided.response]
    if answered != expected:
        return difference(expected, answered)
    after = states_after(image, decided)
    for each, error in zip(assignments, expected, strict=True):
        key = each.topic_id, each.partition
        state = after.get(key, image.partitions.get(key))
        if error is not ErrorCode.NONE or state is None or node[0] not in state.replicas:
            continue  # The change may complete a reassignment.
        is_offline = not image.brokers[node[0]].has_online(each.directory)
        if state.directory_of(node[0]) != each.directory or (is_offline and state.has_role(node[0])):
            return f"the assignment of {each} leaves {state}"
    return None


def _assignment_error(image: Image, broker_id: int, key: PartitionKey) -> ErrorCode:
    if key[0] not in image.topics.values():
        return ErrorCode.UNKNOWN_TOPIC_ID
    if key not in image.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if image.has_replica(key, broker_id) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def compare_elections(
    kind: KraftElection,
    partitions: Sequence[tuple[str, int]] | None,
    image: Image,
    end: int,
    decided: Decided,
) -> str | None:
    """The response to ElectLeaders of named partitions, or of all that need an election; and their changes."""
    if isinstance(decided, RequestRefused):
        return f"an election is refused: {decided}"
    results = {(result.topic, result.partition): result.error for result in decided.response}
    named = [(image.names[key[0]], key[1]) for key in image.partitions] if partitions is None else partitions
    expected = {each: _election_error(image, kind, state_of_partition(image, *each)) for each in named}
    if partitions is None:
        expected = {each: error for each, error in expected.items() if error is not ErrorCode.ELECTION_NOT_NEEDED}
    changed = {(image.names[topic_id], number) for topic_id, number in changes_of(decided)}
    # An election may change something else: complete a reassignment, or empty an ELR.
    unavailable = (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    expected |= {each: ErrorCode.NONE for each in changed if expected.get(each) in unavailable}
    if changed != {each for each, error in expected.items() if error is ErrorCode.NONE}:
        return f"elections of {sorted(changed)}, expected {expected}"
    return difference(expected, results)


def compare_timer(kind: KraftElection, limit: int, image: Image, end: int, decided: Decided) -> str | None:
    """A pass of the timer for preferred leaders, or for unclean elections: all that need one, up to the limit."""
    if isinstance(decided, RequestRefused):
        return f"elections are refused: {decided}"
    changed = changes_of(decided).keys()
    if decided.response != (len(changed) >= limit) or len(changed) > limit:
        return f"elections of {len(changed)} partitions with limit {limit}, more to do: {decided.response}"
    needed = {key for key, state in image.partitions.items() if _election_error(image, kind, state) is ErrorCode.NONE}
    if kind is KraftElection.UNCLEAN:
        needed = {key for key in needed if image.is_unclean(key[0])}
    return f"elections of {changed}, expected {needed}" if len(changed) < limit and not needed <= changed else None


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
    able = [member for member in state.isr or state.elr if can_lead(member)]
    # Another broker leads where the leader is lost, or cannot lead any longer.
    is_elected = preferred in able or (bool(able) and state.leader not in able)
    return ErrorCode.NONE if is_elected else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
