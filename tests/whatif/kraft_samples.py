"""Small KRaft clusters for what-ifs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from kframe.core.kraft.context import SUPPORTED_FEATURES
from kframe.core.kraft.replay import replay
from kframe.model.kraft import records
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.views import partition_record
from kframe.snapshot import Snapshot, Source
from kframe.whatif import Outcome, WhatIf
from kframe.whatif.engines.kraft.engine import KraftEngine

TOPIC_ID: Final = UUID(int=1 << 90)


def features_of(level: int) -> tuple[records.BrokerFeature, ...]:
    """The features of a broker that supports ``metadata.version`` up to a level."""
    supported = {**SUPPORTED_FEATURES, METADATA_VERSION: (int(MetadataLevel.MINIMUM), level)}
    return tuple(
        records.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported.items()
    )


FEATURES: Final = features_of(MetadataLevel.LATEST)


def directory(broker_id: int, number: int = 0) -> UUID:
    """A log directory of a broker."""
    return UUID(int=1_000 + 10 * broker_id + number)


def partition(number: int, replicas: Sequence[int], isr: Sequence[int], **fields: Any) -> records.PartitionRecord:
    """A partition of topic t, led by the first ISR member, in the first directory of each broker."""
    named: dict[str, Any] = {
        "leader": isr[0] if isr else -1,
        "leader_epoch": 3,
        "partition_epoch": 7,
        "adding_replicas": (),
        "removing_replicas": (),
        "directories": tuple(map(directory, replicas)),
    }
    return records.PartitionRecord(
        partition_id=number, topic_id=TOPIC_ID, replicas=tuple(replicas), isr=tuple(isr), **(named | fields)
    )


def metadata_with(
    partitions: Sequence[records.PartitionRecord],
    *,
    elr: bool = True,
    fenced: Sequence[int] = (),
    level: int = 30,
    min_isr: int = 2,
    racks: Mapping[int, str] | None = None,
    brokers: int = 4,
    supported: int = MetadataLevel.LATEST,
) -> ClusterMetadata:
    """Brokers 1 to ``brokers`` with two log directories each, and topic t. They support ``supported``."""
    log: list[records.MetadataRecord] = [
        records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=level),
        records.FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)),
        *(
            records.RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=broker_id),
                broker_epoch=broker_id + 10,
                end_points=(),
                features=features_of(supported),
                rack=(racks or {}).get(broker_id),
                fenced=broker_id in fenced,
                log_dirs=(directory(broker_id), directory(broker_id, 1)),
            )
            for broker_id in range(1, brokers + 1)
        ),
        records.TopicRecord(name="t", topic_id=TOPIC_ID),
        records.ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value=str(min_isr)),
        *partitions,
    ]
    metadata = ClusterMetadata()
    for offset, record in enumerate(log):
        replay(metadata, record, offset)
    return metadata


def with_broker_states(metadata: ClusterMetadata) -> Snapshot:
    """The cluster with broker 5 in controlled shutdown, and all directories of 6 and one of 7 cordoned."""
    changes: tuple[tuple[int, dict[str, Any]], ...] = (
        (5, {"in_controlled_shutdown": 1}),
        (6, {"cordoned_log_dirs": (directory(6), directory(6, 1))}),
        (7, {"cordoned_log_dirs": (directory(7),)}),
    )
    for broker_id, change in changes:
        record = records.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id + 10, **change)
        replay(metadata, record, 99)
    return Snapshot.from_metadata(metadata, source=Source("kraft", "sample"))


def new_engine(partitions: Sequence[records.PartitionRecord], **options: Any) -> KraftEngine:
    """The controller of such a cluster."""
    selectors = options.pop("selectors", None)
    snapshot = Snapshot.from_metadata(metadata_with(partitions, **options), source=Source("kraft", "sample"))
    return KraftEngine(snapshot, selectors=selectors)


def new_whatif(partitions: Sequence[records.PartitionRecord], **options: Any) -> WhatIf:
    """A what-if on such a cluster."""
    return WhatIf.of(new_engine(partitions, **options))


def state(whatif: WhatIf, number: int = 0) -> tuple[int, list[int], list[int]]:
    """Leader, ISR and ELR of a partition of topic t."""
    row = whatif.cluster.row("t", number)
    assert row is not None
    record = partition_record(whatif.cluster, row)
    return record.leader, list(record.isr), sorted(record.eligible_leader_replicas or ())


def record_counts(outcome: Outcome) -> dict[str, int]:
    """The records that an operation writes, by type."""
    assert outcome.records is not None
    return {count.record: count.count for count in outcome.records}
