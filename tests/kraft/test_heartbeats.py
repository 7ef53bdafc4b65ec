"""Heartbeats that change nothing: their reply without an event is that of the event."""

from __future__ import annotations

from itertools import product
from uuid import UUID

import pytest

from kframe.core.kraft.brokers.broker_events import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    handle_heartbeat,
    note_contact,
    steady_reply,
)
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import FeatureLevelRecord, RegisterBrokerRecord

EPOCH, OFFSET = 5, 7
DIRECTORIES = UUID(int=901), UUID(int=902)
BOTH_LEVELS = MetadataLevel.DIRECTORIES - 1, MetadataLevel.DIRECTORIES, MetadataLevel.CORDONED_DIRECTORIES


def cluster(level: int, *, fenced: bool = False, leaving: bool = False, cordoned: bool = False) -> KraftContext:
    """A cluster of one registered broker, whose session began at 0."""
    context = KraftContext(ClusterMetadata(), Heartbeats(10), KraftSettings(), JavaRandom(0))
    context.replay(FeatureLevelRecord(name="metadata.version", feature_level=level), 0)
    broker = RegisterBrokerRecord(
        broker_id=1,
        is_migrating_zk_broker=False,
        incarnation_id=UUID(int=1),
        broker_epoch=EPOCH,
        end_points=(),
        features=(),
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=leaving,
        log_dirs=DIRECTORIES,
        cordoned_log_dirs=DIRECTORIES[:1] if cordoned else None,
    )
    context.replay(broker, OFFSET)
    context.heartbeats.contact_ns[1, EPOCH] = 0
    return context


def reply_of(context: KraftContext, heartbeat: BrokerHeartbeat) -> BrokerHeartbeatReply | None:
    registration = context.metadata.brokers.registrations.get(heartbeat.broker_id)
    return steady_reply(registration, heartbeat, context.level)


@pytest.mark.parametrize("level", BOTH_LEVELS)
def test_steady_reply_is_that_of_an_event_without_records(level: int) -> None:
    steady = 0
    flags = [False, True]
    for fenced, leaving, cordoned, want_fence, want_shut_down in product(flags, repeat=5):
        for broker_id, epoch, offset in ((1, EPOCH, OFFSET - 1), (1, EPOCH, OFFSET), (1, EPOCH - 1, 9), (2, EPOCH, 9)):
            for offline, named in product([(), DIRECTORIES[1:], (UUID(int=903),)], [None, (), DIRECTORIES[:1]]):
                context = cluster(level, fenced=fenced, leaving=leaving, cordoned=cordoned)
                beat = BrokerHeartbeat(broker_id, epoch, offset, want_fence, want_shut_down, offline, named)
                reply = reply_of(context, beat)
                try:
                    decided = handle_heartbeat(context, beat)
                except RequestRefused:
                    assert reply is None
                    continue
                is_steady = not decided.parts and not fenced and not leaving
                assert (reply is not None) == is_steady
                if reply is not None:
                    assert reply == decided.response
                    steady += 1
    assert steady


@pytest.mark.parametrize(
    ("epoch", "steady", "contact", "offset"),
    [
        (EPOCH, True, {(1, EPOCH): 8}, OFFSET + 2),
        # An event handles it, which notes the offset.
        (EPOCH, False, {(1, EPOCH): 8}, -1),
        # Of a process that has registered again since.
        (EPOCH - 1, True, {(1, EPOCH): 0}, -1),
    ],
)
def test_noted_contact(epoch: int, steady: bool, contact: dict[tuple[int, int], int], offset: int) -> None:
    context = cluster(MetadataLevel.CORDONED_DIRECTORIES)
    note_contact(context, (1, epoch), 8, OFFSET + 2 if steady else None)
    assert context.heartbeats.contact_ns == contact
    assert context.heartbeats.brokers[1].metadata_offset == offset


def test_contact_of_an_ended_session_does_not_begin_it_again() -> None:
    context = cluster(MetadataLevel.CORDONED_DIRECTORIES)
    context.heartbeats.contact_ns.clear()
    note_contact(context, (1, EPOCH), 8, OFFSET)
    assert context.heartbeats.contact_ns == {}
