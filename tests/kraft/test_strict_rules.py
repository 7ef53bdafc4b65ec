"""Where the rules depart from Kafka's with ``KraftSettings.strict``, because Kafka's lose records."""

from __future__ import annotations

from uuid import UUID

import pytest

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication.reassignment import RequestedReassignment, reassign_partitions
from kframe.model.kraft import records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.views import partition_record

TOPIC = UUID(int=500)
BROKERS = (1, 2, 3)


def cluster(*, strict: bool) -> KraftContext:
    """Two partitions on three brokers, all in sync, with ``min.insync.replicas`` 3 and ELR."""
    settings = KraftSettings(min_insync_replicas=3, strict=strict)
    context = KraftContext(ClusterMetadata(), Heartbeats(10**12), settings, JavaRandom(0))
    levels = {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    content: list[records.MetadataRecord] = [
        records.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()
    ]
    content += [
        records.RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=UUID(int=100 + broker),
            broker_epoch=broker,
            end_points=(),
            features=(),
            rack=None,
            fenced=False,
            log_dirs=(UUID(int=1000 + broker),),
        )
        for broker in BROKERS
    ]
    content.append(records.TopicRecord(name="t", topic_id=TOPIC))
    content += [
        records.PartitionRecord(
            partition_id=partition,
            topic_id=TOPIC,
            replicas=BROKERS,
            isr=BROKERS,
            removing_replicas=(),
            adding_replicas=(),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(UUID(int=1000 + broker) for broker in BROKERS),
        )
        for partition in range(2)
    ]
    for offset, record in enumerate(content):
        context.replay(record, offset)
    return context


def applied(context: KraftContext, result: ControllerResult[object]) -> records.PartitionRecord:
    """Partition t-1 after a decision."""
    for part in result.parts:
        context.apply(part, 0)
    return partition_record(context.metadata, 1)


@pytest.mark.parametrize(("strict", "elr", "leader"), [(False, (1, 2), 2), (True, (), -1)])
def test_replica_that_left_is_not_elected_without_records(strict: bool, elr: tuple[int, ...], leader: int) -> None:
    """The partition shrinks to broker 3, which is below the minimum; broker 2 is added again, and broker 3 fails."""
    context = cluster(strict=strict)
    shrunk = applied(context, reassign_partitions(context, [RequestedReassignment("t", 1, (3,))]))
    assert (shrunk.isr, shrunk.eligible_leader_replicas) == ((3,), elr)
    added = applied(context, reassign_partitions(context, [RequestedReassignment("t", 1, (2, 3))]))
    assert (added.replicas, added.adding_replicas) == ((2, 3), (2,))
    failed = broker_events.fence_broker(context, context.metadata.brokers.registrations[3])
    assert applied(context, failed).leader == leader
