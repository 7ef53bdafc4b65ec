"""Changes applied in columns give what the replay of their records gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.kraft.apply_changes import apply_changes
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.decision import records_of
from kframe.core.kraft.heartbeats import Heartbeats
from kframe.core.kraft.random_source import JavaRandom
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.replay import replay
from kframe.model.kraft.views import partition_record
from tests.kraft.strategies import BROKERS, CHANGES, PARTITIONS, TOPICS, Change, clusters, context_of


def copied(context: KraftContext) -> KraftContext:
    return KraftContext(context.metadata.copy(), Heartbeats(1), context.settings, JavaRandom(0))


@given(clusters(), st.sampled_from(CHANGES), st.integers(0, BROKERS - 1), st.booleans())
def test_changes_in_columns_equal_the_replay_of_their_records(
    metadata: ClusterMetadata, change: Change, broker_id: int, elr: bool
) -> None:
    context = context_of(metadata, elr=elr)
    twin, rows = copied(context), np.arange(TOPICS * PARTITIONS, dtype=np.int32)
    for item in records_of(change(twin, broker_id, rows)):
        replay(twin.metadata, item.record, 0)
    for decided in change(context, broker_id, rows):
        apply_changes(decided, 0)
    for row in rows.tolist():
        assert partition_record(context.metadata, row) == partition_record(twin.metadata, row)
