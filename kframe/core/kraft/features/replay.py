"""Replay of feature levels (Kafka 4.4 ``FeatureControlManager.replay``)."""

from __future__ import annotations

from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import FeatureLevelRecord


def replay_feature_level(metadata: ClusterMetadata, record: FeatureLevelRecord, offset: int) -> None:
    """Finalize the level of a feature. 0 removes it, except for ``metadata.version``."""
    if record.feature_level == 0 and record.name != METADATA_VERSION:
        metadata.features.pop(record.name, None)
    else:
        metadata.features[record.name] = record.feature_level
