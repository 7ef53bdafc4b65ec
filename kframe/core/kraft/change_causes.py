"""The event that caused a change of a partition.

A PartitionChange record does not name its event. Some events have a record of their own (a broker was fenced), others
have none (a preferred election). An event explains a change if the rules write that change for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.decision import DecisionPart, records_of
from kframe.core.kraft.heartbeats import Heartbeats
from kframe.core.kraft.membership import add_broker, remove_broker, remove_unclean_broker
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.request_causes import request_changes
from kframe.model.columns import Int32
from kframe.model.kraft.metadata import ClusterMetadata
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

_Decide = Callable[[KraftContext, int, Int32], list[DecisionPart]]


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
    metadata: ClusterMetadata, change: PartitionChangeRecord, events: Sequence[MetadataRecord]
) -> list[ChangeCause]:
    """The events that explain ``change``: those with a record in ``events`` first. Empty if none does.

    ``metadata`` is the state before the change; the rules only read it.
    """
    topic = metadata.topics.index_by_id[change.topic_id]
    row = metadata.topics.row_of(topic, change.partition_id)
    assert row is not None
    expected = _comparable(change)
    causes: list[ChangeCause] = []
    for assumes_unclean in (False, True):
        context = _context(metadata, unclean=assumes_unclean)
        for cause, changes in _decisions(context, row, change, events):
            known = any((cause.event, cause.broker) == (other.event, other.broker) for other in causes)
            if not known and any(_comparable(record) == expected for record in changes):
                causes.append(ChangeCause(cause.event, cause.broker, cause.event_index, assumes_unclean))
    return sorted(causes, key=lambda cause: (cause.assumes_unclean, cause.event_index is None))


def _context(metadata: ClusterMetadata, *, unclean: bool) -> KraftContext:
    settings = KraftSettings(unclean_leader_election_enable=unclean)
    return KraftContext(metadata, Heartbeats.activated(0, metadata.brokers.registrations, 0), settings, JavaRandom(0))


def _comparable(record: PartitionChangeRecord) -> tuple[object, ...]:
    elr = record.eligible_leader_replicas
    return (
        record.isr, record.leader, record.replicas, record.removing_replicas, record.adding_replicas,
        record.leader_recovery_state, record.directories, None if elr is None else frozenset(elr),
        record.last_known_elr,
    )  # fmt: skip


def _decisions(
    context: KraftContext, row: int, change: PartitionChangeRecord, events: Sequence[MetadataRecord]
) -> Iterator[tuple[ChangeCause, list[PartitionChangeRecord]]]:
    """The records of each possible event."""
    rows = np.array([row], np.int32)
    for index, event in enumerate(events):
        for text, broker_id, decide in _broker_events(event):
            yield ChangeCause(text, broker_id, index), _changes(decide(context, broker_id, rows))
    for text, parts in request_changes(context, row, change):
        yield ChangeCause(text), _changes(parts)


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
            if event.log_dirs:
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


def _changes(parts: Iterable[DecisionPart]) -> list[PartitionChangeRecord]:
    return [record for record, _ in records_of(parts) if isinstance(record, PartitionChangeRecord)]
