"""The changes of a partition by events without a record of their own: requests, timers and repeated heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.replication.alter_partition import UNKNOWN_EPOCH, KraftIsrProposal, alter_partitions
from kframe.core.kraft.replication.isr_changes import remove_broker
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.core.kraft.replication.reassignment import RequestedReassignment, reassign_partitions
from kframe.model.arrays import Ragged
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.directory_ids import LOST
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import NO_RECOVERY_CHANGE, PartitionChangeRecord, PartitionRecord
from kframe.model.kraft.views import partition_record

PREFERRED: Final = "preferred election"
UNCLEAN: Final = "unclean election"
REASSIGNED: Final = "reassignment started"
CANCELLED: Final = "reassignment cancelled"
ALTERED: Final = "AlterPartition of the leader"
ASSIGNED: Final = "directories assigned"
REPEATED_SHUTDOWN: Final = "controlled shutdown at another controller"


def request_changes(
    context: KraftContext, row: int, change: PartitionChangeRecord, offline: Iterable[int]
) -> Iterator[tuple[str, ControllerResult[object]]]:
    """The text of each possible event of ``change``, and what the rules write for it to the partition in ``row``.

    ``offline`` are the replicas that may be assigned to an offline directory by the request. A rule that refuses the
    event writes nothing.
    """
    yield from _elections(context, row)
    for isr in _possible_isrs(context, row, change):
        yield ALTERED, alter_partition_changes(context, [isr_proposal(context, row, change, isr)])
    yield from _reassignments(context, row, change)
    yield from _directory_changes(context, row, change, offline)
    for broker_id, registration in _isr_members(context, row):
        if registration.in_controlled_shutdown:
            changes = remove_broker(context, broker_id, np.array([row], np.int32))
            yield REPEATED_SHUTDOWN, ControllerResult([changes], None)


def isr_proposal(
    context: KraftContext, row: int, change: PartitionChangeRecord, isr: Iterable[int] | None = None
) -> KraftIsrProposal:
    """The AlterPartition proposal of the leader in ``row`` for the ISR of ``change``, or for ``isr``."""
    state = partition_record(context.metadata, row)
    recovery = change.leader_recovery_state
    if isr is None:
        isr = state.isr if change.isr is None else change.isr
    return KraftIsrProposal(
        topic_id=change.topic_id,
        partition=change.partition_id,
        isr=tuple((member, UNKNOWN_EPOCH) for member in isr),
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        recovery=state.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
    )


def alter_partition_changes(context: KraftContext, proposals: list[KraftIsrProposal]) -> ControllerResult[object]:
    """The changes by an AlterPartition request from the leader of the first partition."""
    topics, brokers = context.metadata.topics, context.metadata.brokers
    row = topics.row_by_id(proposals[0].topic_id, proposals[0].partition)
    leader_id = brokers.ids_of([int(context.metadata.partitions.leader[row])])[0]
    registration = brokers.registrations.get(leader_id)
    if registration is None:
        return ControllerResult((), None)
    return alter_partitions(context, leader_id, registration.broker_epoch, proposals)


def _elections(context: KraftContext, row: int) -> Iterator[tuple[str, ControllerResult[object]]]:
    p = context.metadata.partitions
    leader = int(p.leader[row])
    if leader != p.list_of("replica", row)[0]:
        yield PREFERRED, _election_changes(context, row, KraftElection.PREFERRED)
    if leader == NO_LEADER:
        yield UNCLEAN, _election_changes(context, row, KraftElection.UNCLEAN)


def _election_changes(context: KraftContext, row: int, kind: KraftElection) -> ControllerResult[object]:
    targets = TargetReplicas(rows=np.array([row], np.int32), kinds=np.array([kind], np.uint8))
    return ControllerResult([plan_changes(context, targets)], None)


def _possible_isrs(context: KraftContext, row: int, change: PartitionChangeRecord) -> Iterator[tuple[int, ...]]:
    """The ISRs that the leader may have proposed.

    A completed reassignment takes removing replicas out of them. An unclean election replaces them.
    """
    state = partition_record(context.metadata, row)
    isr = state.isr if change.isr is None else change.isr
    removing = state.removing_replicas
    possible = [isr]
    if state.leader not in isr:
        possible += [(state.leader,), state.isr]
    if removing:
        possible.append((*isr, *(member for member in removing if member in state.isr and member not in isr)))
        possible.append((*state.isr, *(member for member in state.adding_replicas if member not in state.isr)))
    yield from (members for members in possible if state.leader in members)


def _reassignments(
    context: KraftContext, row: int, change: PartitionChangeRecord
) -> Iterator[tuple[str, ControllerResult[object]]]:
    state = partition_record(context.metadata, row)
    if state.adding_replicas or state.removing_replicas:
        yield CANCELLED, _reassignment_changes(context, row, None)
    if change.replicas is not None or change.removing_replicas or change.adding_replicas:
        target = state.replicas if change.replicas is None else change.replicas
        for removing in dict.fromkeys((change.removing_replicas or (), state.removing_replicas)):
            replicas = tuple(replica for replica in target if replica not in removing)
            yield REASSIGNED, _reassignment_changes(context, row, replicas)


def _reassignment_changes(
    context: KraftContext, row: int, replicas: tuple[int, ...] | None
) -> ControllerResult[object]:
    p = context.metadata.partitions
    name = context.metadata.topics.names[int(p.topic[row])]
    request = RequestedReassignment(name, int(p.partition[row]), replicas)
    try:
        return reassign_partitions(context, [request])
    except RequestRefused:
        return ControllerResult((), None)


def _directory_changes(
    context: KraftContext, row: int, change: PartitionChangeRecord, offline: Iterable[int]
) -> Iterator[tuple[str, ControllerResult[object]]]:
    """Assigned directories, and the change that takes a replica in an offline directory out of the ISR."""
    metadata, rows = context.metadata, np.array([row], np.int32)
    state = partition_record(metadata, row)
    for assigned in _possible_directories(state, change):
        kinds = np.array([KraftElection.ONLINE], np.uint8)
        directories = Ragged.of([metadata.directories.indexes_of(assigned)])
        targets = TargetReplicas(rows=rows, kinds=kinds, directories=directories)
        yield ASSIGNED, ControllerResult([plan_changes(context, targets)], None)
    for replica in offline:
        yield ASSIGNED, ControllerResult([remove_broker(context, replica, rows)], None)


def replicas_in_offline_directories(metadata: ClusterMetadata, row: int) -> list[int]:
    """The replicas on registered brokers in directories that are offline."""
    state, registrations = partition_record(metadata, row), metadata.brokers.registrations
    return [
        replica
        for replica, directory in zip(state.replicas, state.directories, strict=True)
        if replica in registrations and not registrations[replica].has_online_directory(directory)
    ]


def _possible_directories(state: PartitionRecord, change: PartitionChangeRecord) -> Iterator[list[UUID]]:
    """The directories of all replicas that brokers may have assigned.

    A change that completes a reassignment leaves out those of the removed replicas.
    """
    replicas = state.replicas if change.replicas is None else change.replicas
    written = dict(zip(replicas, change.directories or (), strict=False))
    if set(replicas) <= set(state.replicas):
        stored = list(zip(state.replicas, state.directories, strict=True))
        yield [written.get(replica, directory) for replica, directory in stored]
        if len(replicas) < len(stored):
            yield [written.get(replica, directory) if replica in replicas else LOST for replica, directory in stored]


def _isr_members(context: KraftContext, row: int) -> list[tuple[int, BrokerRegistration]]:
    brokers = context.metadata.brokers
    members = brokers.ids_of(context.metadata.partitions.list_of("isr", row))
    return [(member, brokers.registrations[member]) for member in members if member in brokers.registrations]
