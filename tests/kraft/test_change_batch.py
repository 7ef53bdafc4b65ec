"""Changes applied in columns give what the replay of their records gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, reject
from hypothesis import strategies as st

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.replay import replay_change_batch
from kframe.model.kraft.directories import MIGRATING
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.views import partition_record
from tests.kraft.strategies import BROKERS, CHANGES, PARTITIONS, TOPICS, Change, clusters, context_of


def copied(context: KraftContext) -> KraftContext:
    return KraftContext(context.metadata.copy(), Heartbeats(1), context.settings, JavaRandom(0))


@given(clusters(), st.sampled_from(CHANGES), st.integers(0, BROKERS - 1), st.booleans())
def test_changes_in_columns_equal_the_replay_of_their_records(
    metadata: ClusterMetadata, change: Change, broker_id: int, elr: bool
) -> None:
    context = context_of(metadata, elr=elr)
    replayed, rows = copied(context), np.arange(TOPICS * PARTITIONS, dtype=np.int32)
    for item in change(replayed, broker_id, rows).records():
        replay(replayed.metadata, item.record, 0)
    replay_change_batch(change(context, broker_id, rows))
    for row in rows.tolist():
        assert partition_record(context.metadata, row) == partition_record(replayed.metadata, row)


@st.composite
def reassigned_without_directories(draw: st.DrawFn) -> ClusterMetadata:
    """A cluster below the level of directories that stores some, as after a downgrade.

    The ISR of each partition has all replicas, so that any change ends its reassignment.
    """
    metadata = draw(clusters(levels=[7, 12, int(MetadataLevel.DIRECTORIES) - 1]))
    p = metadata.partitions
    for row in range(len(p)):
        replicas = p.list_of("replica", row)
        removing = draw(st.lists(st.sampled_from(replicas), unique=True, max_size=len(replicas) - 1))
        isr = draw(st.permutations(replicas))
        p.replace_lists(row, {"isr": isr, "elr": (), "last_known_elr": (), "adding": (), "removing": removing})
        p.leader[row] = draw(st.sampled_from(replicas))
    return metadata


@given(reassigned_without_directories(), st.integers(0, BROKERS - 1))
def test_fence_that_completes_reassignment_keeps_directories(metadata: ClusterMetadata, broker_id: int) -> None:
    context = context_of(metadata, elr=False)
    replayed, p = copied(context), metadata.partitions
    before = [dict(zip(p.list_of("replica", row), p.list_of("directory", row), strict=True)) for row in range(len(p))]
    registration = metadata.brokers.registrations.get(broker_id)
    if registration is None:
        reject()
    decided = broker_events.fence_broker(context, registration)
    for versioned in decided.records:
        replay(replayed.metadata, versioned.record, 0)
    for part in decided.parts:
        context.apply(part, 0)
    for row, directories in enumerate(before):
        assert partition_record(metadata, row) == partition_record(replayed.metadata, row)
        expected = [directories.get(replica, MIGRATING) for replica in p.list_of("replica", row)]
        assert p.list_of("directory", row) == expected
