"""The last-known leader of a partition whose ISR becomes empty without a leader, by release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.model.kraft import records
from kframe.model.kraft.releases import LATEST_RELEASE, Release
from kframe.model.kraft.views import partition_record
from tests.kraft.test_strict_rules import TOPIC, cluster


@pytest.mark.parametrize("by_columns", [True, False])
@pytest.mark.parametrize(("release", "written"), [(Release(4, 0), (-1,)), (LATEST_RELEASE, None)])
def test_no_broker_is_known_without_a_leader(
    release: Release, written: tuple[int, ...] | None, by_columns: bool
) -> None:
    context = cluster(strict=False)
    context.settings = replace(context.settings, release=release)
    context.replay(records.PartitionChangeRecord(partition_id=1, topic_id=TOPIC, isr=(2,), leader=-1), 9)
    decision = broker_events.fence_broker(context, context.metadata.brokers.registrations[2])
    batch = decision.parts[0]
    assert isinstance(batch, PartitionChangeBatch)
    changes = [each.record for each in batch.records()]
    (change,) = [each for each in changes if isinstance(each, records.PartitionChangeRecord) and each.partition_id == 1]
    assert (change.isr, change.last_known_elr) == ((), written)
    if by_columns:
        context.apply(batch, 10)
    else:
        context.replay(change, 10)
    state = partition_record(context.metadata, 1)
    assert (state.isr, state.eligible_leader_replicas, state.last_known_elr) == ((), (2,), ())
