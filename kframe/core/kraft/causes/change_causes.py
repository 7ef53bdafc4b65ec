"""The event that caused a change of a partition.

A PartitionChange record does not name its event. Some events have a record of their own (a broker was fenced), others
have none (a preferred election). An event explains a change if the rules write that change for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.causes.request_causes import replicas_in_offline_directories, request_changes
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.isr_changes import add_broker, remove_broker, remove_unclean_broker
from kframe.model.arrays import Int32
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    FencingChange,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kframe.model.kraft.releases import ReleaseRule, has_rule, known_release, release_of_level, releases_by_rules
from kframe.model.kraft.topics import MIN_INSYNC_REPLICAS

#: Names of events.
FENCED: Final = "broker fenced"
UNFENCED: Final = "broker unfenced"
CONTROLLED_SHUTDOWN: Final = "controlled shutdown"
DIRECTORY_FAILED: Final = "directory failed"
UNREGISTERED: Final = "broker unregistered"
RESTARTED: Final = "broker restarted after a clean stop"
RESTARTED_UNCLEANLY: Final = "broker restarted after an unclean stop"

#: Events that take the broker out of ISRs and leaderships.
LEAVING: Final = frozenset(
    {FENCED, CONTROLLED_SHUTDOWN, DIRECTORY_FAILED, UNREGISTERED, RESTARTED, RESTARTED_UNCLEANLY}
)

#: The rules by release that decide changes of partitions.
CHANGE_RULES: Final = (
    ReleaseRule.ALL_TARGETS_IN_SYNC,
    ReleaseRule.LAST_KNOWN_ACTIVE,
    ReleaseRule.LAST_KNOWN_WITH_LEADER,
    ReleaseRule.RETAINED_OUT_OF_SYNC,
    ReleaseRule.ASSIGNMENT_KEEPS_ELR,
)
#: A controller without configurations of its own.
_NO_NODE: Final = -1

_Decide = Callable[[KraftContext, int, Int32], PartitionChangeBatch]


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """An event for which the rules write a change. ``event_index`` is that of its record, None if it leaves none.

    ``assumes_unclean``: the event explains the change only if a static setting enables unclean elections.
    """

    event: str
    broker: int | None = None
    event_index: int | None = None
    assumes_unclean: bool = False


def explain_change(
    states: Sequence[ClusterMetadata], change: PartitionChangeRecord, events: Sequence[MetadataRecord]
) -> list[ChangeCause]:
    """The events that explain ``change``: those with a record in ``events`` first. Empty if none does.

    ``states`` are possible states before the request of the change, the likely one first: Kafka decides all changes of
    a request from the state before it. The rules only read them.
    """
    row = states[0].topics.row_by_id(change.topic_id, change.partition_id)
    offline = [] if row is None else replicas_in_offline_directories(states[0], row)
    for metadata in states:
        for settings in _possible_settings(metadata):
            causes = _explain_change(metadata, settings, change, events, offline)
            if causes:
                return sorted(causes, key=lambda cause: (cause.assumes_unclean, cause.event_index is None))
    return []


def _possible_settings(metadata: ClusterMetadata) -> Iterator[KraftSettings]:
    """Settings of the controllers, the likely ones first.

    A node without configurations of its own, then each with a ``min.insync.replicas``, then other releases. A log does
    not show which node was active, and the release is that of now.
    """
    registrations = metadata.brokers.registrations.values()
    release = known_release(metadata.controllers, registrations, _NO_NODE)
    release = release or release_of_level(metadata.metadata_version)
    yield KraftSettings(node_id=_NO_NODE, release=release)
    for (kind, name), configs in metadata.configs.items():
        if kind == ResourceType.BROKER and name.isdecimal() and MIN_INSYNC_REPLICAS in configs:
            yield KraftSettings(node_id=int(name), release=release)
    for other in releases_by_rules(CHANGE_RULES):
        if any(has_rule(other, rule) != has_rule(release, rule) for rule in CHANGE_RULES):
            yield KraftSettings(node_id=_NO_NODE, release=other)


def _explain_change(
    metadata: ClusterMetadata,
    static: KraftSettings,
    change: PartitionChangeRecord,
    events: Sequence[MetadataRecord],
    offline: Sequence[int],
) -> list[ChangeCause]:
    row = metadata.topics.row_by_id(change.topic_id, change.partition_id)
    causes: list[ChangeCause] = []
    if row is None:
        return causes
    expected = _comparable(change)
    for assumes_unclean in (False, True):
        settings = replace(static, unclean_leader_election_enable=assumes_unclean)
        heartbeats = Heartbeats.activated(0, metadata.brokers.registrations, 0)
        context = KraftContext(metadata, heartbeats, settings, JavaRandom(0))
        for cause, changes in _decisions(context, row, change, events, offline):
            known = any((cause.event, cause.broker) == (other.event, other.broker) for other in causes)
            if not known and any(_comparable(record) == expected for record in changes):
                causes.append(ChangeCause(cause.event, cause.broker, cause.event_index, assumes_unclean))
    return causes


def _comparable(record: PartitionChangeRecord) -> tuple[object, ...]:
    elr = record.eligible_leader_replicas
    return (
        record.isr,
        record.leader,
        record.replicas,
        record.removing_replicas,
        record.adding_replicas,
        record.leader_recovery_state,
        record.directories,
        None if elr is None else frozenset(elr),
        record.last_known_elr,
    )


def _decisions(
    context: KraftContext,
    row: int,
    change: PartitionChangeRecord,
    events: Sequence[MetadataRecord],
    offline: Sequence[int],
) -> Iterator[tuple[ChangeCause, list[PartitionChangeRecord]]]:
    """The records of each possible event."""
    rows = np.array([row], np.int32)
    for index, event in enumerate(events):
        for text, broker_id, decide in _broker_events(event):
            yield ChangeCause(text, broker_id, index), _changes(decide(context, broker_id, rows).records())
    for text, result in request_changes(context, row, change, offline):
        yield ChangeCause(text), _changes(result.records)


def _broker_events(event: MetadataRecord) -> Iterator[tuple[str, int, _Decide]]:
    match event:
        case BrokerRegistrationChangeRecord():
            broker_id = event.broker_id
            if event.fenced == FencingChange.FENCE:
                yield FENCED, broker_id, remove_broker
            if event.fenced == FencingChange.UNFENCE:
                yield UNFENCED, broker_id, add_broker
            if event.in_controlled_shutdown == 1:
                yield CONTROLLED_SHUTDOWN, broker_id, remove_broker
            if event.log_dirs or is_empty(event):
                yield DIRECTORY_FAILED, broker_id, remove_broker
        case FenceBrokerRecord():
            yield FENCED, event.id, remove_broker
        case UnfenceBrokerRecord():
            yield UNFENCED, event.id, add_broker
        case UnregisterBrokerRecord():
            yield UNREGISTERED, event.broker_id, remove_broker
        case RegisterBrokerRecord():
            yield RESTARTED_UNCLEANLY, event.broker_id, remove_unclean_broker
            yield RESTARTED, event.broker_id, remove_broker


def is_empty(event: BrokerRegistrationChangeRecord) -> bool:
    """Whether a change sets nothing: the last directory of the broker failed, as an empty list is not written."""
    return not (event.fenced or event.in_controlled_shutdown or event.log_dirs or event.cordoned_log_dirs is not None)


def _changes(records: Iterable[RecordAndVersion]) -> list[PartitionChangeRecord]:
    return [record for record, _ in records if isinstance(record, PartitionChangeRecord)]
