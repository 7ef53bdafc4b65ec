"""Decisions that are encoded from columns give the records that the decisions have."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from kframe_kraft.batches import BatchPosition, encode_data_batch, read_batch
from kframe_kraft.encoding.decision import encode_decision

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.controller_result import RECORDS_MAX, ControllerResult
from kframe.errors import RecordError
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_tables import TABLES
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import NoOpRecord, PartitionRecord, TopicRecord
from tests.kraft.large import large_cluster
from tests.kraft.strategies import BROKERS, CHANGES, PARTITIONS, TOPICS, Change, clusters, context_of
from verification.kraft.record_strategies import struct_values

POSITION = BatchPosition(base_offset=70, leader_epoch=3, timestamp=5)


def decoded(decided: ControllerResult[object]) -> list[list[RecordAndVersion]]:
    """The records of each batch."""
    batches = [read_batch(batch) for batch in encode_decision(decided, POSITION)]
    sizes = [batch.header.record_count for batch in batches]
    firsts = [POSITION.base_offset + sum(sizes[:number]) for number in range(len(sizes))]
    assert [batch.header.base_offset for batch in batches] == firsts
    return [batch.records() for batch in batches]


@given(clusters(), st.sampled_from(CHANGES), st.integers(0, BROKERS - 1), st.booleans())
def test_encoded_changes_equal_decision(metadata: ClusterMetadata, change: Change, broker_id: int, elr: bool) -> None:
    context = context_of(metadata, elr=elr)
    try:
        changes = change(context, broker_id, np.arange(TOPICS * PARTITIONS, dtype=np.int32))
        batches = decoded(ControllerResult([changes], None))
    except RecordError:
        reject()  # a malformed partition has an ELR at a level without ELR
    expected = changes.records()
    assert batches == ([expected] if expected else [])


@given(
    st.lists(struct_values(TABLES[PartitionRecord], 2), min_size=1, max_size=4),
    st.sampled_from([1, 31, 32, 50]),
    st.sampled_from([0, 1, 2]),
)
def test_new_partitions_are_encoded_as_one_by_one(some: list[PartitionRecord], count: int, version: int) -> None:
    new = [RecordAndVersion(some[number % len(some)], version) for number in range(count)]
    topic = RecordAndVersion(TopicRecord(name="t", topic_id=some[0].topic_id), 0)
    parts = [topic, *new, topic, *new[:1], topic]
    try:
        expected = encode_data_batch(parts, POSITION)
    except RecordError:
        with pytest.raises(RecordError):
            list(encode_decision(ControllerResult(parts, None), POSITION))
        return
    assert list(encode_decision(ControllerResult(parts, None), POSITION)) == [expected]


@pytest.mark.parametrize("version", [-1, 3])
def test_decision_that_cannot_be_encoded_has_no_batch(version: int) -> None:
    many = [RecordAndVersion(NoOpRecord(), 0)] * RECORDS_MAX
    partition = PartitionRecord(topic_id=UUID(int=1), replicas=(), isr=(), removing_replicas=(), adding_replicas=())
    batches = encode_decision(ControllerResult([*many, *[RecordAndVersion(partition, version)] * 40], None), POSITION)
    with pytest.raises(RecordError):
        next(batches)


def test_fence_is_encoded_in_batches_of_records_max() -> None:
    context = large_cluster(3, RECORDS_MAX + 10, elr=True)
    decided = broker_events.fence_broker(context, context.metadata.brokers.registrations[1])
    batches = decoded(decided)
    assert [len(batch) for batch in batches] == [RECORDS_MAX, 11]
    assert [versioned for batch in batches for versioned in batch] == decided.records
