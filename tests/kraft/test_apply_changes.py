"""Changes applied in columns give what the replay of their records gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from hypothesis import given, reject
from hypothesis import strategies as st

from kframe.core.kraft import membership
from kframe.core.kraft.apply_changes import apply_changes
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.decision import records_of
from kframe.core.kraft.heartbeats import Heartbeats
from kframe.core.kraft.partition_changes import PlannedChanges, TargetReplicas, planned_changes
from kframe.core.kraft.random_source import JavaRandom
from kframe.errors import ShapeError
from kframe.model.columns import Int32, Ragged
from kframe.model.kraft.ids import ELR_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import FeatureLevelRecord
from kframe.model.kraft.replay import replay
from kframe.model.kraft.views import partition_record
from tests.kraft.strategies import BROKERS, PARTITIONS, TOPICS, clusters

Change = Callable[[KraftContext, int, Int32], Any]


def without_adding(context: KraftContext, broker_id: int, rows: Int32) -> list[PlannedChanges]:
    """A change of lists that only reassignments have."""
    kinds = np.zeros(len(rows), np.uint8)
    return [planned_changes(context, TargetReplicas(rows=rows, kinds=kinds, adding=Ragged.empty(len(rows))))]


CHANGES: Final[tuple[Change, ...]] = (
    membership.remove_broker, membership.remove_unclean_broker, membership.add_broker, without_adding,
)  # fmt: skip


def copied(context: KraftContext) -> KraftContext:
    return KraftContext(context.metadata.copy(), Heartbeats(1), context.settings, JavaRandom(0))


@given(clusters(), st.sampled_from(CHANGES), st.integers(0, BROKERS - 1), st.booleans())
def test_changes_in_columns_equal_the_replay_of_their_records(
    metadata: ClusterMetadata, change: Change, broker_id: int, elr: bool
) -> None:
    elr &= metadata.metadata_version >= MetadataLevel.ELR
    replay(metadata, FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)), 0)
    context = KraftContext(metadata, Heartbeats(1), KraftSettings(min_insync_replicas=2), JavaRandom(0))
    twin, rows = copied(context), np.arange(TOPICS * PARTITIONS, dtype=np.int32)
    try:
        for item in records_of(change(twin, broker_id, rows)):
            replay(twin.metadata, item.record, 0)
    except ShapeError:
        reject()  # the malformed partition has replicas without directories
    for decided in change(context, broker_id, rows):
        apply_changes(decided, 0)
    for row in rows.tolist():
        assert partition_record(context.metadata, row) == partition_record(twin.metadata, row)
