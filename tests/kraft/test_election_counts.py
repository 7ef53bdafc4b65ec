"""Elections outside the ISR are counted from columns as from records, before the metadata has them."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.election_counts import ElectionCounts
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.kraft.strategies import BROKERS, CHANGES, PARTITIONS, TOPICS, Change, clusters, context_of

TOPIC_ID = UUID(int=1)


@pytest.mark.parametrize(
    ("leader", "unclean", "from_elr"),
    [
        pytest.param(1, 0, 0, id="of the ISR"),
        pytest.param(2, 0, 1, id="of the ELR"),
        pytest.param(3, 1, 0, id="of neither"),
        pytest.param(-1, 0, 0, id="no leader"),
        pytest.param(-2, 0, 0, id="leader unchanged"),
    ],
)
def test_election_counts_by_the_list_of_the_new_leader(leader: int, unclean: int, from_elr: int) -> None:
    metadata, counts = ClusterMetadata(), ElectionCounts()
    replay(metadata, TopicRecord(name="a", topic_id=TOPIC_ID), 0)
    partition = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=(1, 2, 3),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        eligible_leader_replicas=(2,),
    )
    replay(metadata, partition, 1)
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=leader)
    counts.add(metadata, RecordAndVersion(change, 0))
    assert (counts.unclean, counts.from_elr) == (unclean, from_elr)


@given(clusters(), st.sampled_from(CHANGES), st.integers(0, BROKERS - 1), st.booleans())
def test_changes_in_columns_count_as_their_records(
    metadata: ClusterMetadata, change: Change, broker_id: int, elr: bool
) -> None:
    batch = change(context_of(metadata, elr=elr), broker_id, np.arange(TOPICS * PARTITIONS, dtype=np.int32))
    by_batch, by_record = ElectionCounts(), ElectionCounts()
    by_batch.add(metadata, batch)
    for record in batch.records():
        by_record.add(metadata, record)
    assert by_batch == by_record
