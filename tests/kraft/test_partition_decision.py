"""Decisions over columns equal a reference decision for each partition, whatever the state and the targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.model.columns import Ragged
from kframe.model.kraft.ids import ELR_VERSION, KraftElection, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion, newest_version
from kframe.model.kraft.records import ConfigRecord, FeatureLevelRecord, Ids, PartitionRecord
from kframe.model.kraft.views import partition_record
from tests.kraft.reference_decision import Decision
from tests.kraft.strategies import BROKERS, PARTITIONS, TOPICS, clusters, directory_lists, member_lists


@dataclass(frozen=True, slots=True)
class Target:
    """The target state of a row."""

    row: int
    kind: KraftElection
    isr: Ids
    replicas: Ids
    directories: tuple[int, ...]
    adding: Ids
    removing: Ids
    recovery: int


@dataclass(frozen=True, slots=True)
class Fixture:
    context: KraftContext
    targets: list[Target]
    unclean_broker: int


@st.composite
def fixtures(draw: st.DrawFn) -> Fixture:
    metadata = draw(clusters())
    elr = metadata.metadata_version >= MetadataLevel.ELR and draw(st.booleans())
    replay(metadata, FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)), 0)
    for topic in range(TOPICS):
        value = str(draw(st.integers(1, 4)))
        replay(metadata, ConfigRecord(resource_type=2, resource_name=f"t{topic}", name=MIN_ISR, value=value), 0)
    rows = draw(st.lists(st.integers(0, TOPICS * PARTITIONS - 1), unique=True, min_size=1))
    context = KraftContext(metadata, Heartbeats(1), KraftSettings(), JavaRandom(0))
    return Fixture(context, [draw(targets(metadata, row)) for row in rows], draw(st.integers(-1, BROKERS - 1)))


MIN_ISR = "min.insync.replicas"


@st.composite
def targets(draw: st.DrawFn, metadata: ClusterMetadata, row: int) -> Target:
    stored = partition_record(metadata, row)
    replicas, directories = stored.replicas, stored.directories
    if draw(st.booleans()):
        replicas = draw(member_lists.filter(bool))
        directories = draw(directory_lists(replicas))
    isr = stored.isr if draw(st.integers(0, 3)) == 0 else draw(member_lists)
    if draw(st.booleans()):
        isr = tuple(member for member in stored.isr if member != draw(st.integers(0, BROKERS - 1)))
    return Target(
        row=row,
        kind=draw(st.sampled_from(KraftElection)),
        isr=isr,
        replicas=replicas,
        directories=tuple(metadata.directories.indexes_of(directories)),
        adding=stored.adding_replicas if draw(st.booleans()) else draw(member_lists),
        removing=stored.removing_replicas if draw(st.booleans()) else draw(member_lists),
        recovery=stored.leader_recovery_state if draw(st.booleans()) else draw(st.integers(0, 1)),
    )


def expected_record(fixture: Fixture, target: Target) -> RecordAndVersion | None:
    metadata = fixture.context.metadata
    stored = partition_record(metadata, target.row)
    first = partition_record(metadata, target.row - stored.partition_id)
    topic = metadata.topics.names[int(metadata.partitions.topic[target.row])]
    decision = Decision(
        stored=stored,
        kind=target.kind,
        min_isr=min(int(metadata.configs[2, topic][MIN_ISR]), len(first.replicas)),
        level=metadata.metadata_version,
        elr_enabled=metadata.elr_enabled,
        is_acceptable=lambda broker: is_acceptable(metadata, stored, broker),
        isr=target.isr,
        replicas=target.replicas,
        directories=metadata.directories.ids_of(target.directories),
        adding=target.adding,
        removing=target.removing,
        recovery=target.recovery,
        unclean_broker=fixture.unclean_broker,
    )
    record = decision.build()
    return (
        None if record is None else RecordAndVersion(record, newest_version(PartitionRecord, metadata.metadata_version))
    )


def is_acceptable(metadata: ClusterMetadata, stored: PartitionRecord, broker: int) -> bool:
    if broker not in stored.replicas or not metadata.brokers.is_active(broker):
        return False
    directory = stored.directories[stored.replicas.index(broker)]
    return metadata.brokers.registrations[broker].has_online_directory(directory)


@given(fixtures())
def test_column_decisions_equal_reference_decisions(fixture: Fixture) -> None:
    metadata, row_targets = fixture.context.metadata, fixture.targets
    index = metadata.brokers.indexes_of
    changes = plan_changes(
        fixture.context,
        TargetReplicas(
            rows=np.array([target.row for target in row_targets], np.int32),
            kinds=np.array([target.kind for target in row_targets], np.uint8),
            isr=Ragged.of([index(target.isr) for target in row_targets]),
            replicas=Ragged.of([index(target.replicas) for target in row_targets]),
            directories=Ragged.of([list(target.directories) for target in row_targets]),
            adding=Ragged.of([index(target.adding) for target in row_targets]),
            removing=Ragged.of([index(target.removing) for target in row_targets]),
            recovery=np.array([target.recovery for target in row_targets], np.uint8),
            unclean_broker=fixture.unclean_broker,
        ),
    )
    assert changes.records_by_row() == [expected_record(fixture, target) for target in row_targets]


@given(fixtures(), st.sampled_from(KraftElection))
def test_absent_targets_keep_stored_values(fixture: Fixture, kind: KraftElection) -> None:
    rows = np.array([target.row for target in fixture.targets], np.int32)
    kinds = np.full(len(rows), kind, np.uint8)
    p = fixture.context.metadata.partitions
    stored = TargetReplicas(
        rows=rows,
        kinds=kinds,
        isr=p.lists("isr", rows),
        replicas=p.lists("replica", rows),
        directories=p.lists("directory", rows),
        adding=p.lists("adding", rows),
        removing=p.lists("removing", rows),
        recovery=p.recovery[rows],
        active=fixture.context.metadata.brokers.active,
    )
    absent = TargetReplicas(rows=rows, kinds=kinds)
    decided = [plan_changes(fixture.context, targets).records_by_row() for targets in (absent, stored)]
    assert decided[0] == decided[1]
